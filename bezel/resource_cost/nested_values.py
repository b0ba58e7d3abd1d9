"""Values of a resource at any depth, also inside JSON text, without those that only describe it.

A rule over all values holds for unknown resource types, too. Owns which types of resource buy and grant nothing, and
which inputs only describe a resource. Leaves what a value means to the rules.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from bezel.resource_cost.inputs import InputError
from bezel_base.errors import Problem

# Types that observe, limit or describe. Their filters and conditions name what other resources buy or grant.
_DESCRIBING = re.compile(
    r"(?:gcp|google-native):(?:billing|cloudasset|cloudquota|cloudsecuritycompliance|essentialcontacts|logging"
    r"|migrationcenter|monitoring|orgpolicy|securitycenter|securityposture|serviceusage)(?:/.*)?:\w+"
    r"|kubernetes:.*:(?:ConfigMap|CustomResourceDefinition|LimitRange|ResourceQuota|Secret)(?:List|Patch)?"
    r"|pulumi:.*"
    # Compares a service with its declaration, for which the service's own resource is checked.
    r"|(?:pulumi-python:dynamic/|bezel:)smoke:HealthCheck"
)
# Inputs that only describe a resource: they buy and grant nothing.
_WORDS_ABOUT = frozenset({"annotations", "description", "displayName", "display_name", "metadata"})
_SELECTING = frozenset({"nodelabels", "node_labels"})
"""Labels by which a node is selected."""
MOST_LEVELS, MOST_VALUES, MOST_LETTERS = 100, 10_000, 1_000_000
"""Bounds of what is read of one resource, and of one text: deeper or longer inputs are refused."""


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
    """Each value of a resource's inputs that does more than describe it; with `about`, descriptions too.

    Raises:
        InputError: they are nested too deep, or too many.
    """
    waiting: list[tuple[tuple[str, ...], object]] = [(path, inputs)]
    count = 0
    while waiting:
        here, item = waiting.pop()
        if len(here) > MOST_LEVELS:
            raise _too_much(here, f"more than {MOST_LEVELS} levels")
        if isinstance(item, str):
            inside = _written_out(item, here)
            if inside is not None:
                waiting.append((here, inside))
                continue
        elif isinstance(item, dict | list | tuple | Mapping):
            count += len(item)
            if count > MOST_VALUES:
                raise _too_much(here, f"more than {MOST_VALUES} values")
            waiting += reversed(_entries(here, item, about=about))
            continue
        yield Value(here, item)


def mappings(inputs: object) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    """Each mapping of a resource's inputs with its path, outer ones first; not those inside of text."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), inputs)]
    while waiting:
        here, item = waiting.pop()
        if isinstance(item, Mapping):
            yield here, item
        if isinstance(item, dict | list | tuple | Mapping):
            inside = [
                entry for entry in _entries(here, item, about=True) if isinstance(entry[1], Mapping | list | tuple)
            ]
            waiting += reversed(inside)


def _entries(
    path: tuple[str, ...], collection: Mapping[str, object] | Sequence[object], *, about: bool
) -> list[tuple[tuple[str, ...], object]]:
    if isinstance(collection, Mapping):
        named = ((str(key), value) for key, value in collection.items())
        return [((*path, name), value) for name, value in named if about or not _is_about(name)]
    return [((*path, str(number)), value) for number, value in enumerate(collection)]


@lru_cache(maxsize=4096)
def _is_about(name: str) -> bool:
    lower = name.lower()
    return name in _WORDS_ABOUT or (lower.endswith("labels") and lower not in _SELECTING)


def _too_much(path: tuple[str, ...], what: str) -> InputError:
    consequence = f"it has {what}, which no policy checks."
    return InputError(Problem(".".join(path[:3]) or "inputs", None, consequence, "write it in several resources."))


def _written_out(text: str, path: tuple[str, ...]) -> object:
    """The parsed value of JSON text; None for any other text, or without a mapping or list."""
    if len(text) > MOST_LETTERS:
        raise _too_much(path, f"a text of more than {MOST_LETTERS} characters")
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except RecursionError:
        raise _too_much(path, "text with too many levels") from None
    except ValueError:
        return None
