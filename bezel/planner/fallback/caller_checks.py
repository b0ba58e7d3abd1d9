"""Differences between a lease and its fallback: those that break requests are refused, the others reported.

Owns the comparison of what two servers promise their callers. Leaves speed and prices to the plan's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import setting
from bezel_base.errors import NOT_SET, Problem, format_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARSERS = (
    "reasoning-parser",
    "tool-call-parser",
    "enable-auto-tool-choice",
    "chat-template",
    "chat-template-content-format",
    "response-role",
)
"""Options that give responses their form."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a server promises its callers.

    Attributes:
        model: the checkpoint's id.
        names: served names, the first of which responses hold.
        max_model_len: tokens of a prompt and its response together.
        values: its options as vLLM reads them.
        pooled_at: the endpoint of a model that pools; None for one that generates.
    """

    model: str
    names: tuple[str, ...]
    max_model_len: int
    values: Mapping[str, Any]
    pooled_at: str | None


def check_callers(lease: Promise, fallback: Promise, *, accepts_shorter: bool) -> Iterator[Problem]:
    """Refuse a fallback that breaks requests which the lease answers."""
    if missing := [name for name in lease.names if name not in fallback.names]:
        yield Problem(
            setting("fallback.vllm.served-model-name"),
            ", ".join(fallback.names),
            f"requests for {', '.join(missing)} get 404 while the fallback serves.",
            f"write {format_value(list(lease.names))}, or remove it: by default the fallback has the lease's names.",
        )
    for name in PARSERS:
        mine, other = lease.values.get(name), fallback.values.get(name)
        if mine != other:
            there = f"write `{format_value(mine)}` there" if mine is not None else "write null there"
            yield Problem(
                setting(f"fallback.vllm.{name}"),
                NOT_SET if other is None else format_value(other),
                f"responses have another form than those of the lease, whose {name} is {_text_of(mine)}: clients that "
                "parse them fail while the fallback serves.",
                f"{there}, or the fallback's value in {setting(f'vllm.{name}')}.",
            )
    if lease.pooled_at is not None and lease.model != fallback.model:
        yield Problem(
            setting("fallback.model"),
            fallback.model,
            f"vectors and scores of two models cannot be compared: those of {lease.model} would be mixed with its.",
            "remove it.",
        )
    if fallback.max_model_len < lease.max_model_len and not accepts_shorter:
        yield Problem(
            setting("fallback.vllm.max-model-len"),
            fallback.max_model_len,
            f"requests of more tokens, up to the lease's {lease.max_model_len}, get 400 while the fallback serves.",
            f"raise it to {lease.max_model_len}, lower {setting('vllm.max-model-len')} to {fallback.max_model_len}, or "
            f"accept it: `{setting('fallback.accept_shorter_context')}: true`.",
        )


def notes(lease: Promise, fallback: Promise) -> Iterator[str]:
    """What a caller notices while the fallback serves, and no request fails of, but for accepted lengths."""
    if lease.model != fallback.model:
        yield f"answers come from {fallback.model} in place of {lease.model}"
    if fallback.max_model_len < lease.max_model_len:
        yield f"requests of more than {fallback.max_model_len} tokens get 400; the lease takes {lease.max_model_len}"


def _text_of(value: object) -> str:
    return "not set" if value is None else format_value(value)
