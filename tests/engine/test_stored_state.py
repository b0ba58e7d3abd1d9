"""A state is read from its file where the backend is one that this process finds, and by the engine elsewhere."""

import gzip
import json

import pytest

from bezel.engine.state.backend import NotReadableHereError, stored_export, stored_state
from bezel.engine.state.bucket import BACKEND

LATEST = {"manifest": {}, "resources": [{"urn": "urn:pulumi:dev::shop::a:b:C::one", "type": "a:b:C"}]}


@pytest.fixture
def states(tmp_path):
    folder = tmp_path / "states/.pulumi/stacks/shop"
    folder.mkdir(parents=True)
    (folder / "dev.json").write_text(json.dumps({"version": 3, "checkpoint": {"latest": LATEST}}))
    (folder / "new.json").write_text(json.dumps({"version": 3, "checkpoint": {"latest": None}}))
    packed = gzip.compress((folder / "dev.json").read_bytes())
    (folder / "packed.json.gz").write_bytes(packed)
    (folder / "short.json").write_text('{"version": 3, "check')
    (folder / "zstd.json.zst").write_bytes(b"(\xb5/\xfd")
    return tmp_path / "states"


@pytest.mark.parametrize(("stack", "state"), [("dev", LATEST), ("packed", LATEST), ("new", {}), ("none", None)])
def test_a_state_in_a_folder_is_read(states, stack, state):
    assert stored_state("shop", stack, {BACKEND: f"file://{states}"}) == state


def test_an_export_has_its_version(states):
    assert stored_export("shop", "dev", {BACKEND: f"file://{states}"}) == {"version": 3, "deployment": LATEST}


def test_a_state_of_another_version_is_left_to_the_engine(states):
    file = states / ".pulumi/stacks/shop/dev.json"
    file.write_text(json.dumps({"version": 4, "features": ["x"], "checkpoint": {"latest": LATEST}}))
    with pytest.raises(NotReadableHereError):
        stored_export("shop", "dev", {BACKEND: f"file://{states}"})


def test_a_stack_without_a_deployment_is_left_to_the_engine(states):
    with pytest.raises(NotReadableHereError):
        stored_export("shop", "new", {BACKEND: f"file://{states}"})


def test_a_folder_relative_to_the_project_is_left_to_the_engine(states, monkeypatch):
    monkeypatch.chdir(states.parent)
    with pytest.raises(NotReadableHereError):
        stored_state("shop", "dev", {BACKEND: "file://states"})


@pytest.mark.parametrize("environ", [{}, {BACKEND: "s3://states"}])
def test_another_backend_is_left_to_the_engine(environ):
    with pytest.raises(NotReadableHereError):
        stored_state("shop", "dev", environ)


def test_a_state_packed_with_zstd_is_left_to_the_engine(states):
    with pytest.raises(NotReadableHereError):
        stored_state("shop", "zstd", {BACKEND: f"file://{states}"})


def test_a_truncated_state_is_an_error(states):
    with pytest.raises(ValueError, match="line 1"):
        stored_state("shop", "short", {BACKEND: f"file://{states}"})
