"""The sticky comment of a pull request: what changes, what it costs, the verdicts, and what to do next.

Owns the reading of the pipeline's documents, the wording and its bounds, and keeping one comment. Leaves the documents
to the commands that write them, and the forge's API to `bezel.forge`.
"""
