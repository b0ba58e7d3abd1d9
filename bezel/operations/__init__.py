"""Operations on deployed stacks: typed functions behind the `bezel` command and the MCP server.

Owns what an operator asks and changes after a deploy. Each operation takes a `Context` and an argument model and
returns a result model. Leaves out the two faces, the rules of plans (bezel.planner) and of pipelines (bezel.gitops).
"""
