"""Rows of the summaries of all plans: name, value and origin.

Owns the formatting of figures, ranges and amounts. Leaves the choice of a plan's rows to bezel.planner.render.summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.provenance import COMPUTED, STACK_FILE
from bezel.planner.base.money import Unpriced, text
from bezel.planner.cost.token_cost import POOLED_DIGITS
from bezel.planner.vllm.model.named_adapters import adapter_folder
from bezel_base.terminal.blocks import Line, NamedValues, Role
from bezel_catalog import Price
from bezel_catalog.quantities import as_gib, gib_text
from bezel_catalog.sizing.memory import CUDA_PART_BYTES, CUDA_SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bezel.planner.base.deployment import ServerPlan, WeightsPlan
    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import Access, Adapter
    from bezel.planner.cost.service_cost import CostLine
    from bezel.planner.cost.token_cost import TokenCost
    from bezel_base.terminal.blocks import Block
    from bezel_catalog.sizing.memory import MemoryFit
    from bezel_catalog.sizing.pooled_speed import PooledEstimate
    from bezel_catalog.sizing.roofline import Estimate
    from bezel_catalog.sizing.speculation import Gain

Row = tuple[str, object, str]
CATALOGUE = "catalogue"


def argument_rows(server: ServerPlan, origins: Mapping[str, str]) -> Iterable[Row]:
    """The argument list: the model, then each flag with its values; a flag that may be repeated in a row each."""
    yield "model", server.weights.model, COMPUTED
    for name, option in server.options.items():
        origin = origins[f"vllm.{name}"]
        for flag, *values in option.flags:
            yield flag, " ".join(values), origin


def gpu_memory_rows(fit: MemoryFit, accelerator: str) -> Iterable[Row]:
    """The memory of one GPU, part by part."""
    yield accelerator, gib(fit.accelerator_bytes), "datasheet, decimal GB"
    yield "for vLLM", gib(fit.budget_bytes), f"{fit.utilization:g} of it"
    yield "weights", gib(fit.weight_bytes - fit.offloaded_bytes), CATALOGUE
    if fit.draft_bytes:
        yield "draft model", gib(fit.draft_bytes), f"{CATALOGUE}; it reads the model's KV cache"
    if fit.adapter_bytes:
        yield "room for adapters", gib(fit.adapter_bytes), "reserved at the start, by arithmetic"
    if fit.offloaded_bytes:
        yield "offloaded weights", gib(fit.offloaded_bytes), "in the host's memory, read from there in each step"
    yield "working memory", gib(fit.activation_bytes), "of one step, by arithmetic; estimated, not measured"
    yield "context, kernels, graphs", gib(fit.fixed_bytes), f"{as_gib(CUDA_PART_BYTES):g} GiB each, {CUDA_SOURCE}"
    if fit.keeps_cache:
        yield "KV cache", gib(fit.kv_available_bytes), "the rest"
        yield f"one sequence of {fit.max_model_len}", gib(fit.kv_sequence_bytes), COMPUTED
        yield "such sequences at a time", fit.full_context_sequences, logged_concurrency(fit)
    else:
        yield no_cache_row(fit.kv_available_bytes)
        yield "sequences at a time", fit.full_context_sequences, "max-num-seqs, at most max-num-batched-tokens"
    for part in fit.host_parts:
        yield f"host, {part.option}", gib(part.needed_bytes), f"{gib(part.asked_bytes)} asked for; an upper bound"
    for unknown in fit.host_not_checked:
        yield "not checked", None, unknown
    yield (
        "host at its peak" if fit.host_parts else "host while loading",
        gib(fit.host_needed_bytes),
        f"of {gib(fit.host_bytes)}, estimated",
    )


def no_cache_row(unused_bytes: int) -> Row:
    """The rest of the memory where no KV cache is made of it."""
    return "not used", gib(unused_bytes), "the rest: an encoder keeps nothing of a sequence, so no KV cache"


def adapter_text(adapter: Adapter, weights: WeightsPlan) -> str:
    """Where an adapter is loaded from, its largest rank, and what it is copied from."""
    if weights.mount_path is None:
        return f"rank {adapter.rank}, hf:{str(adapter.source).removeprefix('hf:')}"
    source = f", from {adapter.source}" if adapter.source else ""
    return f"rank {adapter.rank}, gs://{weights.bucket}/{adapter_folder(adapter)}{source}"


def logged_concurrency(fit: MemoryFit) -> str:
    """What vLLM logs as its maximum concurrency, and why that is not the number of sequences."""
    logged = f"vLLM will log {fit.reported_concurrency:.2f}x"
    if fit.kv_start_bytes <= fit.kv_sequence_bytes:
        return logged
    return (
        f"{logged}: it counts each as while its prompt is computed, {gib(fit.kv_start_bytes)}, not the "
        f"{gib(fit.kv_sequence_bytes)} that it keeps"
    )


def speed_rows(speed: Estimate, gain: Gain | None) -> Iterable[Row]:
    """Estimated speed of one machine at the load of the short benchmark."""
    yield "first token", span(speed.ttft_seconds, "s", 2), f"prompt of {speed.prompt_tokens} tokens"
    yield "output, one user", span(speed.tokens_per_second_alone, "tokens/s", 0), "alone"
    yield "output, batch", span(speed.tokens_per_second_batched, "tokens/s", 0), f"{speed.batch} users"
    served = span(speed.tokens_per_second_served, "tokens/s", 0)
    yield "prompts included", served, f"responses of {speed.output_tokens} tokens"
    if gain:
        yield "drafts, alone", span(gain.alone, "times as fast", 1), gain.basis
        yield "drafts, batch", span(gain.batched, "times as fast", 1), f"{speed.batch} users"
    yield "basis", None, str(speed.as_output()["basis"])


def pooled_rows(speed: PooledEstimate, pooled_at: str) -> Iterable[Row]:
    """Estimated speed of one machine with a model that pools: inputs, each a text or a pair of texts."""
    yield "asked at", pooled_at or "no endpoint", "vLLM pools with this model" if pooled_at else "only a plugin asks it"
    yield "one input", span(speed.input_seconds, "s", 3), f"{speed.prompt_tokens} tokens, alone"
    yield "inputs", span(speed.inputs_per_second, "inputs/s", 0), f"{speed.batch} in each step"
    yield "input tokens", span(speed.tokens_per_second, "tokens/s", 0), "of these inputs"
    yield "basis", None, str(speed.as_output()["basis"])


def line_row(line: CostLine) -> Row:
    """One billed part, with the date and the source of its price."""
    note = f"{line.price.as_of}, {line.price.source}" if isinstance(line.price, Price) else str(line.price)
    kind = "" if line.kind in note else f"{line.kind}, "
    return f"{line.quantity} x {line.item}", usd(line.hourly, "h", 5), kind + note


def token_rows(tokens: TokenCost) -> Iterable[Row]:
    """Cost of tokens, with its load."""
    yield "a million tokens in", usd_range(tokens.input, 2 if tokens.output else POOLED_DIGITS), tokens.basis
    if tokens.output is not None:
        yield "a million tokens out", usd_range(tokens.output, 2), f"{tokens.utilisation:.0%} utilisation"


def usd(amount: Amount, per: str, digits: int) -> str:
    """An amount per hour or month, as text."""
    return text(amount, digits) if isinstance(amount, Unpriced) else f"{text(amount, digits)} USD/{per}"


def usd_range(ends: tuple[Amount, Amount], digits: int) -> str:
    """A range of amounts as text."""
    return " to ".join(text(end, digits) for end in ends) + " USD"


def gib(number: int) -> str:
    """Bytes as text."""
    return f"{gib_text(number)} GiB"


def span(values: tuple[float, float], unit: str, digits: int) -> str:
    """A range with its unit, as text."""
    return f"{values[0]:.{digits}f} to {values[1]:.{digits}f} {unit}"


def callers(access: Access) -> str:
    """Who may call the endpoint."""
    return "everyone" if access.public else ", ".join(access.invokers) or "project members with the role"


def either(origin: Mapping[str, str], *paths: str) -> str:
    """Origin of the values that share a row."""
    return " and ".join(dict.fromkeys(origin[path] for path in paths))


def image_origin(origin: Mapping[str, str]) -> str:
    """Origin of the image: the stack file, or the vLLM release."""
    is_own = any(path.startswith("image.") and source == STACK_FILE for path, source in origin.items())
    return STACK_FILE if is_own else origin["vllm_version"]


def weights_origin(origin: Mapping[str, str], *, in_bucket: bool) -> str:
    """Origin of the weights' address: of bucket and folder, or of the choice of the hub."""
    return either(origin, "weights.bucket", "weights.path") if in_bucket else origin["weights.loading"]


def section_blocks(sections: Iterable[tuple[str, Iterable[Row]]]) -> Iterator[Block]:
    """Sections with their rows; a row whose value is None has its note in place of both."""
    for number, (title, rows) in enumerate(sections):
        yield from (Line(),) if number else ()
        yield Line(title, Role.HEADING)
        yield NamedValues([(name, note) if value is None else (name, value, note) for name, value, note in rows])
