"""Export of a result: a CSV table, and the JSON that `vllm bench serve` writes.

Owns the translation. The JSON has vLLM's names with vLLM's definitions (over the whole load, of successful requests,
its start and its end included), so a figure in it may differ from the same cell's; docs/metrics.md gives the amount and
the reason. It has one level, so that a load in stages is exported stage by stage. Generated texts are not stored, and
so left out.
"""

import csv
import io
from typing import Any

import numpy as np

from bezel_bench.metrics.definitions import DEFINITIONS
from bezel_bench.metrics.metric_inputs import latencies_of
from bezel_bench.result.columns import Columns, Floats
from bezel_bench.result.document import Cell, Result
from bezel_bench.result.sample import KINDS
from bezel_bench.validity.checks import most_at_once, most_in_flight

_CELL_FIELDS = (
    *("id", "variant", "context_tokens", "users", "rate", "output_tokens", "pattern", "prompts", "repeat"),
    *("state", "reason", "started_at", "seconds", "requests", "cost_usd"),
)
_PERCENTILES = (50, 90, 95, 99)


def as_csv(result: Result) -> str:
    """Return one row a cell: its load, its state, and every figure with its unit in the header. Unknown is empty."""
    text = io.StringIO()
    header = ["nature", *_CELL_FIELDS, "failed", *(f"{metric.name} [{metric.unit}]" for metric in DEFINITIONS)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for cell in (part for whole in result.cells for part in whole.parts()):
        plain = cell.model_dump(mode="json", include=set(_CELL_FIELDS))
        failed = sum(cell.failures.values()) - cell.cancellations
        row = [result.nature, *(plain[name] for name in _CELL_FIELDS), failed]
        writer.writerow([*row, *(cell.value(metric.name) for metric in DEFINITIONS)])
    return text.getvalue()


def as_vllm(result: Result, cell: Cell, rows: Columns, began: int, most: int | None = None) -> dict[str, Any]:
    """Return a cell in the shape of `vllm bench serve --save-result --save-detailed`.

    Args:
        result: The cell's result.
        cell: A measured cell of one level, or a stage as `of_stage` gives it.
        rows: Its samples.
        began: The origin of their instants.
        most: The most requests under way at once, where other requests than these were.
    """
    good = rows.good()
    seconds = cell.seconds or 0.0
    endpoint = (cell.load or {}).get("target", {}).get("endpoint", "chat")
    prompt, output = int(good["prompt_tokens"].sum()), int(good["output_tokens"].sum())
    spans, has = latencies_of(rows, open_loop=False)
    succeeded = rows.failure == 0
    return {
        "date": cell.started_at.strftime("%Y%m%d-%H%M%S") if cell.started_at else None,
        "endpoint_type": "openai-chat" if endpoint == "chat" else "openai",
        "backend": "openai-chat" if endpoint == "chat" else "openai",
        "label": result.manifest.title,
        "model_id": result.manifest.model,
        "tokenizer_id": None,
        "num_prompts": cell.requests,
        "bezel_nature": result.nature,
        "bezel_cell": cell.id,
        "bezel_state": cell.state,
        "request_rate": "inf" if cell.rate is None else cell.rate,
        "burstiness": (cell.load or {}).get("pattern", {}).get("burstiness", 1.0),
        "max_concurrency": cell.users,
        "duration": seconds,
        "completed": len(good),
        "failed": cell.requests - len(good),
        "total_input_tokens": prompt,
        "total_output_tokens": output,
        "request_throughput": _rate(len(good), seconds),
        "request_goodput": cell.value("goodput"),
        "output_throughput": _rate(output, seconds),
        "total_token_throughput": _rate(prompt + output, seconds),
        "input_lens": rows["prompt_tokens"].clip(0).tolist(),
        "output_lens": rows["output_tokens"].clip(0).tolist(),
        "ttfts": np.where(succeeded & has["ttft"], spans["ttft"] / 1e9, 0.0).tolist(),
        "itls": _gaps_each(rows),
        "latencies": np.where(succeeded, spans["e2e"] / 1e9, 0.0).tolist(),
        "start_times": np.where(rows["sent"] > 0, (rows["sent"] - began) / 1e9, 0.0).tolist(),
        "queue_times": np.where(rows["sent"] > 0, (rows["sent"] - rows["planned"]) / 1e9, 0.0).tolist(),
        "errors": _errors(cell, rows),
        "max_concurrent_requests": most_in_flight(rows) if most is None else most,
        **_spec_decode(cell),
        **_spread("ttft", spans["ttft"][succeeded & has["ttft"]] / 1e6),
        **_spread("tpot", spans["tpot"][succeeded & has["tpot"]] / 1e6),
        **_spread("itl", good.gaps() / 1e6),
        **_spread("e2el", spans["e2e"][succeeded] / 1e6),
    }


def of_stage(cell: Cell, number: int, rows: Columns, began: int) -> tuple[Cell, Columns, int]:
    """Return a stage as a load of its own: from its begin to the last response of the requests that belong to it.

    Args:
        cell: A load in stages.
        number: The stage, from 1.
        rows: The samples of the whole load.
        began: The origin of their instants.

    Returns:
        The stage as a cell, its samples, and the most requests under way in its time, those of other stages included.
    """
    begins = [round(began + stage.begins * 1e9) for stage in cell.stages]
    begin, stage = begins[number - 1], cell.stages[number - 1]
    chosen = rows["planned"] >= begin
    if number < len(begins):
        chosen &= rows["planned"] < begins[number]
    stage_rows = rows.where(chosen)
    end = round(began + stage.ends * 1e9)
    ended = int(stage_rows["done"].max()) if len(stage_rows) else end
    part = cell.parts()[number - 1].model_copy(update={"seconds": (ended - begin) / 1e9})
    present = (rows["sent"] > 0) & (rows["sent"] < end) & (rows["done"] > begin)
    return part, stage_rows, most_at_once(np.maximum(rows["sent"][present], begin), rows["done"][present])


def _rate(count: int, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None


def _spread(name: str, values: Floats) -> dict[str, float | None]:
    names = [f"{what}_{name}_ms" for what in ("mean", "median", "std", *(f"p{share}" for share in _PERCENTILES))]
    if len(values) == 0:
        return dict.fromkeys(names)
    figures = [values.mean(), np.median(values), values.std(), *np.percentile(values, _PERCENTILES)]
    return dict(zip(names, map(float, figures), strict=True))


def _gaps_each(rows: Columns) -> list[list[float]]:
    pairs = np.maximum(rows.chunk_counts - 1, 0)
    return [(part / 1e9).tolist() for part in np.split(rows.gaps(), np.cumsum(pairs)[:-1])] if len(rows) else []


def _errors(cell: Cell, rows: Columns) -> list[str]:
    kinds = ("", *KINDS)
    texts = {kind: f"{kind}: {text}" if text else kind for kind, text in cell.failure_examples.items()}
    return [texts.get(kinds[code], kinds[code]) for code in rows.failure.tolist()]


def _spec_decode(cell: Cell) -> dict[str, Any]:
    gained = cell.counters.gained if cell.counters else None
    if gained is None or not gained.drafts:
        return {}
    rate = cell.value("acceptance_rate")
    return {
        "spec_decode_acceptance_rate": None if rate is None else 100 * rate,
        "spec_decode_acceptance_length": cell.value("acceptance_length"),
        "spec_decode_num_drafts": gained.drafts,
        "spec_decode_draft_tokens": gained.draft_tokens,
        "spec_decode_accepted_tokens": gained.accepted_tokens,
        "spec_decode_per_position_acceptance_rates": cell.acceptance,
    }
