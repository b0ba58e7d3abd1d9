"""Single values in the text of a stack file: they are there afterwards, and nothing else has changed."""

import difflib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.stack_edits.file_text import with_setting
from bezel.operations.stack_edits.removed_text import without_setting
from bezel_base.errors import UserError

MIN, MAX = ("scaling", "min_instances"), ("scaling", "max_instances")
FULL = """\
# Gemma on one L4.
config:
  bezel:model: gemma-4-12b-it-qat-w4a16  # 4 bit
  bezel:scaling:
    # Nobody is there at night.
    min_instances: 0   # costs nothing
    max_instances: 3
  # Spending.
  bezel:cost: {max_hourly_usd: 1.10}

encryptionsalt: v1:abc
"""


def with_value(text: str, path: tuple[str, ...] = MIN, value: int | str = 7) -> str:
    return with_setting(text, "Pulumi.dev.yaml", "bezel", path, value)


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


@pytest.mark.parametrize(
    ("text", "gone", "new"),
    [
        (FULL, ["    min_instances: 0   # costs nothing"], ["    min_instances: 7   # costs nothing"]),
        (
            FULL.replace("    min_instances: 0   # costs nothing\n", ""),
            [],
            ["    min_instances: 7"],
        ),
        ("config:\n  bezel:model: m\n", [], ["  bezel:scaling:", "    min_instances: 7"]),
        ("config:\n  bezel:model: m", [], ["  bezel:scaling:", "    min_instances: 7"]),
        ("config:\n    bezel:model: m\n\n# End.\n", [], ["    bezel:scaling:", "      min_instances: 7"]),
        ("config:\n  bezel:labels:\n    a: b\nencryptionsalt: v\n", [], ["  bezel:scaling:", "    min_instances: 7"]),
        (
            "config:\n  bezel:scaling: {max_instances: 3} # few\n",
            ["  bezel:scaling: {max_instances: 3} # few"],
            ["  bezel:scaling: {max_instances: 3, min_instances: 7} # few"],
        ),
        ("config:\n  bezel:scaling: {}\n", ["  bezel:scaling: {}"], ["  bezel:scaling: {min_instances: 7}"]),
        ("config:\n  bezel:scaling:\n", ["  bezel:scaling:"], ["  bezel:scaling: {min_instances: 7}"]),
        ("config:\n  bezel:scaling: ~\n", ["  bezel:scaling: ~"], ["  bezel:scaling: {min_instances: 7}"]),
        ("config:\n  scaling: {min_instances: 1}\n",
          ["  scaling: {min_instances: 1}"], ["  scaling: {min_instances: 7}"]),
        (
            "config: {bezel:model: m}\n",
            ["config: {bezel:model: m}"],
            ["config: {bezel:model: m, bezel:scaling: {min_instances: 7}}"],
        ),
        ("config:\n", ["config:"], ["config: {bezel:scaling: {min_instances: 7}}"]),
        ("", [], ["config:", "  bezel:scaling:", "    min_instances: 7"]),
        ("# Nothing yet.", [], ["config:", "  bezel:scaling:", "    min_instances: 7"]),
        ("secretsprovider: passphrase\n", [], ["config:", "  bezel:scaling:", "    min_instances: 7"]),
        (
            "config:\n  bezel:note: |\n    some\n    text\n  bezel:scaling:\n    min_instances: 1\n",
            ["    min_instances: 1"],
            ["    min_instances: 7"],
        ),
        ("config:\n  bezel:note: |\n    some\n    text\n", [], ["  bezel:scaling:", "    min_instances: 7"]),
        ('config:\n  "bezel:scaling":\n    min_instances: 1\n', ["    min_instances: 1"], ["    min_instances: 7"]),
    ],
)  # fmt: skip
def test_the_value_is_written_and_no_other_line_changes(text: str, gone: list[str], new: list[str]) -> None:
    after = with_value(text)
    assert changed_lines(text, after) == (gone, new)
    configuration = yaml.safe_load(after)["config"]
    assert (configuration.get("bezel:scaling") or configuration["scaling"])["min_instances"] == 7
    assert with_value(after) == after


def test_two_values_and_a_text_are_written_one_after_the_other() -> None:
    after = with_value(with_value(FULL, MAX, 9), ("restarted_at",), "2026-11-24T12:00:00Z")
    gone, new = changed_lines(FULL, after)
    assert gone == ["    max_instances: 3"]
    assert new == ["    max_instances: 9", '  bezel:restarted_at: "2026-11-24T12:00:00Z"']


def test_the_line_ends_of_the_file_are_kept() -> None:
    text = FULL.replace("\n", "\r\n")
    after = with_value(text, ("restarted_at",), "now")
    assert after.count("\r\n") == after.count("\n") == text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "config:\n  bezel:other: &shared {min_instances: 1}\n  bezel:scaling: *shared\n",
        "config:\n  bezel:scaling:\n    min_instances: &n 1\n    max_instances: *n\n",
        "config:\n  bezel:scaling: '{\"min_instances\": 1}'\n",
        "config:\n  bezel:scaling:\n    min_instances: [1]\n",
        "config:\n  bezel:scaling: [1]\n",
        "config: text\n",
        "config: {bezel:model: m,}\n",
    ],
)
def test_an_edit_that_cannot_be_made_alone_shows_the_line_to_write(text: str) -> None:
    """The file stays as it is, and the person writes the line."""
    with pytest.raises(UserError) as refused:
        with_value(text)
    assert "nothing was changed" in str(refused.value)
    assert 'write it by hand: {"bezel:scaling": {"min_instances": 7}}' in str(refused.value)


LEASE = "config:\n  bezel:lease:\n    zones:\n      - zone: a\n      - zone: b\n\n    patience: 30m\n  # Spending.\n"


def test_a_list_takes_the_place_of_a_list_and_a_single_value_of_none() -> None:
    after = with_value(LEASE, ("lease", "zones"), [{"zone": "c"}])
    assert yaml.safe_load(after)["config"]["bezel:lease"] == {"zones": [{"zone": "c"}], "patience": "30m"}
    assert after.endswith("\n\n    patience: 30m\n  # Spending.\n")
    with pytest.raises(UserError, match="by hand"):
        with_value(LEASE, ("lease", "zones"), 7)


@pytest.mark.parametrize(
    ("text", "path", "gone", "new"),
    [
        (FULL, MIN, ["    min_instances: 0   # costs nothing"], []),
        (FULL, ("model",), ["  bezel:model: gemma-4-12b-it-qat-w4a16  # 4 bit"], []),
        (FULL, ("cost", "max_hourly_usd"), ["  bezel:cost: {max_hourly_usd: 1.10}"], []),
        (FULL, ("rollout",), [], []),
        ("config: {a: 1, bezel:model: m}\n", ("model",), ["config: {a: 1, bezel:model: m}"], ['config: {"a": 1}']),
        (LEASE, ("lease", "zones"), ["    zones:", "      - zone: a", "      - zone: b"], []),
        ("config:\n  a: 1\n  bezel:note: |\n    some\n    text\n  b: 2\n", ("note",),
          ["  bezel:note: |", "    some", "    text"], []),
        ("config:\n  a: 1\n  bezel:model:", ("model",), ["  bezel:model:"], []),
    ],
)  # fmt: skip
def test_the_setting_is_removed_and_no_other_line_changes(
    text: str, path: tuple[str, ...], gone: list[str], new: list[str]
) -> None:
    after = without_setting(text, "Pulumi.dev.yaml", "bezel", path)
    assert changed_lines(text, after) == (gone, new)
    assert without_setting(after, "Pulumi.dev.yaml", "bezel", path) == after


@pytest.mark.parametrize(
    "text",
    [
        "config:\n  bezel:model: m\n",
        "config:\n  bezel:model: &m m\n  bezel:region: *m\n",
        "config:\n  <<: {bezel:model: m}\n  a: 1\n",
    ],
)
def test_a_setting_that_cannot_be_removed_alone_is_named(text: str) -> None:
    with pytest.raises(UserError, match='remove "bezel:model" by hand'):
        without_setting(text, "Pulumi.dev.yaml", "bezel", ("model",))


@pytest.mark.parametrize("text", ["config: [", "config:\n  a: 1\n  a: 2\n", "- 1\n", "text\n"])
def test_a_file_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        with_value(text)


PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "N", "Z", "P", "S")), max_size=12)
VALUES = st.one_of(st.integers(-9, 9**9), st.booleans(), PLAIN)
TREES = st.recursive(
    VALUES, lambda inner: st.dictionaries(PLAIN, inner, max_size=3) | st.lists(inner, max_size=3), max_leaves=6
)


@pytest.mark.slow
@given(
    others=st.dictionaries(st.from_regex(r"bezel:[a-q]{1,5}", fullmatch=True), TREES, max_size=4),
    section=st.none() | st.dictionaries(st.sampled_from(["min_instances", "max_instances", "more"]), st.integers(0, 9)),
    flow=st.sampled_from([None, True, False]),
    value=st.integers(0, 1000),
)
def test_only_the_value_differs_in_any_file_or_nothing_is_changed(
    others: dict[str, object], section: dict[str, int] | None, flow: bool | None, value: int
) -> None:
    content = {"config": {**others, **({} if section is None else {"bezel:scaling": section})}}
    text = yaml.safe_dump(content, default_flow_style=flow, sort_keys=False, allow_unicode=True)
    try:
        after = with_value(text, MIN, value)
    except UserError:
        return
    expected = {"config": {**content["config"], "bezel:scaling": {**(section or {}), "min_instances": value}}}
    assert yaml.safe_load(after) == expected
