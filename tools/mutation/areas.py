"""Areas in which `mutate.py` removes things, with the tests that have to fail."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Area:
    """Files (patterns), the removals in them (kinds of `mutants.py`), and the tests that have to fail.

    `harmless` names mutants by patterns of `file: name` that change no visible behaviour, each with the reason.
    """

    about: str
    files: tuple[str, ...]
    kinds: tuple[str, ...]
    tests: tuple[str, ...]
    harmless: tuple[tuple[str, str], ...] = ()

    def excuse(self, name: str) -> str | None:
        """The reason why a mutant may survive, None if it may not."""
        return next((why for pattern, why in self.harmless if fnmatch.fnmatchcase(name, pattern)), None)


AREAS = {
    "provider": Area(
        about="each row of the stand-in provider's mapping",
        files=("bezel/standin_providers/resources/data/*.json",),
        kinds=("rows",),
        tests=("tests/standin_providers",),
    ),
    "apis": Area(
        about="each validation of the Google APIs",
        files=(
            "bezel/localcloud/routing/router.py",
            "bezel/localcloud/http/messages.py",
            "bezel/localcloud/routing/iam_policies.py",
            "bezel/localcloud/services/logging/filters.py",
            "bezel/localcloud/http/update_mask.py",
            "bezel/localcloud/access/conditions.py",
            "bezel/localcloud/http/paging.py",
            "bezel/localcloud/http/partial_response.py",
            "bezel/localcloud/http/methods.py",
            "bezel/localcloud/services/**/*api.py",
            "bezel/localcloud/services/cloud_run/checks.py",
            "bezel/localcloud/services/cloud_run/job_checks.py",
            "bezel/localcloud/services/cloud_run/references.py",
            "bezel/localcloud/services/cloud_run/quotas.py",
        ),
        kinds=("refusals",),
        tests=("tests/localcloud",),
    ),
    "metrics": Area(
        about="each metric of the simulated vLLM",
        files=("bezel/simulated_vllm/scheduling/metrics.json",),
        kinds=("entries",),
        tests=("tests/simulated_vllm",),
    ),
    "framing": Area(
        about="each rule of stream framing",
        files=(
            "bezel/simulated_vllm/api/streams.py",
            "bezel/simulated_vllm/api/chat.py",
            "bezel/simulated_vllm/api/completions.py",
        ),
        kinds=("statements",),
        tests=("tests/simulated_vllm",),
        harmless=(
            ("*: del scope", "marks an argument that the protocol passes and the method does not need"),
            ("*: del index", "marks an argument that the interface passes and the method does not need"),
            (
                "*streams.py: EventStream.__init__: super().__init__()",
                "fills fields of the parent that its own way of sending reads, and EventStream has another",
            ),
        ),
    ),
}
