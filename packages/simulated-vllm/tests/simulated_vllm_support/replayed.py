"""Generated requests with a real vLLM's answers, and the differences of the simulated one that are explained."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import platform
from typing import TYPE_CHECKING, Any

from simulated_vllm_support.generated import Generated
from simulated_vllm_support.samples import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = FIXTURES / "generated.json.gz"
# At the end of a body that broke off.
CUT = "data: cut off"
_KEPT = 300
NOTES = [
    {
        "what": "prompts of token ids beyond the vocabulary",
        "why": "accepted: the stand-in tokenizer has more ids than the checkpoint's, and its own ids must be accepted",
        "evidence": "the real server answers 400 `Token id 999999 is out of vocabulary`",
    },
    {
        "what": "routed_experts_prompt_start between two lengths of a prompt",
        "why": "the stand-in tokenizer counts `def main` as two tokens, the checkpoint's as three",
        "evidence": "the real server accepts 3 and refuses 4",
    },
]


def is_explained(request: Generated, real: list[Any], simulated: list[Any]) -> bool:
    """Whether a difference is one of the notes'."""
    if "out of vocabulary" in json.dumps(real) and request.body.get("prompt") is not None:
        return bool(simulated[0] == 200)
    refusal = "routed_experts_prompt_start must be between"
    return "routed_experts_prompt_start" in request.body and refusal in json.dumps([real, simulated])


def write(answers: Sequence[tuple[Generated, list[Any]]]) -> None:
    """Write some requests with the shapes of the real server's answers: each class once, then as they come."""
    first: dict[str, tuple[Generated, list[Any]]] = {}
    for answer in answers:
        first.setdefault(answer[0].kind, answer)
    chosen = [*first.values()]
    ids = {id(answer) for answer in chosen}
    chosen += [answer for answer in answers if id(answer) not in ids][-max(0, _KEPT - len(chosen)) :]
    rows = [[request.path, request.field, request.body, shape] for request, shape in chosen]
    FILE.write_bytes(gzip.compress(json.dumps(rows, separators=(",", ":")).encode(), mtime=0))


def read() -> list[tuple[Generated, list[Any]]]:
    """Return the written requests with the shapes of the real server's answers."""
    rows = json.loads(gzip.decompress(FILE.read_bytes()))
    return [(Generated(path, field, body), shape) for path, field, body, shape in rows]


def today(release: str) -> dict[str, str]:
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"vLLM {release} on {platform.machine()} (CPU), tiny Gemma 4",
    }
