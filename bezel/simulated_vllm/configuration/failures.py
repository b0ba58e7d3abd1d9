"""Errors of a start: vLLM's exception and the stage that raises it, which determines the log and the delay."""

from __future__ import annotations

from typing import Literal

Stage = Literal["config", "engine", "host-memory"]


class StartError(Exception):
    """A start that the real server would have refused.

    Args:
        kind: the qualified name of the exception that vLLM raises, e.g. `NotImplementedError`.
        message: its text.
        stage: "config" fails in the API process within seconds; "engine" fails in the engine's process once the
            weights are loaded, and the API process then logs that the cause is above; "host-memory" is the kernel
            killing the container.
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


def validation_error(model: str, message: str, *, kind: str = "value_error", field: str | None = None) -> StartError:
    """Return a refusal by one of vLLM's configuration classes, with pydantic's text.

    Args:
        model: the configuration class, e.g. ModelConfig.
        message: the reason.
        kind: pydantic's name of the kind of error.
        field: the refused field, where the error concerns one.
    """
    place = f"{field}\n  {message}" if field else f"  Value error, {message}"
    text = f"1 validation error for {model}\n{place} [type={kind}]\n"
    text += f"    For further information visit https://errors.pydantic.dev/2.14/v/{kind}"
    return StartError("pydantic_core._pydantic_core.ValidationError", text)


def exhausted(wanted: float, free: float) -> StartError:
    """Return the runtime's error for an allocation that does not fit, in bytes of one chip."""
    text = (
        f"RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate {wanted / (1 << 30):.2f}G. That "
        f"was not possible. There are {max(0.0, free) / (1 << 30):.2f}G free.; (0x0x0_HBM0)"
    )
    return StartError("jax.errors.JaxRuntimeError", text, "engine")
