"""A served model as one component: plan, prerequisites, check of the weights, server, health check and benchmark.

| file | what it is |
|---|---|
| `vllm_service.py` | `VllmService`: a GPU service on Cloud Run |
| `leased_vllm_service.py` | `LeasedVllmService`: leased machines behind a gateway |
| `cloud_run.py`, `lease.py`, `leases` | the children of each |
| `prerequisites.py`, `smoke_tests.py` | the children that both have |
| `quota.py`, `images.py`, `preparation.py` | what is looked up in the cloud before anything is declared |
| `children.py`, `limits.py` | names, order and time limits of the children |
| `declared.py` | what the health check knows of the declared resources |
| `environment.py` | project, time limit and mark of a simulation, from provider and environment |

Leaves out rules (`bezel.planner`), resources (`bezel_components`), checks of a running server (`bezel_smoke`), and a
stack's own files (`bezel_stacks`). The modules are imported one by one: no program pays for the kind that it has not.
"""
