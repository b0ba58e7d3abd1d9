"""Reusable Pulumi components: one a file, with its argument model; each works in other programs too.

| file | what it creates |
|---|---|
| `enabled_apis.py` | the Google APIs of the project that a stack needs |
| `runtime_identity.py` | the service account that the server runs as, and the secrets it may read |
| `weights_bucket.py` | the bucket of the weights (created or only used), readable by that account |
| `model_files.py` | nothing: it checks that the bucket holds a model before anything is paid for |
| `providers/model_files.py` | that check; `bezel.weights` defines a complete model |
| `container_image.py` | a pull-through repository, and the image's reference by digest |
| `vllm_container.py` | no resource: the container block of a service or job, typed |
| `cloud_run_gpu_service.py` | the service itself, and its invokers |
| `traffic_switch.py` | nothing: it moves the traffic to a checked revision |
| `global_address.py` | a load balancer with a domain's certificate, in front of services |
| `node_network.py` | the private network of nodes with accelerators, open to their gateway alone |
| `config/subnet_ranges.py` | nothing: the address range of each region's subnetwork |
| `identity_gateway.py` | a small service that lets only its invokers through to nodes |
| `config/gateway.py` | nothing: the configuration of the proxy in it |
| `cloud_run_service.py` | a service and the IAM members that may call it, for the components that have one |
| `lookups/cloud_run.py`, `providers/traffic_switch.py` | nothing: the lookup and the traffic move of a rollout |
| `lookups/quota.py` | nothing: the limits of quotas, and their use |
| `lookups/network.py` | nothing: the present state of a subnetwork |
| `arguments.py` | the base of the argument models and the options of children |
| `dynamic_plugin` | no resource: the plugin of dynamic resources, which Pulumi.yaml of a program names |

Leaves out rules (`bezel.planner`), the wiring of components (`stacks`), checks of a running server (`smoke`). The
modules are imported one by one, since the process that runs the dynamic resources loads this package too and should
not pay for providers that it never uses. Classes of pulumi_gcp are imported by name (`from pulumi_gcp.storage import
Bucket`): its modules load at their first use, and if two threads do that at once, Python 3.11 shows one of them a
module without its classes.
"""
