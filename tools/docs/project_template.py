"""Template of a new project: what in it is a copy of this repository's files, and its stack file.

`python -m tools.docs.project_template --write` writes them into templates/gemma; without the option it names those that
differ, with exit status 1.
"""

from __future__ import annotations

import json
import sys

from bezel.cli.new.choice import DEFAULT_MODEL, choose
from bezel.cli.new.stack_text import stack_text
from bezel.cli.new.template import STACK_FILE
from tools.docs.generated_sections import ROOT

TEMPLATE = ROOT / "templates" / "gemma"
_PLUGIN = "pulumi-resource-pulumi-python"
_COPIES = {
    "__main__.py": "__main__.py",
    f"plugins/pulumi-python/{_PLUGIN}": f"components/bezel_components/dynamic_plugin/{_PLUGIN}",
    "stack.schema.json": "docs/stack.schema.json",
    **{f".github/workflows/{name}.yml": f".github/workflows/{name}.yml" for name in ("preview", "deploy", "nightly")},
    **{
        f"policies/{pack}/{name}": f"policies/{pack}/{name}"
        for pack in ("hardware_cost", "price", "security")
        for name in ("PulumiPolicy.yaml", "__main__.py")
    },
    **{
        f"policies/{pack}.{environment}.json": f"policies/{pack}.{environment}.json"
        for pack in ("hardware_cost", "security")
        for environment in ("dev", "prod")
    },
}
"""File of the template -> the file of this repository that it is a copy of."""


def made_files() -> dict[str, str]:
    """File of the template -> its text, of those that are made here."""
    copies = {path: (ROOT / source).read_text(encoding="utf-8") for path, source in _COPIES.items()}
    limits = json.loads(copies["policies/hardware_cost.dev.json"])
    return {**copies, STACK_FILE: stack_text(choose(DEFAULT_MODEL, "", "", limits))}


def main(flags: list[str]) -> int:
    """Write the files, or name those that differ; return the exit status."""
    differing = [
        path
        for path, text in made_files().items()
        if not (TEMPLATE / path).is_file() or (TEMPLATE / path).read_text(encoding="utf-8") != text
    ]
    if "--write" in flags:
        for path in differing:
            (TEMPLATE / path).parent.mkdir(parents=True, exist_ok=True)
            (TEMPLATE / path).write_text(made_files()[path], encoding="utf-8")
            (TEMPLATE / path).chmod(0o755 if path.endswith(_PLUGIN) else 0o644)
        return 0
    for path in differing:
        sys.stdout.write(f"{path}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
