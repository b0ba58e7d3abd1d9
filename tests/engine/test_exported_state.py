"""The digest of a state changes with its resources alone, and a stack's file is completed from the state."""

import copy

import pytest

from bezel.engine.run.stack import provider_of
from bezel.engine.state.exported import has_pending, provider_lines, state_digest
from bezel_base.errors import UserError

RESOURCE = {"urn": "u::a", "id": "a", "inputs": {"n": "1"}, "created": "2026-01-01", "modified": "2026-01-02"}
STATE = {
    "version": 3,
    "deployment": {"manifest": {"time": "t", "magic": "m"}, "resources": [RESOURCE, {"urn": "u::b", "inputs": {}}]},
}


def with_changes(**changes):
    state = copy.deepcopy(STATE)
    state["deployment"].update(changes)
    return state


@pytest.mark.parametrize(
    "other",
    [
        with_changes(manifest={"time": "later"}),
        with_changes(resources=STATE["deployment"]["resources"][::-1]),
        with_changes(resources=[{**RESOURCE, "modified": "2026-02-02"}, {"urn": "u::b", "inputs": {}}]),
        with_changes(pending_operations=[]),
    ],
)
def test_times_and_order_do_not_count(other):
    assert state_digest(other) == state_digest(STATE)


@pytest.mark.parametrize(
    "other",
    [
        with_changes(resources=[RESOURCE]),
        with_changes(resources=[{**RESOURCE, "inputs": {"n": "2"}}, {"urn": "u::b", "inputs": {}}]),
        with_changes(resources=[{**RESOURCE, "id": "b"}, {"urn": "u::b", "inputs": {}}]),
        with_changes(pending_operations=[{"type": "creating", "resource": {"urn": "u::c"}}]),
        None,
    ],
)
def test_any_change_of_a_resource_counts(other):
    assert state_digest(other) != state_digest(STATE)


def test_a_stack_without_resources_is_as_one_that_does_not_exist():
    assert state_digest(None) == state_digest({"version": 3, "deployment": {}}) == state_digest({"deployment": None})
    assert not has_pending(None)
    assert has_pending(with_changes(pending_operations=[{}]))


PASSPHRASE = with_changes(secrets_providers={"type": "passphrase", "state": {"salt": "v1:x"}})
KMS = with_changes(secrets_providers={"type": "cloud", "state": {"url": "gcpkms://k", "encryptedkey": "abc"}})


@pytest.mark.parametrize(
    ("text", "state", "lines"),
    [
        ("config: {}", PASSPHRASE, 'encryptionsalt: "v1:x"\n'),
        ("config: {}", KMS, 'secretsprovider: "gcpkms://k"\nencryptedkey: "abc"\n'),
        ("encryptionsalt: v1:y\nconfig: {}", PASSPHRASE, ""),
        ("secretsprovider: gcpkms://other\nconfig: {}", KMS, ""),
        ("config: {}", None, ""),
        ("config: {}", STATE, ""),
    ],
)
def test_a_file_without_a_secrets_provider_gets_that_of_its_state(text, state, lines):
    assert provider_lines(text, state) == lines


@pytest.mark.parametrize(
    ("text", "environ", "provider"),
    [
        ("config: {}", {"PULUMI_SECRETS_PROVIDER": "gcpkms://a"}, "gcpkms://a"),
        ("secretsprovider: gcpkms://b # of the team\n", {"PULUMI_SECRETS_PROVIDER": "gcpkms://a"}, "gcpkms://a"),
        ("secretsprovider: gcpkms://b # of the team\n", {"PULUMI_CONFIG_PASSPHRASE": "x"}, "gcpkms://b"),
        ('config: {}\nsecretsprovider: "gcpkms://b"', {}, "gcpkms://b"),
        ("config:\n  secretsprovider: gcpkms://b", {"PULUMI_CONFIG_PASSPHRASE_FILE": "f"}, "passphrase"),
    ],
)
def test_a_new_stack_gets_the_secrets_provider_that_is_named(text, environ, provider):
    assert provider_of(text, environ) == provider


def test_a_new_stack_without_a_secrets_provider_is_an_error():
    """A new stack without a secrets provider is an error that says how to name one."""
    with pytest.raises(UserError, match="gcpkms://projects/PROJECT"):
        provider_of("config: {}", {})
