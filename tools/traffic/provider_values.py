"""Values that the published Google provider allows, from the documentation of the installed SDK.

    python -m tools.traffic.provider_values [--write]

The provider's generator writes "Possible values are: ..." for exactly the properties whose schema allows one of a list
(`verify.ValidateEnum`; the empty text is one of them unless the property is required), and "Each value may be one of:
..." for those whose schema allows it of the items of a list, never with the empty text. `--write` puts them into
packages/pulumi-offline/bezel_pulumi_offline/resources/validations/enums.json; without it they are compared with that
file, and the exit status is 1 where they differ. Corrections of the documentation are in rules.json beside it.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Mark
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.sdk import documentation

FILE = (
    Path(__file__).parents[2]
    / "packages"
    / "pulumi-offline"
    / "bezel_pulumi_offline"
    / "resources"
    / "validations"
    / "enums.json"
)
_VALUES = re.compile(r"(?:Possible values are|(?P<each>Each value may be one of)): (?P<listed>(?:`[^`]+`(?:, )?)+)\.")


def documented_values() -> dict[str, dict[str, Any]]:
    """The allowed values by type and property, in the form of the file."""
    allowed: dict[str, dict[str, Any]] = {}
    for token in sorted(TYPES):
        for path, description in documentation(token).items():
            if match := _VALUES.search(description):
                required = bool(_field(TYPES[token].fields, path).marks & Mark.REQUIRED)
                empty = [] if required or match["each"] else [""]
                allowed.setdefault(token, {})[path] = {"one_of": [*re.findall(r"`([^`]+)`", match["listed"]), *empty]}
    return allowed


def _field(fields: Fields, path: str) -> Field:
    """The property at a dotted path."""
    name, _, rest = path.partition(".")
    field = next(item for item in fields if item.name == name)
    return _field(field.fields, rest) if rest else field


def text(values: dict[str, dict[str, Any]]) -> str:
    """The content of the file: a property a line."""
    types = [
        f"  {json.dumps(token)}: {{\n"
        + ",\n".join(f"    {json.dumps(path)}: {json.dumps(rule)}" for path, rule in sorted(rules.items()))
        + "\n  }"
        for token, rules in values.items()
    ]
    return "{\n" + ",\n".join(types) + "\n}\n"


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the file")
    now = text(documented_values())
    if parser.parse_args().write:
        FILE.write_text(now)
    same = FILE.exists() and FILE.read_text() == now
    if not same:
        print(f"{FILE.name} is not what the SDK's documentation says: python -m tools.traffic.provider_values --write")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
