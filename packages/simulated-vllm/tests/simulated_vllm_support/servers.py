"""The servers that the recordings were made on, as command lines for the simulated and for a real vLLM.

`BEZEL_VLLM_URL` and `BEZEL_VLLM_CONFIGURATION` (set by tools/vllm/contract.py) put a real one in the simulated one's
place; tests of the other configurations are then skipped.
"""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Configuration:
    """How a server was started.

    Attributes:
        arguments: after the model; `{assistant}` stands for the assistant's path.
        headers: what every request carries.
        dead: whether its engine has died.
        samples: prefix of the samples that were recorded on it.
    """

    arguments: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()
    dead: bool = False


_PLAIN = ("--served-model-name=tiny-gemma4", "--max-model-len=4096")
_SMALL = (
    *("--served-model-name", "tiny-gemma4", "alias2", "--max-model-len=512", "--max-num-queued-reqs=4"),
    *("--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4"),
)
_NGRAM = '{"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":3,"prompt_lookup_min":1}'
CONFIGURATIONS = {
    "plain": Configuration(_PLAIN),
    "plain-dead": Configuration(_PLAIN, dead=True),
    "small": Configuration(_SMALL),
    "small-dead": Configuration(_SMALL, dead=True),
    "keyed": Configuration(
        (
            *(*_PLAIN, "--api-key=sk-test", "--enable-prompt-tokens-details", f"--speculative-config={_NGRAM}"),
            *("--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4"),
        ),
        (("authorization", "Bearer sk-test"),),
    ),
    "parsers": Configuration(
        (*_PLAIN, "--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4")
    ),
    # Short, so that an answer without a limit is.
    "generated": Configuration(
        (
            *("--served-model-name=tiny-gemma4", "--max-model-len=256"),
            *("--enable-auto-tool-choice", "--tool-call-parser=gemma4", "--reasoning-parser=gemma4"),
        )
    ),
    "mtp": Configuration((*_PLAIN, "--spec-method=mtp", "--spec-model={assistant}", "--spec-tokens=3")),
}


def real_url() -> str | None:
    """The real server under test, None where the simulated one is."""
    return os.environ.get("BEZEL_VLLM_URL")


def real_configuration() -> str:
    return os.environ.get("BEZEL_VLLM_CONFIGURATION", "plain")
