"""Policy packs, enforced by the engine: what may be spent (`hardware_cost`) and what must be safe (`security`).

Each pack is a folder with a PulumiPolicy.yaml; its rules are plain functions over a resource's inputs. Only `adapter`
uses the library that serves them to the engine. Where not to put code: a price or a limit of the platform belongs to
`bezel.planner`, and no policy reads the program's own view of what it deploys.
"""
