"""Keys of secrets in a stack file: the stack's own pass, one that was written for another backend is named."""

import pytest

from bezel.engine.state.secrets_key import KEYS, ForeignKeyError, check_key, foreign_key, opens

# What Pulumi 3.259 wrote for this passphrase.
PHRASE, SALT = "local one", "v1:9QZYCaAR50U=:v1:8KXdw0QdowU7NCzG:oFGrBmF99DoAjrwEXI9v+BrEivEixA=="
ENVIRON = {"PULUMI_CONFIG_PASSPHRASE": PHRASE}
OTHER = {"PULUMI_CONFIG_PASSPHRASE": "another"}
SALTED = f"config: {{}}\nencryptionsalt: {SALT}\n"
KMS = {"type": "cloud", "state": {"url": "gcpkms://ours", "encryptedkey": "abc"}}
PASSPHRASE = {"type": "passphrase", "state": {"salt": SALT}}
OTHER_SALT = {"type": "passphrase", "state": {"salt": "v1:eA==:v1:eA==:eA=="}}
OURS = 'config: {}\nsecretsprovider: "gcpkms://ours"\nencryptedkey: abc\n'


@pytest.mark.slow
def test_a_salt_opens_with_its_own_passphrase_only():
    assert opens(SALT, PHRASE)
    assert not opens(SALT, "another")


@pytest.mark.parametrize("salt", ["", "v1:x", "v1:::::", "v2:eA==:v1:eA==:eA==", "v1:\x00:v1:eA==:eA==", "v" * 10**6])
def test_a_broken_salt_opens_with_nothing(salt):
    assert not opens(salt, PHRASE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "providers", "environ"),
    [
        ("config: {}\n", KMS, {}),
        (SALTED, PASSPHRASE, {}),  # that of the state, whoever has the passphrase
        (SALTED, PASSPHRASE, OTHER),
        (SALTED, OTHER_SALT, ENVIRON),  # a preview in a fresh clone wrote it, for the same passphrase
        (SALTED, None, ENVIRON),
        (SALTED, {}, ENVIRON),
        (OURS, KMS, {}),
        (OURS, None, {}),  # a new stack
        ("secretsprovider: passphrase\n", PASSPHRASE, {}),
        ("config:\n  secretsprovider: gcpkms://theirs\n", KMS, {}),  # a value of that name
        ("a: [", KMS, {}),  # the plan says what is wrong
        ("- a\n", KMS, {}),
    ],
)
def test_the_stacks_own_key_is_not_named(text, providers, environ):
    assert foreign_key("Pulumi.one.yaml", text, providers, environ) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "providers", "environ", "keys"),
    [
        (SALTED, OTHER_SALT, OTHER, ["encryptionsalt"]),
        (SALTED, None, OTHER, ["encryptionsalt"]),
        (SALTED, {}, {}, ["encryptionsalt"]),
        (SALTED, OTHER_SALT, {"PULUMI_CONFIG_PASSPHRASE_FILE": "/absent"}, ["encryptionsalt"]),
        (SALTED, KMS, ENVIRON, ["encryptionsalt"]),
        (f'"encryptionsalt": "{SALT}"\n', KMS, ENVIRON, ["encryptionsalt"]),
        (OURS.replace("ours", "theirs"), KMS, {}, ["secretsprovider"]),
        (OURS.replace("abc", "xyz"), KMS, {}, ["encryptedkey"]),
        ("secretsprovider: awskms://x\nencryptedkey: y\n", KMS, {}, ["secretsprovider", "encryptedkey"]),
        (OURS, PASSPHRASE, ENVIRON, ["secretsprovider"]),
    ],
)
def test_a_key_of_another_backend_is_named_with_its_repair(text, providers, environ, keys):
    with pytest.raises(ForeignKeyError, match="not this stack's own") as caught:
        check_key("Pulumi.one.yaml", text, providers, environ)
    foreign = caught.value.problems
    assert [each.key for each in foreign] == [f"{key} of Pulumi.one.yaml" for key in keys]
    assert set(keys) <= set(KEYS)
    assert all("git checkout -- Pulumi.one.yaml" in each.repair for each in foreign)


@pytest.mark.slow
def test_the_passphrase_of_a_file_is_read_as_the_engine_reads_it(tmp_path):
    (tmp_path / "phrase").write_text(f"{PHRASE}\n")
    environ = {"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "phrase")}
    assert foreign_key("Pulumi.one.yaml", SALTED, None, environ) == ()
