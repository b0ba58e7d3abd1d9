"""Command that prints the identity token of a stack's callers: `gcloud`'s, on localcloud localcloud's own. Pure."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from bezel.operations.deployment.server_access import ServerAccess
from bezel_base.loopback.web_pages import is_loopback
from bezel_base.text.shell import shell_word

_CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
_FOLDER = ".localcloud"


def token_command(access: ServerAccess, environ: Mapping[str, str], project: Path) -> str:
    """The command, for the shell that has these variables.

    Args:
        access: The access to the server.
        environ: Variables of the shell; on localcloud they name the key file in its folder.
        project: Folder of the project, below which the command finds localcloud by itself.
    """
    if is_loopback(urlsplit(access.url).netloc) or (access.connect_to and access.connect_to.authority):
        # gcloud has no token for it: that of a key file names gcloud's own audience, and localcloud knows no users.
        key_file = environ.get(_CREDENTIALS, "")
        folder = Path(key_file).parent
        is_found = not key_file or folder == project.absolute() / _FOLDER
        return f"bezel local token {shell_word(access.audience)}" + ("" if is_found else f" --dir {shell_word(folder)}")
    command = "gcloud auth print-identity-token"
    if access.impersonate:
        # Only a service account's token can have an audience (gcloud's reference of the command).
        account, audience = shell_word(access.impersonate), shell_word(access.audience)
        command += f" --impersonate-service-account={account} --audiences={audience} --include-email"
    return command
