"""Access to the server of a deployment: address, audience and identity, as its smoke check has them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.operations.deployment.deployment import Deployment
    from bezel.rest.connect_to import ConnectTo

# In a Python program, and in one that uses the Pulumi package; the first one that is there.
_CHECKS = (
    "pulumi-python:dynamic/smoke:HealthCheck",
    "bezel:smoke:HealthCheck",
    "pulumi-python:dynamic/smoke:ShortBenchmark",
    "bezel:smoke:ShortBenchmark",
)


@dataclass(frozen=True)
class ServerAccess:
    """How callers reach a server.

    Attributes:
        url: Its address, without a slash at the end.
        audience: Audience of the identity token: the service's own address, also at the address of a tag.
        public: Whether it needs no token.
        impersonate: E-mail of the service account that identifies the caller; None for the caller's own identity.
        model: Name under which the model is served, "" if it is not recorded.
        simulated: Whether the server is a simulated one, as far as recorded.
        connect_to: Where to connect, if not to what the name in the URL leads to.
        note: Why this is not the stack's address, "" where it is.
    """

    url: str
    audience: str
    public: bool = False
    impersonate: str | None = None
    model: str = ""
    simulated: bool = False
    connect_to: ConnectTo | None = None
    note: str = ""


def access_of(deployment: Deployment) -> ServerAccess:
    """The access to the server of a deployment.

    Raises:
        UserError: The deployment has no address.
    """
    if not deployment.url and (served := deployment.served_models):
        addresses = ", ".join(f"{name} ({outputs['url']})" for name, outputs in served.items())
        consequence = f"it serves several models: {addresses}."
        url = str(next(iter(served.values()))["url"])
        repair = (
            "let the program export the `url` of one as its output, or call one by "
            f"`bezel proxy --url {shell_word(url)}` and `bezel bench run --url {shell_word(url)}`."
        )
        raise UserError(Problem("STACK", deployment.stack, consequence, repair))
    if not deployment.url:
        consequence = "its state has no address of a server: the deployment is unfinished, or serves internally only."
        repair = f"deploy it: `bezel deploy {shell_word(deployment.stack)}`; `bezel proxy --url URL` calls any address."
        raise UserError(Problem("STACK", deployment.stack, consequence, repair))
    url, check = deployment.url.rstrip("/"), _check(deployment)
    service, address = deployment.service, deployment.address
    # The audience of a check is one region's; a token for the address is good in all of them.
    is_own = address is not None and url == address.url
    return ServerAccess(
        url,
        str((not is_own and check.get("audience")) or url).rstrip("/"),
        check.get("public") is True or (service is not None and service.inputs.get("invokerIamDisabled") is True),
        check.get("impersonate") or None,
        deployment.model,
        deployment.is_simulated,
    )


def _check(deployment: Deployment) -> Mapping[str, Any]:
    """The properties of a smoke check, {} without one."""
    entries = [entry for entry in deployment.resources if entry.get("type") in _CHECKS and not entry.get("delete")]
    checks = [entry.get("outputs") or {} for entry in sorted(entries, key=lambda entry: _CHECKS.index(entry["type"]))]
    # Of several servers of a program that of this address; a tag's address has the service's own as its audience.
    own_checks = [check for check in checks if deployment.url in (check.get("url"), check.get("audience"))]
    return next(iter([*own_checks, *checks]), {})
