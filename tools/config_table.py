"""Prints what is described in bezel.planner.settings: the README's configuration table, or Pulumi.yaml's section.

python tools/config_table.py            the table, as Markdown
python tools/config_table.py --pulumi   the `config:` section of Pulumi.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bezel.planner.schema import configuration_table, project_yaml

if __name__ == "__main__":
    sys.stdout.write(project_yaml() if "--pulumi" in sys.argv[1:] else configuration_table())
