"""Every body that the published provider has sent in the recordings: localcloud takes each of its fields.

BEZEL_TRAFFIC names the folder of recordings. A method that localcloud does not serve is refused by its name, whatever
its body holds.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.http.messages import checked_message, definitions
from bezel_localcloud.http.methods import Method, served_methods
from localcloud_support.discovery_check import NULL_REMOVES, Called, method_of

TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
METHODS = {method.id: method for method in served_methods().values()}
recorded = pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings")


def bodies() -> Iterator[tuple[str, Called, Any]]:
    """The request line, the method and the body of every recorded request for a method that is served."""
    for file in sorted(Path(str(TRAFFIC)).glob("**/http*/*.lro-*.json")):
        for exchange in json.loads(file.read_text())["exchanges"]:
            body, call = exchange.get("body"), method_of(exchange["method"], exchange["path"])
            if isinstance(body, dict) and "_multipart" not in body and call is not None and call.id in METHODS:
                yield f"{exchange['method']} {exchange['path']}", call, body


def dropped_values(sent: Any, kept: Any, kind: str, path: str = "") -> Iterator[str]:
    """The values of a body that its normal form lacks, but for nulls and fields that are output only."""
    api, _, _ = kind.partition(".")
    if isinstance(sent, dict):
        fields = definitions().get(kind, {})
        for name, value in sent.items():
            inner = fields.get(name, "")
            if value in (None, []) or inner.startswith("!") or (value == "" and inner.startswith("enum:")):
                continue
            if not isinstance(kept, dict) or name not in kept:
                yield f"{path}.{name}"
            else:
                yield from dropped_values(value, kept[name], f"{api}.{inner.lstrip('[]{}@')}", f"{path}.{name}")
    elif isinstance(sent, list):
        for index, item in enumerate(sent):
            yield from dropped_values(item, kept[index], kind, f"{path}[{index}]")


def problems(method: Method, call: Called, body: dict[str, Any]) -> list[str]:
    """What localcloud refuses in a body, or drops from it; a method without a message takes an empty one."""
    if not method.request:
        return [] if not body else ["a body that the method has no message for"]
    sent = {key: value for key, value in body.items() if key not in method.bound}
    try:
        kept = checked_message(sent, method.request, "", keep_null=call.source.document in NULL_REMOVES)
    except ApiError as error:
        return [str(error)]
    return list(dropped_values(sent, kept, method.request))


@recorded
@pytest.mark.slow
def test_localcloud_takes_each_field_that_was_recorded() -> None:
    compared, problems_of_line = 0, {}
    for line, call, body in bodies():
        compared += 1
        if wrong := problems(METHODS[call.id], call, body):
            problems_of_line[line] = wrong
    assert problems_of_line == {}
    assert compared > 70, "as many as when this was written, and more"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"displayName": "CI"}, []),
        ({"displayName": "CI", "state": "ACTIVE"}, []),  # output only: it may be sent, and means nothing
        ({"displayname": "CI"}, ['Unknown name "displayname"']),
        ({"disabled": "often"}, ["Invalid value at 'disabled'"]),
    ],
)
def test_a_field_that_localcloud_lacks_would_be_noticed(body: dict[str, Any], wrong: list[str]) -> None:
    path = "/iam/v1/projects/p/locations/global/workloadIdentityPools"
    call = method_of("POST", path)
    assert call is not None
    problems_of_body = problems(METHODS[call.id], call, body)
    assert len(problems_of_body) == len(wrong)
    assert all(part in text for part, text in zip(wrong, problems_of_body, strict=True))
