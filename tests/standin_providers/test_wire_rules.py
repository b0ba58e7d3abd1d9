"""How the published provider retries, words its errors and writes its requests: each rule names its tests."""

import re
import tomllib
from pathlib import Path
from typing import Any

from tests.support.docs.markdown import ROOT
from tests.support.record_results import check_results

HERE = Path(__file__).parent
TESTS = ROOT / "packages" / "pulumi-offline" / "tests"
COMMAND = ".venv/bin/pytest tests/standin_providers/test_wire_rules.py"
AREAS = ("retries", "error texts", "requests")
FILES = ("test_rest.py", "test_error_texts.py", "test_wire.py", "test_account_and_object_updates.py")


def names_in(*files: Path) -> set[str]:
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}


def rules() -> list[dict[str, Any]]:
    return list(tomllib.loads((HERE / "wire_rules.toml").read_text())["rule"])


def test_every_rule_names_tests_that_are_there_and_where_it_was_seen() -> None:
    names = names_in(*TESTS.glob("test_*.py"), *HERE.glob("test_*.py"))
    for rule in rules():
        assert set(rule["holds"]) | set(rule["twins"]) <= names, rule["rule"]
        assert rule["holds"], rule["rule"]
        assert rule["twins"], rule["rule"]
        assert rule["area"] in AREAS, rule["rule"]
        assert re.search(r"driven|google-beta |decision ", rule["seen"]), rule["rule"]


def test_every_test_of_these_files_holds_a_rule_or_is_a_twin() -> None:
    named = {name for rule in rules() for name in (*rule["holds"], *rule["twins"])}
    left = names_in(*(TESTS / name for name in FILES)) - named
    assert left == {"test_an_answer_that_is_no_json_is_said"}


def test_the_table_of_the_rules_is_current() -> None:
    ordered = sorted(rules(), key=lambda rule: AREAS.index(rule["area"]))
    check_results(
        "provider-wire",
        {
            "title": "Google provider: retries, errors and requests beyond the recordings",
            "document": "fidelity",
            "order": 18,
            "about": "What the published provider does where no recording shows it, and the stand-in with it. Driven: "
            "the provider's own source of August 2026 (upstream google-beta 8.0.0), bridged, in place of the stand-in "
            "on localcloud, with the unchanged program and seven stacks. Where the older recordings above differ, the "
            "newer version holds.",
            "command": COMMAND,
            "stamp": None,
            "columns": ["area", "rule", "held by", "seen"],
            "rows": [
                [rule["area"], rule["rule"], ", ".join(dict.fromkeys([*rule["holds"], *rule["twins"]])), rule["seen"]]
                for rule in ordered
            ],
            "notes": [
                {
                    "what": "a batch of APIs that fails",
                    "why": "the published provider then enables each of its APIs by a request of its own; the stand-in "
                    "reports the failure of the batch for each",
                    "evidence": "google-beta transport/batcher.go",
                },
                {
                    "what": "a secret whose ttl changes with something else",
                    "why": "the same paths are in the updateMask in another order, which means nothing to Google",
                    "evidence": "driven",
                },
                {
                    "what": "requests after the limit",
                    "why": "where the limit passes during a request, the published provider reports the failure and "
                    "may send that request again in the background; the stand-in sends nothing more",
                    "evidence": "terraform-plugin-sdk helper/retry/state.go (refreshGracePeriod)",
                },
            ],
        },
    )
