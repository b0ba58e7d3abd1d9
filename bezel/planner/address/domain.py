"""Names of the DNS that a certificate can be issued for: one host, written as the certificate has it."""

import re

CHALLENGE = "_acme-challenge."
"""Begin of the name of the record that proves a domain."""
# RFC 1035: 63 characters a label, 253 a name; the record that proves the domain has a longer name.
_MAX_LENGTH = 253 - len(CHALLENGE)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# Top-level domains are letters, or punycode (RFC 3696); those of private networks and of machines have no owner:
# RFC 6761, 6762, 7686, 8375 and ICANN's resolution 2024.07.29.06. `example` is for documents and rehearsals.
_TOP = re.compile(r"[a-z]{2,}|xn--[-a-z0-9]+")
_NO_OWNER = frozenset({"alt", "arpa", "internal", "invalid", "local", "localhost", "onion", "test"})
_GOOGLE = ("run.app", "googleapis.com", "cloudfunctions.net", "appspot.com")
_FORM = "write the host alone, e.g. llm.acme.example"


def domain_problem(domain: str) -> str | None:
    """What is wrong with a domain: "consequence; repair", or None for one that a certificate can name."""
    if "*" in domain:
        return f"a certificate of this address is for one host, and no record leads from a wildcard to it; {_FORM}"
    if not domain.isascii():
        return "records and certificates have only ASCII letters; write the domain in punycode (xn--…)"
    if any(sign in domain for sign in ":/@?#"):
        return f"records and certificates name a host, without scheme, port or path; {_FORM}"
    if domain.endswith("."):
        return "certificates name the host without the dot of the root; remove the last dot"
    if domain != domain.lower():
        return "records come back in lower case, so each preview would show a change; write it in lower case"
    labels = domain.split(".")
    if len(domain) > _MAX_LENGTH or not all(map(_LABEL.fullmatch, labels)):
        return (
            f"no such name can be in the DNS: labels of letters, digits and dashes, at most 63 characters each and"
            f" {_MAX_LENGTH} together; {_FORM}"
        )
    if len(labels) < 2 or not _TOP.fullmatch(labels[-1]):
        return f"no authority issues a certificate for it: a domain ends with a top-level domain; {_FORM}"
    if labels[-1] in _NO_OWNER:
        return f"names below .{labels[-1]} have no owner, so no authority issues a certificate for one; {_FORM}"
    if owner := next((name for name in _GOOGLE if f".{domain}".endswith(f".{name}")), ""):
        return f"{owner} is Google's: no record of yours can be in it, and no certificate is issued; {_FORM}"
    return None
