"""Property values as the engine sends them: protobuf structs, and the marks for unknown and secret values.

Leaves out resources. Source of the marks: SDK 3.274, sdk/go/common/resource/plugin/rpc.go and properties.go.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

Properties = dict[str, Any]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # list
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the mark of a secret, not one
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"


def unknown(value: object) -> bool:
    """Whether a value is not known yet (a preview's placeholder for an output)."""
    return isinstance(value, str) and value in _UNKNOWNS


def has_unknown(value: object) -> bool:
    """Whether a value is not known yet, or holds one that is not."""
    if isinstance(value, Mapping):
        return any(map(has_unknown, value.values()))
    return any(map(has_unknown, value)) if isinstance(value, list) else unknown(value)


def secret(value: object) -> Properties:
    """Return the value in the envelope that makes the engine encrypt it in the state."""
    return {SIGNATURE: SECRET, "value": value}


def decode(struct: struct_pb2.Struct) -> Properties:
    """Return a struct as plain Python values: whole numbers as int, secrets unwrapped, every unknown as `UNKNOWN`."""
    return {key: _decode(value) for key, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "struct_value":
        opened = decode(value.struct_value)
        return opened.get("value") if opened.get(SIGNATURE) == SECRET else opened
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    return value.bool_value if kind == "bool_value" else None


def encode(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return plain values as a struct; the inverse of `decode`."""
    struct = struct_pb2.Struct()
    for key, value in values.items():
        _encode(value, struct.fields[key])
    return struct


def _encode(value: Any, into: struct_pb2.Value) -> None:
    if isinstance(value, Mapping):
        into.struct_value.SetInParent()
        for key, item in value.items():
            _encode(item, into.struct_value.fields[key])
    elif isinstance(value, (list, tuple)):
        into.list_value.SetInParent()
        for item in value:
            _encode(item, into.list_value.values.add())
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, (int, float)):
        into.number_value = value
    elif value is None:
        into.null_value = struct_pb2.NULL_VALUE
    else:
        into.string_value = str(value)
