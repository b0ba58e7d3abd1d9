"""Changes made outside of a program: live settings that cost money or open access, compared with what it declares.

Owns what counts as declared, the settings that are compared, and the requests that read them. Leaves the differences
that a refresh of the engine finds to `bezel.upkeep`, and what is done about a change to its callers.
"""
