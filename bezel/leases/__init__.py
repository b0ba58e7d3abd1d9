"""Leases of machines with accelerators: requested, awaited, moved to the next zone, never orphaned.

Owns the request bodies for TPU and GPU machines, the rules that lead to exactly one lease or to none, and the two APIs
that grant leases. Knows no Pulumi, no catalogue and no plan; the caller passes the desired state.

| module | what it owns |
|---|---|
| `names`, `requests`, `inputs` | names, labels, hash and differences; the two request bodies; checks of inputs |
| `state` | the observed and the desired state; the container that a machine runs; whether a lease is over |
| `reconcile` | the next step between both states |
| `messages`, `cost`, `clock` | texts for the user; money; time |
| `backends` | the interface of an API of leases; the two APIs |
| `controller` | observes, decides, acts, until the goal is reached |
| `inventory`, `availability` | all leases of a project; zones with capacity |
"""
