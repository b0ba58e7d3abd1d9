"""Policy packs: what may be spent (`hardware_cost`) and what must be safe (`security`), judged by the engine.

Each pack is a folder with a PulumiPolicy.yaml; its rules are plain functions over a resource's inputs. `adapter` alone
knows the library that serves them to the engine. Where not to put code: a price or a limit of the platform belongs to
`bezel.planner`, and nothing here asks the program what it thinks it deploys.
"""
