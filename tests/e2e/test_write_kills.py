"""localcloud killed right before each write of each kind of API call: the call happened wholly or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.record_results import check_results

ROOT = Path(__file__).parents[2]
SHARES = 4
ABOUT = (
    "Each kind of API call that writes is made once for each of its writes (a statement of the database, or a change "
    "of a file or folder): right before that write, and at last after all of them, localcloud gets a SIGKILL. Opened "
    "again, its database is whole, files and rows agree, and everything that it holds is as before the call, or as "
    "after it."
)


@pytest.mark.long
@pytest.mark.timeout(300)  # two hundred kills, whose processes are waited for below
def test_every_call_is_done_wholly_or_not_at_all_when_killed(tmp_path: Path) -> None:
    variables = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'packages' / 'localcloud' / 'tests'}"}
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.e2e.write_kills",
                str(tmp_path / str(share)),
                str(share),
                str(SHARES),
            ],
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for share in range(SHARES)
    ]
    ended = [(process.communicate(timeout=250), process.returncode) for process in running]
    assert [(errors, code) for (_, errors), code in ended if code] == []
    outcomes = sorted(
        (json.loads(line) for (out, _), _ in ended for line in out.splitlines()), key=lambda one: one["call"]
    )
    assert [one for one in outcomes if one["problems"]] == []
    rows = [[one["call"], one["writes"], one["not at all"], one["wholly"]] for one in outcomes]
    # Each kill has one of the two ends, and every kind of call is seen to reach both.
    assert all(points == neither + both and neither and both for _, points, neither, both in rows)
    check_results(
        "kills-localcloud",
        {
            "title": "Kills of localcloud at every write",
            "document": "reliability",
            "provider": "none: requests over REST alone",
            "order": 23,
            "about": ABOUT,
            "command": ".venv/bin/pytest -q tests/e2e/test_write_kills.py",
            "checked": "make test-long",
            "stamp": None,
            "columns": ["call", "kill points", "not done at all", "done wholly"],
            "rows": rows,
            "notes": [],
        },
    )
