"""Calls of Cloud KMS for `ApiHarness`."""

import base64

from localcloud_support.client import PARENT

RINGS = f"/cloudkms/v1/{PARENT}/locations/global/keyRings"


def kms(trial, policies):
    """Every method once; `policies` are the three of a policy."""
    trial.owner.enable("cloudkms")
    ring, keys, absent = f"{RINGS}/states", f"{RINGS}/states/cryptoKeys", f"{RINGS}/absent"
    trial("POST", RINGS, {}, keyRingId="states")
    trial("GET", RINGS, pageSize=1)
    trial("GET", ring, missing=absent)
    body = {"purpose": "ENCRYPT_DECRYPT"}
    trial("POST", keys, body, cryptoKeyId="stack", missing=f"{absent}/cryptoKeys")
    key, none = f"{keys}/stack", f"{keys}/absent"
    trial("GET", keys, pageSize=1, missing=f"{absent}/cryptoKeys")
    trial("GET", key, missing=none)
    trial("PATCH", key, {"labels": {"a": "b"}}, updateMask="labels", missing=none)
    for path, other in ((ring, absent), (key, none)):
        policies(trial, path, other)
    _versions(trial, key, none)
    plain = base64.b64encode(b"state").decode()
    sealed = trial("POST", f"{key}:encrypt", {"plaintext": plain}, missing=f"{none}:encrypt")["ciphertext"]
    trial("POST", f"{key}:decrypt", {"ciphertext": sealed}, missing=f"{none}:decrypt")


def _versions(trial, key, none):
    versions, absent = f"{key}/cryptoKeyVersions", f"{key}/cryptoKeyVersions/99"
    trial("POST", versions, {}, missing=f"{none}/cryptoKeyVersions")
    trial("GET", versions, pageSize=1, missing=f"{none}/cryptoKeyVersions")
    trial("GET", f"{versions}/1", missing=absent)
    trial("POST", f"{key}:updatePrimaryVersion", {"cryptoKeyVersionId": "2"}, missing=f"{none}:updatePrimaryVersion")
    trial("PATCH", f"{versions}/1", {"state": "DISABLED"}, updateMask="state", missing=absent)
    trial("POST", f"{versions}/1:destroy", {}, missing=f"{absent}:destroy")
    trial("POST", f"{versions}/1:restore", {}, missing=f"{absent}:restore")
