"""Query of a model that pools: one request to the endpoint of its task, and what came back, bounded.

Embeddings are shown by their length and first numbers, classes by label and probability, ranks by score. Leaves
prompts of models that generate to bezel.operations.query.query.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.serving.server import DeployedServer
from bezel_base.errors import NOT_SET, Problem, UserError

_MAX_BYTES = 32 << 20
_MOST_ROWS, _MOST_NUMBERS = 100, 8
_TEXT = 300


class PooledRow(Result):
    """What the model computed of one input, or of one document."""

    index: int
    label: str | None = Field(description="the likeliest class; null for others than classes")
    score: float | None = Field(description="relevance of a document, or probability of the label; null for vectors")
    shape: tuple[int, ...] = Field(description="numbers that came: of one vector, or vectors and numbers of each")
    first: tuple[float, ...] = Field(description="the first of them")

    def line(self) -> str:
        """The row for people."""
        if self.label is not None:
            return f"{self.label}  {self.score:.4f}"
        if self.score is not None:
            return f"{self.score:.4f}"
        size = " x ".join(map(str, self.shape))
        more = " ..." if len(self.first) == _MOST_NUMBERS else ""
        return f"{size} numbers: {' '.join(f'{number:.4f}' for number in self.first)}{more}"


class Pooled(Result):
    """Answer of a model that pools."""

    path: str = Field(description="endpoint that was asked")
    rows: tuple[PooledRow, ...] = Field(description="best first for ranks, else in the order of the inputs")
    prompt_tokens: int | None
    total_seconds: float
    model: str | None = Field(exclude=True, repr=False)

    def row_texts(self, documents: Sequence[str]) -> Iterator[str]:
        """The rows, ranks with the begin of their documents."""
        for row in self.rows:
            has_text = self.path.endswith("/rerank") and row.index < len(documents)
            yield f"{row.line()}{f'  {clean_text(documents[row.index], 80)}' if has_text else ''}"


def check_pooled(pooled_at: str, stack: str, documents: Sequence[str], image: str | None) -> None:
    """Check that the endpoint of a model can be asked so.

    Raises:
        UserError: Only a plugin asks it, documents are missing or not taken, or an image is given.
    """
    if not pooled_at:
        consequence = "vLLM pools with its model, and requests are answered by a plugin of the server."
        raise UserError(Problem("STACK", stack, consequence, "send what the plugin takes, e.g. through `bezel proxy`."))
    ranks = pooled_at.endswith("/rerank")
    if ranks and not documents:
        consequence = "its model ranks documents by a query, and there are none."
        raise UserError(Problem("--document", NOT_SET, consequence, "add --document TEXT for each of them."))
    if documents and not ranks:
        consequence = f"its model is asked at {pooled_at}, which takes the prompt alone."
        raise UserError(Problem("--document", len(documents), consequence, "leave it out."))
    if image is not None:
        raise UserError(Problem("--image", image, f"{pooled_at} is asked with text.", "leave it out."))


def ask_pooled(
    server: DeployedServer, path: str, model: str, prompt: str, documents: Sequence[str], *, seconds: float
) -> Pooled:
    """Send the request.

    Args:
        server: The server.
        path: Endpoint of the model's task.
        model: Name under which the model is served.
        prompt: The text; the query of documents.
        documents: Texts to rank.
        seconds: Time limit.

    Raises:
        ServerError: The server refused, did not answer, or not with what the endpoint promises.
        RestError: There is no identity token for it.
    """
    asked = {"query": prompt, "documents": list(documents)} if path.endswith("/rerank") else {"input": prompt}
    begun = time.monotonic()
    reply = server.ask(path, {"model": model, **asked}, max_bytes=_MAX_BYTES, seconds=seconds)
    took = time.monotonic() - begun
    content = reply.json()
    results = content.get("results" if "query" in asked else "data")
    if reply.status != 200 or not isinstance(results, list):
        raise server.refusal_error(path, reply)
    usage, name = content.get("usage"), content.get("model")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return Pooled(
        path=path,
        rows=tuple(_row(row) for row in results[:_MOST_ROWS] if isinstance(row, dict)),
        prompt_tokens=tokens if isinstance(tokens, int) else None,
        total_seconds=round(took, 3),
        model=clean_text(name, _TEXT) if isinstance(name, str) else None,
    )


def _row(row: dict[str, Any]) -> PooledRow:
    probabilities = _numbers(row.get("probs"))
    score = row.get("relevance_score")
    label = row.get("label")
    if probabilities:
        score = max(probabilities)
        label = str(label) if label is not None else f"class {probabilities.index(score)}"
    values: list[Any] = next(
        (row[name] for name in ("embedding", "probs", "data") if isinstance(row.get(name), list)), []
    )
    is_matrix = bool(values) and isinstance(values[0], list)
    numbers = _numbers(values[0] if is_matrix else values)
    return PooledRow(
        index=row["index"] if isinstance(row.get("index"), int) else 0,
        label=None if label is None else clean_text(str(label), _TEXT),
        score=float(score) if isinstance(score, int | float) else None,
        shape=(len(values), len(numbers)) if is_matrix else (len(numbers),),
        first=tuple(numbers[:_MOST_NUMBERS]),
    )


def _numbers(value: object) -> list[float]:
    rows = value if isinstance(value, list) else []
    return [float(number) for number in rows if isinstance(number, int | float) and not isinstance(number, bool)]
