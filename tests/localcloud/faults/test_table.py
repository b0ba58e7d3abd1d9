"""Every kind of fault has been tried under the real engine: it has a row in the table and the text that a user sees."""

import json
from pathlib import Path

from bezel_localcloud.faults.kinds import KINDS

TESTS = Path(__file__).parents[2]
BALANCERS = TESTS.parent / "packages" / "localcloud" / "tests" / "load_balancing" / "test_balancer_traffic.py"


def test_every_kind_has_a_row_and_a_text_and_nothing_else_has() -> None:
    rows = json.loads((TESTS / "results" / "faults.json").read_text())["rows"]
    assert [row[0] for row in rows] == list(KINDS)
    assert sorted(file.stem for file in (TESTS / "e2e" / "goldens" / "faults").glob("*.txt")) == sorted(KINDS)


def test_every_kind_of_a_load_balancer_is_tried_by_its_clients() -> None:
    text = BALANCERS.read_text()
    assert [name for name, kind in KINDS.items() if kind.place == "balancer" and f'fault("{name}"' not in text] == []


def test_each_row_has_its_cause_its_text_its_rest_and_its_repair() -> None:
    for kind, command, seen, left, following in json.loads((TESTS / "results" / "faults.json").read_text())["rows"]:
        assert command.startswith(f"`bezel local fault add {kind}")
        golden = (TESTS / "e2e" / "goldens" / "faults" / f"{kind}.txt").read_text()
        assert seen in golden
        assert "0 pending" not in left
        assert "nothing pending" in left
        assert following
