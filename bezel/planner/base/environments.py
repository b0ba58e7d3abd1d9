"""Names of environments, and the one whose stacks are made to be deleted. Pure.

Leaves out which environments are protected at a forge and what they may cost: that is said in `bezel.toml` and in the
configuration of the packs.
"""

import re

PATTERN = "^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$"
"""A word that is a label, a part of a file's name, a key of TOML and an environment of a forge alike."""
THROW_AWAY = "dev"
"""Its stacks scale to zero and may be deleted; the plan protects those of each other environment as `prod`."""


def is_environment(text: str) -> bool:
    """Whether a text can be the name of an environment."""
    return re.fullmatch(PATTERN, text) is not None
