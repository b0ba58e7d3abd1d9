"""Texts generated from bezel.planner.base.settings: the configuration table of docs/stacks.md, Pulumi.yaml's section.

python -m tools.docs.planner.settings            the table, as Markdown
python -m tools.docs.planner.settings --pulumi   the `config:` section of Pulumi.yaml
python -m tools.docs.planner.settings --write    puts both into their files, and writes docs/stack.schema.json
"""

from __future__ import annotations

import json
import sys

from tools.docs.generated_sections import ROOT, put
from tools.docs.planner.schema import configuration_table, project_yaml, stack_file_schema


def main(flags: list[str]) -> None:
    """Print one of the two, or write both."""
    if "--write" not in flags:
        sys.stdout.write(project_yaml() if "--pulumi" in flags else configuration_table())
        return
    section = project_yaml()
    project = ROOT / "Pulumi.yaml"
    before, _, _ = project.read_text(encoding="utf-8").partition(section.splitlines(keepends=True)[0])
    project.write_text(before + section, encoding="utf-8")
    put(ROOT / "docs" / "stacks.md", "tools.docs.planner.settings", configuration_table())
    (ROOT / "docs" / "stack.schema.json").write_text(json.dumps(stack_file_schema(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
