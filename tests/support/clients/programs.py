"""Runs of outside clients' programs, and the tables of `docs/fidelity.md` made of them.

A program (`tests/clients/programs/`) calls an unmodified client library and prints a JSON object a line for each call:
`{"call": "Bucket.create", "outcome": "passed", "text": ""}`, with an optional `client` where one program calls several.
Outcomes are `passed`, `not served` (the response had the reason `notServedByLocalcloud`) and `failed`.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.clients.environment import ROOT
from tests.support.record_results import RESULTS, check_results

PROGRAMS = ROOT / "tests" / "clients" / "programs"
OUTCOMES = ("passed", "not served", "failed")


@dataclass(frozen=True)
class ClientCall:
    """A call that a client made.

    Attributes:
        client: Name and version of the client, e.g. "google-cloud-run 0.16.0".
        name: The called method.
        outcome: One of `OUTCOMES`.
        text: The reason of an outcome other than "passed".
    """

    client: str
    name: str
    outcome: str
    text: str = ""


def run(
    command: Sequence[str | Path], environment: Mapping[str, str], *, client: str = "", timeout: float = 240
) -> list[ClientCall]:
    """Run a program with exactly the given variables; return its calls in order.

    Raises:
        AssertionError: It printed something else, exited with another status than 0, or made no call.
        subprocess.TimeoutExpired: It did not end in time.
    """
    ended = subprocess.run(
        [str(part) for part in command],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert ended.returncode == 0, f"exit status {ended.returncode}:\n{ended.stderr[-4000:]}\n{ended.stdout[-2000:]}"
    rows = [json.loads(line) for line in ended.stdout.splitlines() if line.strip()]
    calls = [ClientCall(row.get("client", client), row["call"], row["outcome"], row.get("text", "")) for row in rows]
    assert calls, f"it made no call:\n{ended.stderr[-4000:]}"
    assert {call.outcome for call in calls} <= set(OUTCOMES), calls
    return calls


def assert_served(calls: Iterable[ClientCall], *, not_served: Iterable[str] = ()) -> None:
    """Assert that no call failed, and that exactly the named ones are not served."""
    calls = list(calls)
    failed = [f"{call.client} {call.name}: {call.text}" for call in calls if call.outcome == "failed"]
    assert not failed, "\n".join(failed)
    unserved = {call.name for call in calls if call.outcome == "not served"}
    assert unserved == set(not_served), sorted(unserved ^ set(not_served))


def rows(calls: Iterable[ClientCall]) -> list[list[Any]]:
    """Rows of a table: client, calls tried, passed, not served."""
    by_client: dict[str, list[str]] = {}
    for call in calls:
        by_client.setdefault(call.client, []).append(call.outcome)
    return [
        [client, len(outcomes), outcomes.count("passed"), outcomes.count("not served")]
        for client, outcomes in by_client.items()
    ]


def table(title: str, order: int, about: str, test: str, calls: Iterable[ClientCall], **more: Any) -> dict[str, Any]:
    """The table of `docs/fidelity.md` for some calls; what is not served is listed below it by its calls' texts.

    Args:
        title: Heading.
        order: Position in the document.
        about: What was tried, in sentences.
        test: Path of the test that makes it.
        calls: Calls of one or several clients.
        more: Further keys, e.g. `notes`.
    """
    calls = list(calls)
    unserved: dict[str, list[str]] = {}
    for call in calls:
        if call.outcome == "not served":
            unserved.setdefault(f"{call.client}, {call.name}", []).append(call.text)
    notes = [
        {"what": what, "why": "not served", "evidence": "; ".join(dict.fromkeys(texts))}
        for what, texts in unserved.items()
    ]
    return {
        "title": title,
        "document": "fidelity",
        "order": order,
        "about": about,
        "command": f"pytest {test}",
        "stamp": None,
        "columns": ["client", "calls tried", "passed", "not served"],
        "rows": rows(calls),
        "notes": notes,
    } | more


def check_part(section: str, part: dict[str, Any]) -> None:
    """Compare or record the rows and notes of some clients in a table that several tests fill.

    Args:
        section: Name of the table's file in `tests/results`, without its ending.
        part: A `table` of the clients that this test calls; those of other clients stay as they are.

    Raises:
        AssertionError: As `check_results`.
    """
    file = RESULTS / f"{section}.json"
    present = json.loads(file.read_text()) if file.exists() else {"rows": [], "notes": []}
    packages = {_package(row[0]) for row in part["rows"]}
    rows = [row for row in present["rows"] if _package(row[0]) not in packages] + part["rows"]
    notes = [note for note in present["notes"] if _package(note["what"]) not in packages] + part["notes"]
    more = {"rows": sorted(rows, key=str), "notes": sorted(notes, key=lambda note: str(note["what"]))}
    check_results(section, part | more)


def check_openai(calls: Iterable[ClientCall]) -> None:
    """Compare or record the rows of some clients in the table of OpenAI's clients.

    Raises:
        AssertionError: As `check_results`.
    """
    about = (
        "Packages and load clients from PyPI and npm, unmodified, call a service with a simulated vLLM through Cloud "
        "Run's front. They are given its URL and, as the key, an identity token. A load counts as one call: it passes "
        "if all of its requests complete and the tokens add up."
    )
    part = table("Clients of OpenAI's API", 70, about, "", calls, command="make clients", checked="make clients")
    check_part("clients-openai", part)


def _package(client: str) -> str:
    """The name of a client without its version, e.g. "openai (npm)" of "openai (npm) 6.49.0, models retrieve"."""
    return re.sub(r" [\d.]+\S*(,.*)?$", "", client)
