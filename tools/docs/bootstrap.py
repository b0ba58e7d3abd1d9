"""The `config:` section of bootstrap/bezel_bootstrap/Pulumi.yaml, generated from bezel.foundation.settings.

python -m tools.docs.bootstrap           the section
python -m tools.docs.bootstrap --write   puts it into the file
"""

import json
import sys
from typing import get_origin

from bezel.foundation.settings import NEEDED_BY_PIPELINE, Settings
from tools.docs.generated_sections import ROOT

FIRST = "# Made by `python -m tools.docs.bootstrap --write` from bezel/foundation/settings.py."
_KINDS: dict[object, str] = {int: "integer", bool: "boolean"}
FILE = ROOT / "bootstrap" / "bezel_bootstrap" / "Pulumi.yaml"


def section() -> str:
    """Every setting with its type, description and default; a required one has an empty default.

    The engine refuses a stack that lacks a key without a default, before the program can report every problem.
    """
    lines = [FIRST, "config:"]
    for name, field in Settings.model_fields.items():
        kind = "array" if get_origin(field.annotation) is tuple else _KINDS.get(field.annotation, "string")
        default = "" if field.is_required() else field.default
        required = " (required)" if field.is_required() or name in NEEDED_BY_PIPELINE else ""
        lines += [
            f"  {name}:",
            f"    type: {kind}",
            *(["    items:", "      type: string"] if kind == "array" else []),
            f"    description: {json.dumps(f'{field.description}{required}')}",
            f"    default: {json.dumps(default)}",
        ]
    return "\n".join(lines) + "\n"


def main(flags: list[str]) -> None:
    """Print the section, or write it."""
    if "--write" not in flags:
        sys.stdout.write(section())
        return
    before, _, _ = FILE.read_text(encoding="utf-8").partition(FIRST)
    FILE.write_text(before + section(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
