"""Variables of a found server -> `bezel:variables` and `bezel:secrets`, without any credential. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.conversion.inputs.found_server import Remark, remark
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel.conversion.settings.option_settings import API_KEY_REASON, API_KEY_REPAIR
from bezel.planner.rules.env_checks import planned_variables
from bezel.planner.rules.platform_checks import API_KEY, OF_THE_IMAGE, RESERVED, VARIABLE
from bezel_base.credentials.names import names_secret
from bezel_base.errors import NOT_SHOWN
from bezel_base.text.redaction import is_secret
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.conversion.inputs.found_server import FoundServer
    from bezel_catalog import Accelerator

HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_API_TOKEN")
_OFFLINE = "HF_HUB_OFFLINE"
_OF_THE_MACHINE = re.compile(r"(?:CUDA|NVIDIA)_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES|HOME|USER")


def variable_settings(
    server: FoundServer, gpu: Accelerator | None, *, from_hub: bool, remarks: list[Remark]
) -> tuple[dict[str, str], dict[str, str]]:
    """(`bezel:variables`, `bezel:secrets`).

    Args:
        server: The found server.
        gpu: The accelerator; None where it is unknown.
        from_hub: Whether the server downloads its model from the hub, which may ask for a token.
        remarks: Gets what is to be known.
    """
    planned = planned_variables(gpu, offline=not from_hub)
    variables: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for name, value in server.variables.items():
        if name == API_KEY:
            remarks.append(Remark("not converted", name, NOT_SHOWN, API_KEY_REASON, API_KEY_REPAIR))
        elif name in HUB_TOKENS:
            _hub_token(name, secrets, remarks, from_hub=from_hub)
        elif names_secret(name) or is_secret(name, value):
            secrets[name] = _secret_id(name)
            remarks.append(_secret_remark(name, secrets[name]))
        elif note := _unset(name, value, planned):
            remarks.append(note)
        elif name not in planned:
            variables[name] = value
    secrets |= _secret_references(server, remarks, from_hub=from_hub)
    return variables, secrets


def _unset(name: str, value: str, planned: Mapping[str, str]) -> Remark | None:
    """Why a plain variable is not written; None for one that is, and for one that the stack sets to the same."""
    if not VARIABLE.fullmatch(name):
        return remark("not converted", name, value, "it is not a valid name of a variable.")
    if OPEN.search(value):
        repair = f"write its value: bezel:variables: {{{name}: VALUE}}."
        return remark("not converted", name, value, "the input does not say its value.", repair)
    if name in RESERVED or name in OF_THE_IMAGE or _OF_THE_MACHINE.fullmatch(name):
        return remark("not converted", name, value, "the platform or the image sets it.")
    if (name in planned or name == _OFFLINE) and planned.get(name) != value:
        return remark("changes", name, value, f"a stack sets it to {planned.get(name, 'nothing')}.")
    return None


def _secret_references(server: FoundServer, remarks: list[Remark], *, from_hub: bool) -> dict[str, str]:
    """The variables that the input reads from Secret Manager itself."""
    secrets: dict[str, str] = {}
    for name, (secret, version) in server.secrets.items():
        if name == API_KEY:
            remarks.append(Remark("not converted", name, NOT_SHOWN, API_KEY_REASON, API_KEY_REPAIR))
        elif name in HUB_TOKENS and not from_hub:
            reason = "the server reads its bucket, and needs no token."
            remarks.append(remark("not converted", "bezel:secrets", secret, reason))
        else:
            secrets[name] = secret
            if version not in ("latest", "versions/latest"):
                reason = "a stack reads the newest version of a secret."
                remarks.append(remark("changes", "bezel:secrets", f"{secret}, version {version}", reason))
    return secrets


def _hub_token(name: str, secrets: dict[str, str], remarks: list[Remark], *, from_hub: bool) -> None:
    if not from_hub:
        reason = "a credential has no place in a stack file; the server reads its bucket, and needs none."
        repair = "`bezel weights copy` takes yours from HF_TOKEN."
        remarks.append(Remark("not converted", name, NOT_SHOWN, reason, repair))
        return
    secrets[HUB_TOKENS[0]] = _secret_id(HUB_TOKENS[0])
    remarks.append(_secret_remark(name, secrets[HUB_TOKENS[0]]))


def _secret_remark(name: str, secret: str) -> Remark:
    reason = "a credential has no place in a stack file: the server reads it from Secret Manager."
    repair = f"store its value: `bezel secret set {shell_word(secret)}`."
    return Remark("changes", name, NOT_SHOWN, reason, repair)


def _secret_id(name: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or "secret"
