"""Where `mutate.py` takes things out, and which tests have to notice."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Files (patterns), what is removed in them (kinds of `mutants.py`), and the tests that have to notice.

    `harmless` names mutants by patterns of `file: name` that change nothing which could be seen, each with the reason.
    """

    about: str
    files: tuple[str, ...]
    kinds: tuple[str, ...]
    tests: tuple[str, ...]
    harmless: tuple[tuple[str, str], ...] = ()

    def excuse(self, name: str) -> str | None:
        """Why a mutant may live, if it may."""
        return next((why for pattern, why in self.harmless if fnmatch.fnmatchcase(name, pattern)), None)


AREAS = {
    "provider": Area(
        about="each row of the stand-in provider's mapping",
        files=("bezel/localcloud/providers/rows/*.py", "bezel/localcloud/providers/labels.py"),
        kinds=("rows",),
        tests=("tests/localcloud_providers",),
    ),
    "apis": Area(
        about="each validation of the Google APIs",
        files=(
            "bezel/localcloud/api.py",
            "bezel/localcloud/messages.py",
            "bezel/localcloud/policies.py",
            "bezel/localcloud/filters.py",
            "bezel/localcloud/masks.py",
            "bezel/localcloud/conditions.py",
            "bezel/localcloud/paging.py",
            "bezel/localcloud/partial.py",
            "bezel/localcloud/methods.py",
            "bezel/localcloud/apis/*.py",
            "bezel/localcloud/run/checks.py",
            "bezel/localcloud/run/job_checks.py",
            "bezel/localcloud/run/references.py",
            "bezel/localcloud/run/quotas.py",
        ),
        kinds=("refusals",),
        tests=("tests/localcloud",),
    ),
    "metrics": Area(
        about="each metric of the simulated vLLM",
        files=("bezel/localcloud/vllm/metrics.json",),
        kinds=("entries",),
        tests=("tests/localcloud_vllm",),
    ),
    "framing": Area(
        about="each rule of stream framing",
        files=(
            "bezel/localcloud/vllm/streams.py",
            "bezel/localcloud/vllm/chat.py",
            "bezel/localcloud/vllm/completions.py",
        ),
        kinds=("statements",),
        tests=("tests/localcloud_vllm",),
        harmless=(
            ("*: del scope", "marks an argument that the protocol gives and nothing here needs"),
            ("*: del index", "marks an argument that the interface gives and nothing here needs"),
            (
                "*streams.py: EventStream.__init__: super().__init__()",
                "fills fields of the parent that its own way of sending reads, and EventStream has another",
            ),
        ),
    ),
}
