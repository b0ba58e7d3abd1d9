"""Copy of a stack file for the engine on localcloud: its values without the keys that another backend wrote. Pure.

The engine writes what encrypts a stack's secrets into the file that it is given, in a preview too: `encryptionsalt`
with a passphrase, `secretsprovider` and `encryptedkey` with a key of KMS. localcloud has a passphrase of its own.
"""

_SALT = "encryptionsalt:"
_KEYS = (_SALT, "encryptedkey:", "secretsprovider:")


def salt_line(text: str) -> str:
    """The line with the encryption salt that the engine wrote, or nothing."""
    return next((line for line in text.splitlines() if line.startswith(_SALT)), "")


def without_keys(text: str) -> str:
    """A stack file without the lines that say what encrypts its secrets."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_KEYS))


def copy_of(text: str, copy: str = "") -> str:
    """The content of a copy.

    Args:
        text: Content of the stack file.
        copy: Content of the present copy, whose salt stays.
    """
    return f"{without_keys(text).rstrip()}\n{salt_line(copy)}".rstrip() + "\n"
