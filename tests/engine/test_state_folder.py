"""Read from the engine's state: outputs, whole and with no secret, and whether a change has no end."""

import json
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.state.folder import SECRET, SIGNATURE, STACK, outputs_in, pending_in, restore
from bezel_base.errors import UserError

HIDDEN = {SIGNATURE: SECRET, "ciphertext": "v1:abc"}
ASSET = {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "text": "plain"}


def write_state(state: Path, latest: Any, stack: str = "l4-qat") -> Path:
    file = state / ".pulumi" / "stacks" / "bezel" / f"{stack}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"version": 3, "checkpoint": {"stack": stack, "latest": latest}}))
    return state


def stack_with(outputs: Any) -> dict[str, Any]:
    return {"resources": [{"type": "a:b:C", "outputs": {"url": "wrong"}}, {"type": STACK, "outputs": outputs}]}


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ({"url": "http://a", "n": [1, 2.5, None, True]}, {"url": "http://a", "n": [1, 2.5, None, True]}),
        ({"key": HIDDEN}, {"key": "[secret]"}),
        ({"all": {"of": [{"key": HIDDEN, "id": 1}]}}, {"all": {"of": [{"key": "[secret]", "id": 1}]}}),
        ({"file": ASSET}, {"file": ASSET}),
        ({}, {}),
    ],
)
def test_values_are_as_they_were_put_out_and_secrets_hidden(tmp_path: Path, kept: Any, read: Any) -> None:
    assert outputs_in(write_state(tmp_path, stack_with(kept)), "bezel", "l4-qat") == read


@pytest.mark.parametrize("latest", [None, {}, {"resources": None}, {"resources": [{"type": STACK}]}])
def test_a_stack_that_was_never_deployed_has_none(tmp_path: Path, latest: Any) -> None:
    assert outputs_in(write_state(tmp_path, latest), "bezel", "l4-qat") == {}


def test_no_stack_is_something_else_than_no_outputs(tmp_path: Path) -> None:
    assert outputs_in(write_state(tmp_path, {}, "l4-e2b"), "bezel", "l4-qat") is None
    assert outputs_in(tmp_path / "elsewhere", "bezel", "l4-qat") is None


@pytest.mark.parametrize(
    ("latest", "expected"),
    [
        ({"pending_operations": [{"type": "creating"}]}, True),
        ({"pending_operations": []}, False),
        ({"pending_operations": None}, False),
        ({"resources": []}, False),
        (None, False),
    ],
)
def test_a_change_without_an_end_is_seen(tmp_path: Path, latest: Any, expected: bool) -> None:
    assert pending_in(write_state(tmp_path, latest), "bezel", "l4-qat") is expected
    assert not pending_in(tmp_path, "bezel", "another")


CUT = ("", "{", "[]", '{"version": 3}', '{"version": 3, "checkpoint": {"stack": "l4-qat", "latest": {"resour')


@pytest.mark.parametrize("text", CUT)
def test_what_is_no_state_is_reported_with_its_repair(tmp_path: Path, text: str) -> None:
    file = write_state(tmp_path, {}) / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
    file.write_text(text)
    for read in (outputs_in, pending_in):
        with pytest.raises(UserError, match=r"bezel local recover l4-qat` restores the previous one"):
            read(tmp_path, "bezel", "l4-qat")


@pytest.mark.parametrize("text", CUT)
def test_a_state_that_was_cut_gives_way_to_the_one_before_it(tmp_path: Path, text: str) -> None:
    file = write_state(tmp_path, stack_with({"url": "http://a"})) / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
    before, attributes = file.with_name(f"{file.name}.bak"), file.with_name(f"{file.name}.attrs")
    whole = file.read_bytes()
    before.write_bytes(whole)
    file.write_text(text)
    attributes.write_text('{"md5": "of the cut one"}')
    assert restore(tmp_path, "bezel", "l4-qat")
    assert (file.read_bytes(), before.read_bytes(), attributes.exists()) == (whole, whole, False)
    assert outputs_in(tmp_path, "bezel", "l4-qat") == {"url": "http://a"}


@pytest.mark.parametrize("text", CUT)
def test_where_both_are_cut_nothing_is_changed_and_the_way_out_is_reported(tmp_path: Path, text: str) -> None:
    file = write_state(tmp_path, {}) / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
    file.write_text("{")
    file.with_name(f"{file.name}.bak").write_text(text)
    with pytest.raises(
        UserError, match=r"so is l4-qat.json.bak.*\n.*\.pulumi/backups/bezel/l4-qat.*bezel local recover l4-qat"
    ):
        restore(tmp_path, "bezel", "l4-qat")
    assert file.read_text() == "{"


@pytest.mark.parametrize("latest", [None, {}, {"resources": []}])
def test_a_whole_state_and_a_stack_without_one_stay_as_they_are(tmp_path: Path, latest: Any) -> None:
    file = write_state(tmp_path, latest) / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
    whole = file.read_bytes()
    file.with_name(f"{file.name}.bak").write_text("older")
    assert not restore(tmp_path, "bezel", "l4-qat")
    assert not restore(tmp_path, "bezel", "another")
    assert file.read_bytes() == whole
