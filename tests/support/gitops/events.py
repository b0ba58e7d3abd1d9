"""Events of the engine, as its log holds them, from a few words each."""

from typing import Any

SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "[secret]"}
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
STACK = "urn:pulumi:dev::small::pulumi:pulumi:Stack::small-dev"
BUCKET, OBJECT = "gcp:storage/bucket:Bucket", "gcp:storage/bucketObject:BucketObject"


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:dev::small::{kind}::{name}"


def state(inputs: dict[str, Any] | None, outputs: dict[str, Any] | None = None, **more: Any) -> dict[str, Any] | None:
    return None if inputs is None else {"inputs": inputs, "outputs": outputs or {}, **more}


def metadata(op: str, kind: str, name: str, old: Any = None, new: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": op, "urn": urn(kind, name), "type": kind, "old": old, "new": new, **more}


def begin(*args: Any, **more: Any) -> dict[str, Any]:
    return {"resourcePreEvent": {"metadata": metadata(*args, **more), "planning": True}}


def end(*args: Any, **more: Any) -> dict[str, Any]:
    return {"resOutputsEvent": {"metadata": metadata(*args, **more), "planning": True}}


def step(op: str, kind: str, name: str, old: Any = None, new: Any = None, **more: Any) -> list[dict[str, Any]]:
    """A step that ends well."""
    args = (op, kind, name, state(old), state(new))
    return [begin(*args, **more), end(*args, **more)]


def violation(level: str, message: str, policy: str = "p", name: str = "data") -> dict[str, Any]:
    content = {"resourceUrn": urn(BUCKET, name), "message": message, "policyName": policy, "policyPackName": "mine"}
    return {"policyEvent": content | {"enforcementLevel": level}}


def analyzed_event(pack: str = "mine") -> dict[str, Any]:
    return {"policyAnalyzeStackSummaryEvent": {"policyPackName": pack}}


def diagnostic_event(severity: str, message: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": severity, "message": f"{message}\n"}}


def summary() -> dict[str, Any]:
    return {"summaryEvent": {"result": "succeeded"}}
