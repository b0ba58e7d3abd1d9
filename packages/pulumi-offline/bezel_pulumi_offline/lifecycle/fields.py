"""Schema of a resource type: one `Field` per property, with its kind and marks.

The names are Pulumi's (camelCase, plural lists). `wire` is the place of the value in Google's JSON, as a dotted path;
without it the name is the same. Owns the declarations only: mapping.py, check.py and plan.py interpret them.
"""

import enum
import functools
import json
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bezel_pulumi_offline.lifecycle.comparisons import COMPARISONS


class Kind(enum.Enum):
    """The shape of a value."""

    TEXT = "text"
    FLAG = "flag"
    WHOLE = "whole"
    BIG = "big"  # 64 bits: a JSON string on the wire
    REAL = "real"
    TABLE = "table"  # text to text
    ITEMS = "items"  # a list of texts
    BLOCK = "block"  # at most one object
    BLOCKS = "blocks"  # a list of objects
    ASSET = "asset"  # a file or a text, in the engine's envelope


class Mark(enum.Flag):
    """Attributes of a property beside its kind."""

    REQUIRED = enum.auto()
    COMPUTED = enum.auto()  # optional; Google chooses it where the program does not
    OUTPUT = enum.auto()  # set by Google only
    NEW = enum.auto()  # a change replaces the resource
    SECRET = enum.auto()  # encrypted in the state
    LOCAL = enum.auto()  # the provider's own, or part of the URL: not in a body
    UNREAD = enum.auto()  # sent, and never in a response
    UNSENT = enum.auto()  # never in a body; read from a response that has it
    KEYED = enum.auto()  # a list here, a map by the members' id on the wire; an update sends it even when empty
    CREATE_ONLY = enum.auto()  # in the body of a create, never of an update
    ZERO = enum.auto()  # sent although it is zero (all others are left out)
    EMPTIED = enum.auto()  # a text that an update sends although it is empty, so that Google forgets a removed one
    EMPTY = enum.auto()  # an object that is sent although it is empty, if the program sets it
    SET = enum.auto()  # unordered
    SHORT = enum.auto()  # Google returns a path, the property is its last segment
    LISTED = enum.auto()  # one object here, a list of one on the wire
    WRAPPED = enum.auto()  # a list of one here, one object on the wire
    PROJECT = enum.auto()  # filled in from the provider's project, in preview too
    INPUT_ONLY = enum.auto()  # sent, and unchanged where the response lacks it
    NULL = enum.auto()  # stays null where the response lacks it
    SECONDS = enum.auto()  # a duration that is sent in seconds, whatever its unit
    ECHOED = enum.auto()  # set by Google only, though a body carries it back as it was read: Check refuses it
    REFUSED = enum.auto()  # a property of the published provider that the stand-in does not support: Check refuses it


NO_MARK = Mark(0)
Same = Callable[[object, object], bool]


@dataclass(frozen=True, slots=True)
class Field:
    """One property of a resource type."""

    name: str
    kind: Kind
    marks: Mark = NO_MARK
    wire: str = ""
    default: str | int | bool | None = None
    fields: tuple["Field", ...] = ()
    same: Same | None = None  # an additional equality of two values
    renews: Same | None = None  # whether a change from the first value to the second replaces the resource
    terraform: str = ""  # the published provider's name, where it follows neither from `name` nor from `wire`
    hashed: str = ""  # the provider's own hash of a set's member, which gives the order in a request
    kept: str = ""  # the key of a map that stays where the program leaves it out; "*" is every key

    @property
    def path(self) -> list[str]:
        """The path of the value in Google's JSON."""
        return (self.wire or self.name).split(".")

    @property
    def provider_name(self) -> str:
        """The published provider's name of the property, with which its messages and its sets are made."""
        listed = self.kind in (Kind.ITEMS, Kind.BLOCKS) and len(self.path) == 1  # Pulumi's name is a plural
        name = self.path[0] if listed else self.name
        return self.terraform or re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), name)

    @property
    def changeable(self) -> bool:
        """Whether an update can carry the property."""
        return not self.marks & (Mark.LOCAL | Mark.OUTPUT | Mark.UNSENT | Mark.CREATE_ONLY)


Fields = tuple[Field, ...]


def read_fields(table: Mapping[str, Any], groups: Mapping[str, Any]) -> Fields:
    """Return the fields of a table of properties.

    A property is a text: its kind and marks, then `same=` and `renews=` with a comparison's name, `hash=`, `kept=`,
    `wire=`, `name=` with the published provider's name, and last `default=`. An object is a table that has this text
    as "@".

    Args:
        table: The properties by name; "@groups" names tables of `groups` to insert.
        groups: Tables that several types share.

    Raises:
        KeyError: A word names neither a mark nor a comparison nor a group.
    """
    result: list[Field] = []
    for name, row in table.items():
        if name == "@groups":
            result += [field for group in row.split() for field in read_fields(groups[group], groups)]
        elif name != "@":
            result.append(_field(name, row if isinstance(row, Mapping) else {"@": row}, groups))
    return tuple(result)


def _field(name: str, row: Mapping[str, Any], groups: Mapping[str, Any]) -> Field:
    text, _, default = row["@"].partition(" default=")
    kind, *marks = text.split()
    options = dict(word.split("=") for word in marks if "=" in word)
    return Field(
        name,
        Kind(kind),
        functools.reduce(operator.or_, (Mark[word.upper()] for word in marks if "=" not in word), NO_MARK),
        options.get("wire", ""),
        json.loads(default) if kind in ("flag", "whole", "big", "real") and default else default or None,
        read_fields(row, groups),
        COMPARISONS[options["same"]] if "same" in options else None,
        COMPARISONS[options["renews"]] if "renews" in options else None,
        options.get("name", ""),
        options.get("hash", ""),
        options.get("kept", ""),
    )
