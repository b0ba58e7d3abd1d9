"""Tables of the stand-in against the SDK, Google's documents and the published provider, for docs/fidelity.md."""

import runpy
import tomllib
from pathlib import Path

import pytest

from bezel_pulumi_offline.lifecycle.fields import Mark
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support import replacements, sdk_properties
from pulumi_offline_support.discovery import SCHEMAS, discovery
from pulumi_offline_support.discovery_kinds import ELSEWHERE, differing, wire_fields
from pulumi_offline_support.discovery_methods import LOG, ODD, odd, requests
from pulumi_offline_support.sdk import short
from tests.support.docs.markdown import ROOT
from tests.support.record_results import check_results
from tools.traffic.provider_values import FILE, documented_values, text

pytestmark = pytest.mark.slow  # loads all of the SDK that there is for networks
HERE = Path(__file__).parent
PUBLISHED = ROOT / "packages" / "pulumi-offline" / "tests" / "test_published_provider.py"


def test_the_table_of_what_is_left_out() -> None:
    rows = []
    for token in sorted(TYPES):
        paths = sdk_properties.LEFT_OUT.get(token, {})
        settable = sum(1 for _ in sdk_properties.settable(TYPES[token].fields))
        rows.append([short(token), settable + len(paths), settable, len(paths)])
    together: dict[tuple[str, str], list[str]] = {}
    for token, path in sdk_properties.EACH:
        together.setdefault((token, sdk_properties.LEFT_OUT[token][path]), []).append(path)
    notes = [
        {"what": f"{short(token)}: {', '.join(paths)}", "why": why, "evidence": "Check refuses each by name"}
        for (token, why), paths in together.items()
    ]
    check_results(
        "provider-properties",
        {
            "title": "Google provider: properties",
            "document": "fidelity",
            "order": 13,
            "about": "Every property that the installed SDK lets a program set, nested ones too, against the rows of "
            "the stand-in. One that a row lacks is refused by name in Check, so that nothing is dropped in silence.",
            "command": "pytest tests/standin_providers/test_result_tables.py",
            "stamp": None,
            "columns": ["resource", "compared", "known", "refused by name"],
            "rows": rows,
            "notes": notes,
        },
    )


def test_the_table_of_replacements() -> None:
    rows = []
    for token in sorted(TYPES):
        ways, fields = replacements.known_by(token), dict(replacements.settable(TYPES[token].fields))
        replacing = [path for path, item in fields.items() if item.marks & Mark.NEW]
        by = [sum(way in ways[path] for path in replacing) for way in ("path", "documentation", "discovery", "stated")]
        rows.append([short(token), len(fields), len(replacing), *by])
    notes = [
        {
            "what": f"{entry['of']}, {what}: {', '.join(entry['paths'])}",
            "why": entry["why"],
            "evidence": entry["evidence"],
        }
        for part, what in (("replaces", "a new resource"), ("updates", "in place"))
        for entry in replacements.STATED[part]
    ]
    check_results(
        "provider-replacements",
        {
            "title": "Google provider: update or replacement",
            "document": "fidelity",
            "order": 12,
            "about": "For every property of every row: whether a change of it takes a new resource, and how that is "
            "known (one property may be known in several ways): it is part of the resource's path; the SDK's "
            "documentation says so; Google's discovery document does; a source of its own is stated below.",
            "command": "pytest tests/standin_providers/test_result_tables.py",
            "stamp": None,
            "columns": ["resource", "properties", "replace", "path", "documentation", "discovery", "stated"],
            "rows": rows,
            "notes": notes,
        },
    )


def test_the_table_of_kinds() -> None:
    rows = []
    for token, (document, name) in sorted(SCHEMAS.items()):
        fields = sum(1 for _ in wire_fields(TYPES[token].fields))
        different = len(dict(differing(TYPES[token].fields, discovery(document)[name], document)))
        rows.append([short(token), f"{document} {name}", fields, fields - different, different])
    notes = [
        {"what": f"{short(token)}.{path}", "why": why, "evidence": f"{' '.join(SCHEMAS[token])}: {kind}"}
        for token, paths in ELSEWHERE.items()
        for path, (kind, why) in paths.items()
    ]
    check_results(
        "provider-kinds",
        {
            "title": "Google provider: places and kinds of properties",
            "document": "fidelity",
            "order": 14,
            "about": "What a row sends or reads against Google's discovery document: that there is such a property at "
            "that place, and of that kind (64-bit integers are strings on the wire, 32-bit ones numbers). Members of "
            "policies and enabled services have no body of their own and are left out.",
            "command": "pytest tests/standin_providers/test_result_tables.py",
            "stamp": None,
            "columns": ["resource", "document", "compared", "equal", "explained"],
            "rows": rows,
            "notes": notes,
        },
    )


def test_the_table_of_methods() -> None:
    rows = []
    for token in sorted(LOG):
        all_of_it = requests(token)
        strange = sum(bool(odd(request)) for request in all_of_it)
        rows.append([short(token), len(all_of_it), len(all_of_it) - strange, strange])
    notes = [
        {"what": f"{request}: {text}", "why": why, "evidence": "recorded so: see the table of requests"}
        for (request, text), why in ODD.items()
    ]
    check_results(
        "provider-methods",
        {
            "title": "Google provider: requests against Google's documents",
            "document": "fidelity",
            "order": 15,
            "about": "Every request of the stand-in's own golden log, which a checkout has without the recordings, "
            "against Google's discovery documents: the method, its parameters, and each key of its body.",
            "command": "pytest tests/standin_providers/test_result_tables.py",
            "stamp": None,
            "columns": ["resource", "compared", "equal", "explained"],
            "rows": rows,
            "notes": notes,
        },
    )


def test_the_table_of_the_published_providers_behaviour() -> None:
    module = runpy.run_path(str(PUBLISHED))
    rows = module["ROWS"]
    assert all(name in module for *_, name in rows)
    refusals = (
        "check",
        "enums, regular expressions, lengths, conflicts and required properties, as the provider's schemas have them",
        "resources/validations, with a source for each type",
        "test_validations.py",
    )
    sets = (
        "state",
        "sets by their content: `envs`, `sourceRanges`, `targetTags`, `cleanupPolicies`",
        "https://github.com/zclconf/go-cty: cty/set_internals.go",
        "test_mapping.py",
    )
    elsewhere = tomllib.loads((HERE / "published_elsewhere.toml").read_text())
    tested = [(row["area"], row["behaviour"], row["evidence"], row["test"]) for row in elsewhere["row"]]
    check_results(
        "provider-published",
        {
            "title": "Google provider: what surprises in the published one",
            "document": "fidelity",
            "order": 15,
            "about": "Behaviour of the published provider that differs from what one expects of it, and that the "
            "stand-in shares: found by running this program with the published provider's own source of August 2026 "
            "on localcloud.",
            "command": "pytest tests/standin_providers/test_result_tables.py",
            "stamp": None,
            "columns": ["area", "behaviour", "source", "test"],
            "rows": [list(item) for item in sorted([*rows, *tested, refusals, sets], key=lambda item: item[:2])],
            "notes": elsewhere["note"],
        },
    )


def test_the_values_are_those_that_the_installed_sdk_documents() -> None:
    assert FILE.read_text() == text(documented_values()), "python -m tools.traffic.provider_values --write"
