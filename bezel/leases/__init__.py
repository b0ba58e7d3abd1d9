"""Leases of machines with accelerators: asked for, waited for, moved on to the next zone, and never orphaned.

Owns what a request for a TPU or a GPU machine says, the rules by which one lease is brought about or none is left, and
the two APIs that grant one. Knows no Pulumi, no catalogue and no plan; whoever calls says what is wanted.

| module | what it owns |
|---|---|
| `names`, `bodies`, `inputs` | names, labels, hash and differences; the two bodies; what cannot work |
| `observation`, `rules`, `told`, `cost`, `clock` | what is seen, what follows from it, how it is told; money and time |
| `back_end`, `queued_resources`, `machines` | what an API is asked; the two APIs |
| `engine` | looks, decides, acts, until the goal is reached |
| `fleet`, `find` | all leases of a project; where one could be had |
"""
