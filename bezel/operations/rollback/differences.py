"""Differences between the serving revision and the one that gets its traffic: settings, and the model's name. Pure.

A variable's value is never shown.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bezel.diagnosis.served import differences

_FIELDS = (
    "containers",
    "volumes",
    "scaling",
    "timeout",
    "serviceAccount",
    "executionEnvironment",
    "nodeSelector",
    "gpuZonalRedundancyDisabled",
    "maxInstanceRequestConcurrency",
    "vpcAccess",
    "sessionAffinity",
    "encryptionKey",
)
_NAME = "--served-model-name"
_MOST = 20


def difference_notes(serving: Mapping[str, Any], target: Mapping[str, Any]) -> list[str]:
    """Each setting that differs, its present value and the other one; the model's name is left to `model_warnings`.

    Args:
        serving: The revision that serves, in run v2's description; {} where it is gone.
        target: The one that gets its traffic.
    """
    if not serving:
        return ["what differs from the serving revision is not judged: it is not in the list of revisions"]
    # Both sides are compared over the fields that either has.
    wanted = {field: target.get(field) for field in _FIELDS if target.get(field) or serving.get(field)}
    texts = [text.replace(" is planned", " after the rollback") for text in differences(wanted, serving)]
    if not texts:
        return ["it has the same settings as the serving revision"]
    more = [f"and {len(texts) - _MOST} more settings differ"] if len(texts) > _MOST else []
    return [*(f"differs: {text}" for text in texts[:_MOST]), *more]


def model_warnings(present: str, target: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[str]:
    """A warning for callers, who name the model in each request.

    Args:
        present: Name under which the model is served now, "" if it is not recorded.
        target: The revision that gets the traffic.
        entry: What its check kept.
    """
    served = str(entry.get("model") or "") or _served_name(target)
    if not served or not present:
        yield "whether callers have to name another model is not judged: its name is not recorded"
    elif served != present:
        yield f"callers have to name another model: {served} in place of {present}, which answers 404 then"


def _served_name(revision: Mapping[str, Any]) -> str:
    """The first served name among a revision's arguments, "" without one."""
    for container in revision.get("containers") or ():
        arguments = [str(each) for each in container.get("args") or ()]
        for number, argument in enumerate(arguments):
            name, sign, value = argument.partition("=")
            if name == _NAME:
                return value if sign else next(iter(arguments[number + 1 :]), "")
    return ""
