"""Reading of what needs a look after a deploy: drift of a stack, and what is over.

For the pipeline's commands and for operations. Leaves out destroying, and the issue of a forge (bezel.gitops.upkeep).
"""
