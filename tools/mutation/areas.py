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
        files=("packages/pulumi-offline/bezel_pulumi_offline/resources/data/*.json",),
        kinds=("rows",),
        tests=("tests/standin_providers", "packages/pulumi-offline/tests"),
    ),
    "apis": Area(
        about="each validation of the Google APIs",
        files=(
            "packages/localcloud/bezel_localcloud/routing/router.py",
            "packages/localcloud/bezel_localcloud/http/messages.py",
            "packages/localcloud/bezel_localcloud/routing/iam_policies.py",
            "packages/localcloud/bezel_localcloud/services/logging/filters.py",
            "packages/localcloud/bezel_localcloud/http/update_mask.py",
            "packages/localcloud/bezel_localcloud/access/conditions.py",
            "packages/localcloud/bezel_localcloud/http/paging.py",
            "packages/localcloud/bezel_localcloud/http/partial_response.py",
            "packages/localcloud/bezel_localcloud/http/methods.py",
            "packages/localcloud/bezel_localcloud/services/**/*api.py",
            "packages/localcloud/bezel_localcloud/services/cloud_run/checks.py",
            "packages/localcloud/bezel_localcloud/services/cloud_run/job_checks.py",
            "packages/localcloud/bezel_localcloud/services/cloud_run/references.py",
            "packages/localcloud/bezel_localcloud/services/cloud_run/quotas.py",
        ),
        kinds=("refusals",),
        tests=("packages/localcloud/tests", "tests/localcloud"),
    ),
    "metrics": Area(
        about="each metric of the simulated vLLM",
        files=("packages/simulated-vllm/bezel_simulated_vllm/scheduling/metrics.json",),
        kinds=("entries",),
        tests=("packages/simulated-vllm/tests", "tests/simulated_vllm"),
    ),
    "framing": Area(
        about="each rule of stream framing",
        files=(
            "packages/simulated-vllm/bezel_simulated_vllm/api/streams.py",
            "packages/simulated-vllm/bezel_simulated_vllm/api/chat.py",
            "packages/simulated-vllm/bezel_simulated_vllm/api/completions.py",
        ),
        kinds=("statements",),
        tests=("packages/simulated-vllm/tests", "tests/simulated_vllm"),
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
