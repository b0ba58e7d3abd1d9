"""Errors of a start: vLLM's exception and the stage that raises it, which determines the log and the delay."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any, Literal

from bezel_simulated_vllm.release import DEFAULT_RELEASE, is_at_least

VALIDATION_ERROR = "pydantic_core._pydantic_core.ValidationError"
Stage = Literal["config", "engine", "application", "host-memory"]


class StartError(Exception):
    """A start that the real server would have refused.

    Args:
        kind: the qualified name of the exception that vLLM raises, e.g. `NotImplementedError`.
        message: its text.
        stage: "config" fails in the API process within seconds; "engine" fails in the engine's process once the
            weights are loaded, and the API process then logs that the cause is above; "application" fails in the API
            process once the engine runs; "host-memory" is the kernel killing the container.
    """

    def __init__(self, kind: str, message: str, stage: Stage = "config") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.stage: Stage = stage

    @property
    def status(self) -> int:
        """The exit status of the process."""
        return 137 if self.stage == "host-memory" else 1


def refusal(name: str, /, *, release: str = DEFAULT_RELEASE, **values: object) -> StartError:
    """Return vLLM's error of that name in `refusals.toml`, with the values in its text.

    Args:
        name: of the row; what its `since` has for a release replaces keys of the row from that release on.
        release: the one that starts.
        values: of the placeholders in the row.
    """
    chosen = dict(_refusals()[name])
    for first, changed in chosen.pop("since", {}).items():  # in the order of the releases
        chosen |= changed if is_at_least(release, first) else {}
    row = {key: text.format(**values) for key, text in chosen.items()}
    if "kind" in row:
        return StartError(row["kind"], row["text"], row.get("stage", "config"))
    kind = row.get("type", "value_error")
    raised = "Assertion failed" if kind == "assertion_error" else "Value error"
    reason = f"{row['field']}\n  {row['text']}" if "field" in row else f"  {raised}, {row['text']}"
    text = f"1 validation error for {row['class']}\n{reason} [type={kind}]\n"
    text += f"    For further information visit https://errors.pydantic.dev/2.14/v/{kind}"
    return StartError(VALIDATION_ERROR, text)


@functools.cache
def _refusals() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))
