"""Credential file of a login, and its way to the later steps of the job.

The file is of the type external_account (google.aip.dev/auth/4117): clients fetch a new token of the job when theirs
ends, as long as the job runs. It holds the job's request token, so only its owner reads it, and it is never written
into a checkout.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel.gitops.login.job_identity import JWT, JobTokens
from bezel.gitops.login.settings import LoginSettings
from bezel.rest import endpoint
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_base.state_folder import state_folder

_KEPT_SECONDS = 86_400.0  # longer than any job lasts
_PREFIX = "bezel-login-"


def content(settings: LoginSettings, tokens: JobTokens, environ: Mapping[str, str]) -> dict[str, Any]:
    """The file's content, with the addresses that every client of Google here uses."""
    account = f"projects/-/serviceAccounts/{settings.account}:generateAccessToken"
    return {
        "type": "external_account",
        "audience": settings.audience,
        "subject_token_type": JWT,
        "token_url": f"{endpoint('STS', environ)}token",
        "service_account_impersonation_url": f"{endpoint('IAM_CREDENTIALS', environ)}{account}",
        "credential_source": {
            "url": tokens.url,
            "headers": {"Authorization": f"Bearer {tokens.bearer}"},
            "format": {"type": "json", "subject_token_field_name": "value"},
        },
    }


def write(settings: LoginSettings, tokens: JobTokens, environ: Mapping[str, str]) -> Path:
    """Write the file into the runner's folder for temporary files, or the user's state folder; return its path.

    Raises:
        UserError: The folder is in a checkout, or cannot be written.
    """
    folder = _folder(environ)
    whole = content(settings, tokens, environ)
    # Two jobs on one machine have files of their own; a second login of a job writes its file again.
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]
    file = folder / f"{_PREFIX}{digest}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _remove_old(folder)
        write_whole(file, json.dumps(whole, indent=2), mode=0o600)
    except OSError as error:
        text = f"cannot be written ({error.strerror}), so later steps would have no credentials."
        raise UserError(Problem(str(file), None, text, "make the folder writable, or set RUNNER_TEMP.")) from None
    return file


def hand_over(file: Path, settings: LoginSettings, environ: Mapping[str, str]) -> bool:
    """Give the variables to the later steps of the job; False where no forge runs this.

    Raises:
        UserError: The forge's file cannot be written.
    """
    if not (target := environ.get("GITHUB_ENV", "")):
        return False
    try:
        with Path(target).open("a", encoding="utf-8") as lines:
            lines.write("".join(f"{name}={value}\n" for name, value in variables(file, settings).items()))
    except OSError as error:
        text = f"cannot be written ({error.strerror}), so later steps would have no credentials."
        raise UserError(Problem("GITHUB_ENV", target, text, "run this in a step of the forge.")) from None
    return True


def variables(file: Path, settings: LoginSettings) -> dict[str, str]:
    """What the later steps need."""
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "GOOGLE_PROJECT": settings.project}


def _folder(environ: Mapping[str, str]) -> Path:
    runner_temp = environ.get("RUNNER_TEMP", "").strip()
    folder = (Path(runner_temp) if runner_temp else state_folder("login", environ)).absolute().resolve()
    workspace = environ.get("GITHUB_WORKSPACE", "").strip()
    inside = bool(workspace) and folder.is_relative_to(Path(workspace).resolve())
    if inside or any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        text = "is in a checkout, where an artifact or a commit could take the credentials along."
        raise UserError(Problem("RUNNER_TEMP", str(folder), text, "set it to a folder outside of any checkout."))
    if any(ord(letter) < 32 for letter in str(folder)):
        text = "has a control character in its name, which the forge's file of variables cannot hold."
        raise UserError(Problem("RUNNER_TEMP", str(folder), text, "set it to another folder."))
    return folder


def _remove_old(folder: Path) -> None:
    for file in folder.glob(f"{_PREFIX}*.json"):
        if time.time() - file.stat().st_mtime > _KEPT_SECONDS:
            file.unlink(missing_ok=True)
