"""The table against the installed SDK: no property that the SDK lacks, and no silent gap where it has more."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.fields import Fields, Kind, Mark
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import Provider, ServedProvider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.sdk import arguments_of
from pulumi_offline_support.sdk_properties import EACH, LEFT_OUT, UNSEEN, compare_properties

pytestmark = pytest.mark.slow  # loads all of the SDK that there is for networks


@pytest.mark.parametrize("token", TYPES)
def test_the_row_has_the_properties_of_the_sdk(token: str) -> None:
    # The provider's own, between the program's labels and Google's.
    fields = tuple(item for item in TYPES[token].fields if not item.name.startswith("effective"))
    differences = set(compare_properties(fields, *arguments_of(token), Mark.OUTPUT | Mark.REFUSED))
    assert differences == {f"-{path}" for path in LEFT_OUT.get(token, {})}


@pytest.mark.parametrize("token", TYPES)
def test_the_row_has_the_properties_that_the_sdk_shows_of_a_resource(token: str) -> None:
    differences = set(compare_properties(TYPES[token].fields, *arguments_of(token, "_{}State"), Mark(0)))
    assert differences == {f"-{path}" for path, why in LEFT_OUT.get(token, {}).items() if why == UNSEEN}


def asked_for(fields: Fields, path: str) -> tuple[dict[str, Any], str]:
    """Inputs with a property at a path, and how Check names it."""
    first, _, rest = path.partition(".")
    name = re.sub(r"_(\w)", lambda field: field[1].upper(), first)
    if not rest:
        return {name: "x"}, name
    item = next(field for field in fields if field.name == name)
    inner, where = asked_for(item.fields, rest)
    return ({name: [inner]}, f"{name}[0].{where}") if item.kind is Kind.BLOCKS else ({name: inner}, f"{name}.{where}")


@pytest.fixture(scope="module")
def checking() -> Iterator[Provider]:
    """One provider for all: Check sends no request and keeps nothing."""
    from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin

    with FakeGoogle() as google:
        provider = ServedProvider(GooglePlugin(google.environment()))
        yield provider
        provider.close()
        assert google.requests == []


@pytest.mark.parametrize(("token", "path"), EACH)
def test_what_is_left_out_is_refused_by_name(token: str, path: str, checking: Provider) -> None:
    inputs, where = asked_for(TYPES[token].fields, path)
    refusals = {failure.property: failure.reason for failure in checking.check(token, inputs).failures}
    assert "Remove it" in refusals[where]
    assert where.rsplit(".", 1)[-1] in refusals[where]
