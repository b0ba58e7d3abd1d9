"""Schema of a resource type: one `Field` per property, with its kind and marks.

The names are Pulumi's (camelCase, plural lists). `wire` is the place of the value in Google's JSON, as a dotted path;
without it the name is the same. Owns the declarations only: mapping.py, check.py and plan.py interpret them.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass


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
    EMPTY = enum.auto()  # an object that is sent although it is empty, if the program sets it
    SET = enum.auto()  # unordered
    SHORT = enum.auto()  # Google returns a path, the property is its last segment
    LISTED = enum.auto()  # one object here, a list of one on the wire
    WRAPPED = enum.auto()  # a list of one here, one object on the wire
    PROJECT = enum.auto()  # filled in from the provider's project, in preview too
    INPUT_ONLY = enum.auto()  # sent, and unchanged where the response lacks it
    NULL = enum.auto()  # stays null where the response lacks it
    REFUSED = enum.auto()  # a property of the published provider that the stand-in does not support: Check refuses it


NOTHING = Mark(0)
REQUIRED, COMPUTED, OUTPUT, NEW, SECRET = Mark.REQUIRED, Mark.COMPUTED, Mark.OUTPUT, Mark.NEW, Mark.SECRET
LOCAL, CREATE_ONLY, ZERO, SET, SHORT = Mark.LOCAL, Mark.CREATE_ONLY, Mark.ZERO, Mark.SET, Mark.SHORT
LISTED, WRAPPED, PROJECT, EMPTY = Mark.LISTED, Mark.WRAPPED, Mark.PROJECT, Mark.EMPTY
UNSENT, UNREAD, KEYED = Mark.UNSENT, Mark.UNREAD, Mark.KEYED
INPUT_ONLY, NULL, REFUSED = Mark.INPUT_ONLY, Mark.NULL, Mark.REFUSED

Same = Callable[[object, object], bool]


@dataclass(frozen=True, slots=True)
class Field:
    """One property of a resource type."""

    name: str
    kind: Kind
    marks: Mark = NOTHING
    wire: str = ""
    default: str | int | bool | None = None
    fields: tuple["Field", ...] = ()
    same: Same | None = None  # an additional equality of two values
    renews: Same | None = None  # whether a change from the first value to the second replaces the resource

    @property
    def path(self) -> list[str]:
        """The path of the value in Google's JSON."""
        return (self.wire or self.name).split(".")

    @property
    def changeable(self) -> bool:
        """Whether an update can carry the property."""
        return not self.marks & (LOCAL | OUTPUT | UNSENT | CREATE_ONLY)


Fields = tuple[Field, ...]


def text(
    name: str,
    marks: Mark = NOTHING,
    wire: str = "",
    default: str | None = None,
    same: Same | None = None,
    renews: Same | None = None,
) -> Field:
    """A string."""
    return Field(name, Kind.TEXT, marks, wire, default, (), same, renews)


def flag(name: str, marks: Mark = NOTHING, wire: str = "", default: bool | None = None) -> Field:
    """A boolean."""
    return Field(name, Kind.FLAG, marks, wire, default)


def whole(name: str, marks: Mark = NOTHING, wire: str = "", default: int | None = None) -> Field:
    """An integer that fits in 32 bits."""
    return Field(name, Kind.WHOLE, marks, wire, default)


def big(name: str, marks: Mark = NOTHING, wire: str = "") -> Field:
    """A 64-bit integer: a number for Pulumi, a string in Google's JSON."""
    return Field(name, Kind.BIG, marks, wire)


def real(name: str, marks: Mark = NOTHING, wire: str = "") -> Field:
    """A floating-point number."""
    return Field(name, Kind.REAL, marks, wire)


def table(name: str, marks: Mark = NOTHING, wire: str = "") -> Field:
    """A map of strings."""
    return Field(name, Kind.TABLE, marks, wire)


def items(name: str, marks: Mark = NOTHING, wire: str = "") -> Field:
    """A list of strings."""
    return Field(name, Kind.ITEMS, marks, wire)


def block(name: str, *fields: Field, marks: Mark = NOTHING, wire: str = "") -> Field:
    """At most one object."""
    return Field(name, Kind.BLOCK, marks, wire, None, fields)


def blocks(name: str, *fields: Field, marks: Mark = NOTHING, wire: str = "") -> Field:
    """A list of objects."""
    return Field(name, Kind.BLOCKS, marks, wire, None, fields)


def asset(name: str, marks: Mark = NOTHING) -> Field:
    """A file or a text."""
    return Field(name, Kind.ASSET, marks)


def last_segment(left: object, right: object) -> bool:
    """Whether two references have the same last segment: `b/models` and `models`, or a full path and a name."""
    return str(left).rsplit("/", 1)[-1] == str(right).rsplit("/", 1)[-1]


def same_letters(left: object, right: object) -> bool:
    """Whether two values differ in upper and lower case only."""
    return str(left).lower() == str(right).lower()
