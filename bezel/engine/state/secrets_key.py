"""Key of a stack's secrets as its file names it, judged: is it the stack's own, or was it written for another backend?

Pulumi writes `encryptionsalt`, or `secretsprovider` and `encryptedkey`, into the stack file that it is given. Committed
after a run on another backend, e.g. localcloud, they make every run elsewhere fail with "incorrect passphrase". Pure:
leaves reading files and states to the caller. Formats: Pulumi's `pkg/secrets/passphrase` and `sdk/go/common/resource/
config/crypt.go`, 3.274.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel.planner.base.stack_file import StackFileError, read_stack_file
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

PASSPHRASE, PASSPHRASE_FILE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
KEYS = SALT, PROVIDER, KEY = "encryptionsalt", "secretsprovider", "encryptedkey"
_UNSET = "no passphrase is set that it could belong to"
_ROUNDS = 1_000_000
_LONGEST = 4096


class ForeignKeyError(UserError):
    """A stack file names a key of secrets that is not the stack's own."""


def foreign_key(
    file: str, text: str, providers: Mapping[str, Any] | None, environ: Mapping[str, str]
) -> tuple[Problem, ...]:
    """The keys in a stack file that are not the stack's own, each with what repairs it.

    Args:
        file: Name of the stack file.
        text: Its content.
        providers: `secrets_providers` of the stack's state; None where the backend has no state of it.
        environ: The environment, which names a passphrase.
    """
    try:
        content, _ = read_stack_file(text, file)
    except StackFileError:
        return ()
    named = {key: str(content[key]) for key in KEYS if content.get(key)} if _is_map(content) else {}
    kind = str((providers or {}).get("type") or "")
    own_keys = (providers or {}).get("state") or {}
    foreign: dict[str, str] = {}
    if SALT in named and named[SALT] != own_keys.get("salt") and (reason := _why_closed(named[SALT], kind, environ)):
        foreign[SALT] = reason
    if kind == "cloud":
        foreign |= {
            key: f"the stack's state names another one ({_cut_text(own_keys.get(field))})"
            for key, field in ((PROVIDER, "url"), (KEY, "encryptedkey"))
            if key in named and named[key] != own_keys.get(field)
        }
    elif kind == "passphrase" and named.get(PROVIDER, "passphrase") != "passphrase":
        foreign[PROVIDER] = "the stack's state is encrypted by a passphrase"
    return tuple(_problem(file, key, reason) for key, reason in foreign.items())


def check_key(file: str, text: str, providers: Mapping[str, Any] | None, environ: Mapping[str, str]) -> None:
    """Refuse a stack file whose keys are not the stack's own. Arguments as of `foreign_key`.

    Raises:
        ForeignKeyError: One is not.
    """
    if problems := foreign_key(file, text, providers, environ):
        raise ForeignKeyError(*problems)


def opens(salt: str, passphrase: str) -> bool:
    """Whether a passphrase belongs to an encryption salt: `v1:SALT:v1:NONCE:TEXT`, a known text, AES-256-GCM."""
    from cryptography.exceptions import InvalidTag  # late: only a file with a salt needs it
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    parts = salt.split(":")
    if len(salt) > _LONGEST or len(parts) != 5 or (parts[0], parts[2]) != ("v1", "v1"):
        return False
    try:
        seed, nonce, sealed = (base64.b64decode(part, validate=True) for part in (parts[1], parts[3], parts[4]))
        key = hashlib.pbkdf2_hmac("sha256", passphrase.encode(), seed, _ROUNDS, 32)
        return AESGCM(key).decrypt(nonce, sealed, None) == b"pulumi"
    except (binascii.Error, ValueError, InvalidTag):
        return False


def _why_closed(salt: str, kind: str, environ: Mapping[str, str]) -> str:
    """Why a salt that is not the state's cannot be used, as a clause; "" where it can."""
    if kind == "cloud":
        return "the stack's state is encrypted by a key of KMS, not by a passphrase"
    passphrase = _passphrase(environ)
    if passphrase is None:
        return _UNSET
    return "" if opens(salt, passphrase) else "it does not belong to the passphrase that is set"


def _passphrase(environ: Mapping[str, str]) -> str | None:
    """The passphrase as the engine takes it; None where none is set, or its file cannot be read."""
    if PASSPHRASE in environ:
        return environ[PASSPHRASE]
    try:
        return Path(environ[PASSPHRASE_FILE]).read_text(encoding="utf-8").strip()
    except (KeyError, OSError, ValueError):
        return None


def _problem(file: str, key: str, reason: str) -> Problem:
    consequence = (
        f"it is not this stack's own: {reason}. `pulumi` wrote it for another backend, e.g. localcloud; with it every "
        "run on this backend fails."
    )
    repair = (
        f"remove the line {key} from {file} and commit that (`git checkout -- {shell_word(file)}` if it is not "
        "committed "
        "yet); the stack's own is in its state."
    )
    if reason == _UNSET:
        repair = f"set {PASSPHRASE} if it is the stack's own; else {repair}"
    return Problem(f"{key} of {file}", None, consequence, repair)


def _cut_text(value: object) -> str:
    text = str(value or "none")
    return text if len(text) <= 120 else f"{text[:120]}..."


def _is_map(content: object) -> bool:
    return isinstance(content, Mapping)
