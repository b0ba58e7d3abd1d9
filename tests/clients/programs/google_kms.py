"""Calls of google-cloud-kms over REST: rings, keys, versions, encryption, policies."""

import datetime as dt

from google.cloud import kms_v1 as kms
from google.iam.v1 import policy_pb2
from google.protobuf import duration_pb2, timestamp_pb2
from google_calls import PARENT, Report, options

State = kms.CryptoKeyVersion.CryptoKeyVersionState
LOCATION = f"{PARENT}/locations/global"
RING = f"{LOCATION}/keyRings/clients"
KEY = f"{RING}/cryptoKeys/stack"
VERSION = f"{KEY}/cryptoKeyVersions"
WANTED = ["cloudkms.cryptoKeys.get", "cloudkms.keyRings.get"]
report = Report("google-cloud-kms")
client = kms.KeyManagementServiceClient(transport="rest", client_options=options("KMS"))


def crc32c(data: bytes) -> int:
    """CRC32C, bit by bit."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def rings_and_keys() -> None:
    """Create, read, list, change."""
    ring = {"parent": LOCATION, "key_ring_id": "clients", "key_ring": {}}
    report.call("create_key_ring", lambda: client.create_key_ring(ring), lambda made: made.name == RING)
    report.raises("create_key_ring again", "ALREADY_EXISTS", lambda: client.create_key_ring(ring))
    report.call("get_key_ring", lambda: client.get_key_ring({"name": RING}), lambda answer: answer.name == RING)
    report.call(
        "list_key_rings",
        lambda: list(client.list_key_rings({"parent": LOCATION, "page_size": 1})),
        lambda answer: RING in [one.name for one in answer],
    )
    key = kms.CryptoKey(
        purpose=kms.CryptoKey.CryptoKeyPurpose.ENCRYPT_DECRYPT,
        labels={"a": "b"},
        rotation_period=duration_pb2.Duration(seconds=7 * 86_400),
        next_rotation_time=timestamp_pb2.Timestamp(seconds=int(dt.datetime.now(dt.UTC).timestamp()) + 86_400),
    )
    request = {"parent": RING, "crypto_key_id": "stack", "crypto_key": key}
    report.call(
        "create_crypto_key",
        lambda: client.create_crypto_key(request),
        lambda made: (
            (made.primary.name, made.primary.state, made.destroy_scheduled_duration.days)
            == (f"{VERSION}/1", State.ENABLED, 30)
        ),
    )
    report.raises("create_crypto_key again", "ALREADY_EXISTS", lambda: client.create_crypto_key(request))
    sign = kms.CryptoKey(purpose=kms.CryptoKey.CryptoKeyPurpose.ASYMMETRIC_SIGN)
    asked = {"parent": RING, "crypto_key_id": "sign", "crypto_key": sign}
    report.call("create_crypto_key to sign", lambda: client.create_crypto_key(asked))
    report.call(
        "get_crypto_key", lambda: client.get_crypto_key({"name": KEY}), lambda answer: answer.labels["a"] == "b"
    )
    report.raises("get_crypto_key of no key", "NOT_FOUND", lambda: client.get_crypto_key({"name": f"{KEY}x"}))
    report.call(
        "list_crypto_keys",
        lambda: list(client.list_crypto_keys({"parent": RING})),
        lambda answer: [one.name for one in answer] == [KEY],
    )
    report.call(
        "update_crypto_key",
        lambda: client.update_crypto_key(
            {"crypto_key": {"name": KEY, "labels": {"c": "d"}}, "update_mask": {"paths": ["labels"]}}
        ),
        lambda answer: dict(answer.labels) == {"c": "d"} and answer.rotation_period.days == 7,
    )


def encryption() -> None:
    """Encrypt and decrypt, with checksums and additional data."""
    data, aad = "stäte\0".encode(), b"stack"
    asked = {"name": KEY, "plaintext": data, "additional_authenticated_data": aad}
    made = report.call(
        "encrypt",
        lambda: client.encrypt({**asked, "plaintext_crc32c": {"value": crc32c(data)}}),
        lambda made: (
            made.verified_plaintext_crc32c
            and made.name == f"{VERSION}/1"
            and made.ciphertext_crc32c == crc32c(made.ciphertext)
        ),
    )
    report.raises(
        "encrypt with a wrong checksum",
        "INVALID_ARGUMENT",
        lambda: client.encrypt({**asked, "plaintext_crc32c": {"value": 1}}),
    )
    sealed = {"name": KEY, "ciphertext": made.ciphertext, "additional_authenticated_data": aad}
    report.call(
        "decrypt",
        lambda: client.decrypt(sealed),
        lambda answer: answer.plaintext == data and answer.used_primary and answer.plaintext_crc32c == crc32c(data),
    )
    other = {**sealed, "additional_authenticated_data": b"other"}
    report.raises("decrypt with other data", "INVALID_ARGUMENT", lambda: client.decrypt(other))
    for name, change, state in (
        ("update_crypto_key_version to disable", State.DISABLED, State.DISABLED),
        ("update_crypto_key_version to enable", State.ENABLED, State.ENABLED),
    ):
        version = {"name": f"{VERSION}/1", "state": change}
        report.call(
            name,
            lambda version=version: client.update_crypto_key_version(
                {"crypto_key_version": version, "update_mask": {"paths": ["state"]}}
            ),
            lambda answer, state=state: answer.state == state,
        )
        if change == State.DISABLED:
            report.raises("decrypt of a disabled version", "FAILED_PRECONDITION", lambda: client.decrypt(sealed))


def versions() -> None:
    """Create, list, make primary, destroy, restore."""
    report.call(
        "create_crypto_key_version",
        lambda: client.create_crypto_key_version({"parent": KEY, "crypto_key_version": {}}),
        lambda made: (made.name, made.state) == (f"{VERSION}/2", State.ENABLED),
    )
    report.call(
        "list_crypto_key_versions, pages of 1",
        lambda: list(client.list_crypto_key_versions({"parent": KEY, "page_size": 1})),
        lambda answer: [one.name[-1] for one in answer] == ["1", "2"],
    )
    report.call(
        "update_crypto_key_primary_version",
        lambda: client.update_crypto_key_primary_version({"name": KEY, "crypto_key_version_id": "2"}),
        lambda answer: answer.primary.name == f"{VERSION}/2",
    )
    one = {"name": f"{VERSION}/1"}
    report.call(
        "destroy_crypto_key_version",
        lambda: client.destroy_crypto_key_version(one),
        lambda answer: answer.state == State.DESTROY_SCHEDULED and answer.destroy_time,
    )
    report.raises(
        "destroy_crypto_key_version again", "FAILED_PRECONDITION", lambda: client.destroy_crypto_key_version(one)
    )
    report.call(
        "restore_crypto_key_version",
        lambda: client.restore_crypto_key_version(one),
        lambda answer: answer.state == State.DISABLED,
    )
    report.call(
        "get_crypto_key_version",
        lambda: client.get_crypto_key_version(one),
        lambda answer: answer.state == State.DISABLED,
    )


def policies() -> None:
    """Policies of a key and of a ring, and what is not served."""
    member = "serviceAccount:service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
    role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    policy = policy_pb2.Policy(bindings=[policy_pb2.Binding(role=role, members=[member])])
    for title, name in (("a key", KEY), ("a ring", RING)):
        report.call(
            f"set_iam_policy of {title}",
            lambda name=name: client.set_iam_policy({"resource": name, "policy": policy}),
            lambda answer: answer.bindings[0].role == role,
        )
        report.call(
            f"get_iam_policy of {title}",
            lambda name=name: client.get_iam_policy({"resource": name}),
            lambda answer: list(answer.bindings[0].members) == [member],
        )
        report.call(
            f"test_iam_permissions of {title}",
            lambda name=name: client.test_iam_permissions({"resource": name, "permissions": WANTED}),
            lambda answer: list(answer.permissions) == WANTED,
        )
    elsewhere = KEY.replace(PARENT, "projects/other")
    report.raises("encrypt in another project", "PERMISSION_DENIED", lambda: client.encrypt({"name": elsewhere}))
    random = {"location": LOCATION, "length_bytes": 16}
    report.call("generate_random_bytes", lambda: client.generate_random_bytes(random))


rings_and_keys()
encryption()
versions()
policies()
