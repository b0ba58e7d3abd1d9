"""Leases of machines with accelerators: requested, awaited, moved to the next zone, never orphaned.

Owns the request bodies for TPU and GPU machines, the rules that bring about one lease or leave none, and the two APIs
that grant leases. Knows no Pulumi, no catalogue and no plan; the caller passes the desired state.

| module | what it owns |
|---|---|
| `names`, `requests`, `inputs` | names, labels, hash and differences; the two request bodies; checks of inputs |
| `wanted`, `observation`, `reconcile` | the desired state; the observed state; the next step between them |
| `messages`, `cost`, `clock` | texts for a person; money; time |
| `backend`, `tpu_backend`, `compute_backend` | what an API of leases has to offer; the two APIs |
| `controller` | looks, decides, acts, until the goal is reached |
| `inventory`, `availability` | all leases of a project; zones with capacity |
"""
