"""The provider's process, killed with SIGKILL at every request of every call: the next one goes on."""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from provider_kills import BOUNDARIES, Outcome, Scene
from provider_sdk import short
from record_results import check_results

VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
Tried = dict[tuple[str, str, int, str], Outcome]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Scene() as opened:
        yield opened


@pytest.fixture(scope="module")
def tried() -> Tried:
    return {}


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda boundary: "-".join(map(str, boundary)))
def test_the_next_provider_goes_on(boundary: tuple[str, str, int, str], scene: Scene, tried: Tried) -> None:
    kind, operation, _, _ = boundary
    outcome = tried[boundary] = scene.kill(*boundary)
    assert outcome.taken_over <= (operation == "create")
    # Versions have no name that a repeated create could meet: the first one stays until its secret goes.
    assert len(outcome.left) <= (kind == VERSION and operation == "create")


def test_the_table_says_what_was_tried(tried: Tried) -> None:
    if len(tried) < len(BOUNDARIES):
        pytest.skip("only a part of the boundaries was tried")
    counts: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for (kind, operation, _, _), outcome in sorted(tried.items()):
        counts[kind, operation].append(outcome)
    rows = [
        [
            short(kind),
            operation,
            len(outcomes),
            sum(not one.taken_over for one in outcomes),
            sum(one.taken_over for one in outcomes),
        ]
        for (kind, operation), outcomes in counts.items()
    ]
    table = {
        "title": "Google provider: SIGKILL at every request",
        "document": "reliability",
        "order": 20,
        "about": "The stand-in provider's process is killed at each request of each call, once before Google sees the "
        "request and once after Google has done what it asks for. Then the next process is asked to do the same, and "
        "the resource has to be there once, as wanted, and to go away without a rest. `taken over` counts creates that "
        "Google refuses with 409 because the killed one had made the resource: the refusal names the repair, and "
        "reading the resource by the id that follows from its inputs yields a state that needs an update at most.",
        "command": "pytest tests/e2e/test_provider_kills.py",
        "stamp": None,
        "columns": ["resource", "operation", "kill points", "went on", "taken over"],
        "rows": rows,
        "notes": [
            {
                "what": "secretmanager.SecretVersion, create: the version of the killed run stays",
                "why": "A version has no name of the program's that a repeated create could meet. It holds the same "
                "value, and goes with its secret; the published provider adds it in the same way.",
                "evidence": "discovery document secretmanager v1: projects.secrets.addVersion has no request id; the "
                "recorded create starts with :addVersion",
            }
        ],
    }
    check_results("kills-provider", table)
