"""Reusable Pulumi components: each file holds one, with its argument model, and each works in another program.

| file | what it makes |
|---|---|
| `enabled_apis.py` | the Google APIs of the project that a stack needs |
| `runtime_identity.py` | the service account that the server runs as, and the secrets it may read |
| `weights_bucket.py` | the bucket of the weights (made or only used), readable by that account |
| `model_files.py` | nothing: it looks whether the bucket holds a model before anything is paid for |
| `providers/model_files.py` | how it looks; `bezel.weights` says what a model is |
| `container_image.py` | a pull-through repository, and the image's reference by digest |
| `vllm_container.py` | no resource: the container block of a service or job, typed |
| `cloud_run_gpu_service.py` | the service itself, and who may call it |
| `traffic_switch.py` | nothing: it moves the traffic to a revision that was checked |
| `node_network.py` | the private network of nodes with accelerators, open to their gateway alone |
| `config/subnet_ranges.py` | nothing: which addresses a region's subnetwork gets |
| `identity_gateway.py` | a small service that lets its callers, and nobody else, through to nodes |
| `config/gateway.py` | nothing: what the proxy in it does, as its configuration |
| `invokers.py` | who may call a service |
| `lookups/cloud_run.py`, `providers/traffic_switch.py` | what a gated rollout asks beforehand, and how it moves |
| `lookups/quota.py` | nothing: what quotas allow, and what uses them |
| `lookups/network.py` | nothing: a subnetwork as it is |
| `arguments.py` | what all of them share |

What does not belong here: rules (they are `bezel.planner`'s), how the pieces fit together (`stacks`), checks of a
running server (`smoke`). The modules are imported one by one, since the process that runs the dynamic resources
loads this package too and should not pay for providers that it never uses. Classes of pulumi_gcp are imported by name
(`from pulumi_gcp.storage import Bucket`): its modules load at their first use, and where that happens in two threads at
once Python 3.11 shows one of them a module without its classes.
"""
