"""Foundation of a Google Cloud project for pipelines: state bucket, key, forge's identity, accounts, budget.

A Pulumi program of its own: `bezel init` runs it, and so does `pulumi up` in this folder.

| file | what it creates |
|---|---|
| `state_bucket.py` | the bucket of Pulumi's states, of reviewed plans and of locks |
| `state_key.py` | the key of Cloud KMS that encrypts the secrets in them |
| `forge_identity.py` | the pool and the provider that accept the forge's identity tokens, of one repository only |
| `pipeline_account.py` | a service account of the pipeline, with its roles, and the tokens that may act as it |
| `spending_alert.py` | the budget with its thresholds, and the address that hears of them |
| `stack_guard.py`, `providers/stack_guard.py` | nothing: it refuses a destroy while stacks are in the bucket |
| `settings.py`, `permissions.py`, `access.py` | nothing: settings, permissions, and who gets which |
| `lookups.py`, `stacks_in_bucket.py` | nothing: the project's number, what an earlier life of it left, its stacks |
| `config.py`, `deploy.py` | nothing: reading the configuration, and the wiring of all of them |

Leaves out the stacks that pipelines deploy (`stacks`), and the commands of the pipeline (`bezel.gitops`).
"""
