"""Operations on deployed stacks: typed functions behind the `bezel` command and the MCP server.

Owns what an operator asks and changes after a deploy. Each operation takes a `Context` and an argument model and
returns a result model. Leaves out the two faces, the rules of plans (bezel.planner) and of pipelines (bezel.gitops).
"""

from pathlib import Path

COMMANDS = Path(__file__).with_name("commands.json")
"""The commands of all operations, made by `python -m tools.docs.operations --write`."""
