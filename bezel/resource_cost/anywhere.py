"""Values of a resource at any depth, also inside JSON text, without those that only describe it.

A rule over all values holds for unknown resource types, too. Owns which types of resource buy and grant nothing, and
which inputs only describe a resource. Leaves what a value means to the rules.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

# Types that observe, limit or describe. Their filters and conditions name what other resources buy or grant.
_DESCRIBING = re.compile(
    r"(?:gcp|google-native):(?:billing|cloudasset|cloudquota|cloudsecuritycompliance|essentialcontacts|logging"
    r"|migrationcenter|monitoring|orgpolicy|securitycenter|securityposture|serviceusage)(?:/.*)?:\w+"
    r"|kubernetes:.*:(?:ConfigMap|CustomResourceDefinition|LimitRange|ResourceQuota|Secret)(?:List|Patch)?"
    r"|pulumi:.*"
    # Compares a service with its declaration, for which the service's own resource is checked.
    r"|pulumi-python:dynamic/smoke:HealthCheck"
)
# Inputs that only describe a resource: they buy and grant nothing.
_WORDS_ABOUT = frozenset({"annotations", "description", "displayName", "metadata"})


class Value(NamedTuple):
    """A value that is no mapping and no list, with its path of keys and indices."""

    path: tuple[str, ...]
    value: object

    @property
    def key(self) -> str:
        """The path's full name, e.g. `template.scaling.maxInstanceCount`."""
        return ".".join(self.path)

    @property
    def name(self) -> str:
        """The name of the input; for an entry of a list, the list's."""
        return next((part for part in reversed(self.path) if not part.isdigit()), "")


def describes_only(token: str) -> bool:
    """Whether a resource of this type buys and grants nothing by itself. A grant on such a resource does grant."""
    return _DESCRIBING.fullmatch(token) is not None and "iam" not in token.lower()


def values(inputs: object, path: tuple[str, ...] = (), *, about: bool = False) -> Iterator[Value]:
    """Each value of a resource's inputs that does more than describe it; with `about`, descriptions too."""
    if isinstance(inputs, Mapping):
        for key, held in inputs.items():
            name = str(key)
            if about or not (name in _WORDS_ABOUT or name.lower().endswith("labels")):
                yield from values(held, (*path, name), about=about)
    elif isinstance(inputs, list | tuple):
        for number, held in enumerate(inputs):
            yield from values(held, (*path, str(number)), about=about)
    elif (inside := _written_out(inputs)) is not None:
        yield from values(inside, path, about=about)
    else:
        yield Value(path, inputs)


def _written_out(value: object) -> object:
    """The parsed value of JSON text; None for any other value, or without a mapping or list."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
