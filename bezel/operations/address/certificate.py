"""State of the certificate of a stack's address, and what to do where it is not issued.

Owns the reading and the repair of each reason that Certificate Manager gives. Source: its API's description
(`ManagedCertificate`, November 2026): it tries again by itself while PROVISIONING, and gives up with FAILED.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.address import DeployedAddress
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.rest import ApiError, RestError
from bezel_base.errors import one_line
from bezel_base.text.shell import shell_word

CertificateState = Literal["active", "provisioning", "failed", "gone", "unknown"]
_STATES: Mapping[str, CertificateState] = {"ACTIVE": "active", "PROVISIONING": "provisioning", "FAILED": "failed"}
_TEXT = 300
_WAITS = "Google issues it minutes to hours after the record of its proof is there, and tries again by itself"
_REPAIRS = {
    "CAA": 'add a CAA record of the domain that allows pki.goog (`0 issue "pki.goog"`), or remove those that forbid it',
    "RATE_LIMITED": "wait: the authority limits certificates of one domain, and Google tries again by itself",
}


class Certificate(Result):
    """Certificate of an address."""

    name: str | None = Field(description="projects/P/locations/global/certificates/C; null if it is not recorded")
    state: CertificateState = Field(
        description="active: callers can connect; provisioning: not yet; failed: Google gave up; gone: it was deleted; "
        "unknown: it could not be read"
    )
    reasons: tuple[str, ...] = Field(description="why it is not active, in Google's words where it has some")
    repair: str | None = Field(description="what to do; null where it is active")

    def line(self) -> str:
        """The state with its reasons, for people."""
        reasons = "; ".join(self.reasons)
        return f"{self.state}: {reasons}" if reasons else self.state


def certificate_of(context: Context, address: DeployedAddress, stack: str) -> Certificate:
    """The certificate of an address as Certificate Manager has it. Never raises for a refusal of Google's.

    Args:
        context: The context.
        address: The address.
        stack: Name of the stack, for repairs.
    """
    deploy = f"`bezel deploy {shell_word(stack)}`"
    if not address.certificate:
        return _of(address, "unknown", ["the stack's outputs name none"], f"{deploy} records it")
    try:
        live = context.google.get(f"{context.address('CERTIFICATE_MANAGER')}{address.certificate}")
    except ApiError as error:
        if error.status == 404:
            # The state has it still: a deploy that reads the state alone changes nothing.
            again = f"`pulumi up --refresh --stack {shell_word(stack)}` makes another one"
            return _of(address, "gone", ["Certificate Manager has none of this name"], again)
        repair = "let the project's owner grant this identity certificatemanager.certs.get, e.g. by roles/viewer"
        return _of(address, "unknown", [clean_text(error.because, _TEXT)], repair)
    except RestError as error:
        return _of(address, "unknown", [clean_text(one_line(error), _TEXT)], "repeat it")
    return judged_certificate(address, live.get("managed") or {}, stack)


def judged_certificate(address: DeployedAddress, managed: Mapping[str, Any], stack: str) -> Certificate:
    """The certificate by what Certificate Manager says of it. Pure.

    Args:
        address: The address.
        managed: `managed` of the certificate.
        stack: Name of the stack, for repairs.
    """
    state = _STATES.get(str(managed.get("state")), "unknown")
    if state == "active":
        return _of(address, state, [], None)
    attempts = [each for each in managed.get("authorizationAttemptInfo") or () if each.get("state") == "FAILED"]
    issue = managed.get("provisioningIssue") or {}
    reasons = [*map(_reason, attempts)] or ([_words(issue.get("details"))] if issue.get("details") else [])
    causes = {str(each.get("failureReason")) for each in attempts} | {str(issue.get("reason"))}
    repairs = [*_repairs(address, causes)] or [_WAITS]
    if state == "failed":
        repairs.append(f"Google gave up: correct this, then {_replacement(address, stack)}")
    return _of(address, state, reasons, "; ".join(repairs))


def _repairs(address: DeployedAddress, causes: set[str]) -> Iterator[str]:
    if "CONFIG" in causes:
        proofs = [record.line() for record in address.records if record.type == "CNAME"]
        yield f"set the record that proves the domain: {', '.join(proofs) or 'that of `bezel endpoint`'}"
    yield from (repair for cause, repair in _REPAIRS.items() if cause in causes)


def _replacement(address: DeployedAddress, stack: str) -> str:
    """How another certificate is requested: only a new one is tried again."""
    return (
        f"`pulumi up --stack {shell_word(stack)} --target-replace URN` with the URN of its Certificate "
        f"(`pulumi stack --show-urns`), which makes another one before {address.certificate.rpartition('/')[2]} goes"
    )


def _reason(attempt: Mapping[str, Any]) -> str:
    cname = ((attempt.get("troubleshooting") or {}).get("cname")) or {}
    seen = ""
    if cname.get("name"):
        resolved = ", ".join(map(str, cname.get("resolvedData") or ())) or "no record"
        seen = f" ({cname['name']} has {resolved})"
    details = _words(attempt.get("details")) or str(attempt.get("failureReason") or "no reason is given")
    return clean_text(f"{attempt.get('domain')}: {details}{seen}", _TEXT)


def _words(text: object) -> str:
    return clean_text(str(text or "").rstrip("."), _TEXT)


def _of(address: DeployedAddress, state: CertificateState, reasons: list[str], repair: str | None) -> Certificate:
    return Certificate(name=address.certificate or None, state=state, reasons=tuple(reasons), repair=repair)
