"""Policy packs for the engine: what may be spent, what must be safe, and what it costs.

Each pack is a folder with a PulumiPolicy.yaml: `hardware_cost` and `security` refuse, `price` advises. Rules are plain
functions over a resource's inputs. Only `adapter` uses the library that serves them to the engine. Where not to put
code: a price or a limit of the platform belongs to `bezel.planner`, the reading of hardware from inputs to
`bezel.resource_cost`, and no policy reads the program's own view of what it deploys.
"""
