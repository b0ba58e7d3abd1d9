"""Resources of a state that stay in the cloud when the stack is destroyed: Pulumi only forgets or reads them. Pure.

Sources: the engine's `retainOnDelete`; the published provider's `deletionPolicy` (10.2: ABANDON and DISABLE keep,
PREVENT refuses) and `disableOnDestroy`; its notes on what Google has no deletion of; the dynamic providers of this
program. Leaves out what is excluded from a state altogether.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.engine.state.resource_ids import MAKES_NOTHING
from bezel.planner.base.money import Priced, text
from bezel.resource_cost.stack_cost import resources_in, stack_cost

_MODELS = ("pulumi-python:dynamic/components:ModelFiles", "bezel:components:ModelFiles")
_API = "gcp:projects/service:Service"
_BUCKET = "gcp:storage/bucket:Bucket"
# Of the types that make nothing, those whose deletion does something: the wait for a machine, which the request's
# deletion ends, and a minimum of instances, which is set to 0.
_ACTING = frozenset(
    {
        "pulumi-python:dynamic/components:TpuNode",
        "pulumi-python:dynamic/components:ScheduledMinimum",
        "bezel:components:ScheduledMinimum",
        *_MODELS,
    }
)
_CHECKS = MAKES_NOTHING - _ACTING
_KEEPS = {
    "ABANDON": "deletionPolicy is ABANDON",
    "DISABLE": "deletionPolicy is DISABLE: it is disabled, and not deleted",
}
# Types that Google has no deletion of; the provider's delete only forgets them.
_UNDELETABLE = {
    "gcp:kms/keyRing:KeyRing": "Google deletes no key ring",
    "gcp:kms/cryptoKey:CryptoKey": "Google deletes no key: its versions are destroyed, and what they encrypted is lost",
    "gcp:kms/keyRingImportJob:KeyRingImportJob": "Google deletes no import job",
    "gcp:cloudquota/sQuotaPreference:SQuotaPreference": "Google deletes no quota preference",
    "gcp:appengine/application:Application": "Google deletes it with its project only",
    "gcp:identityplatform/config:Config": "Google deletes it with its project only",
}
_FREE = frozenset({_API, "gcp:kms/keyRing:KeyRing", "gcp:cloudquota/sQuotaPreference:SQuotaPreference"})
_GIB = 1 << 30


@dataclass(frozen=True)
class Stay:
    """A resource that stays.

    Attributes:
        urn: Its URN.
        what: Its name with its id.
        why: Why it stays.
        cost: What it costs in a month.
    """

    urn: str
    what: str
    why: str
    cost: str

    def line(self) -> str:
        """It as a sentence."""
        return f"{self.what}: {self.why}; {self.cost}"


def staying(entries: Iterable[Mapping[str, Any]]) -> tuple[Stay, ...]:
    """What stays of a state's custom resources, in their order."""
    custom_entries = [entry for entry in entries if entry.get("custom")]
    deleted = {str(entry.get("id")) for entry in custom_entries if entry["type"] == _BUCKET and not _why(entry)}
    stays = []
    for entry in custom_entries:
        why = _why(entry)
        if entry["type"] in _MODELS and _values(entry).get("bucket") in deleted:
            why = ""  # the objects go with their bucket
        if why:
            stays.append(Stay(str(entry["urn"]), _what(entry), why, _cost(entry)))
    return tuple(stays)


def is_check(entry: Mapping[str, Any]) -> bool:
    """Whether it is nothing in the cloud, e.g. the record of a check."""
    return entry["type"] in _CHECKS


def refuses_deletion(entry: Mapping[str, Any]) -> bool:
    """Whether the provider refuses its deletion by its `deletionPolicy`."""
    return _values(entry).get("deletionPolicy") == "PREVENT"


def _why(entry: Mapping[str, Any]) -> str:
    """Why it stays; "" where it is deleted."""
    values, kind = _values(entry), str(entry["type"])
    if entry.get("external"):
        return "the program only reads it"
    if entry.get("retainOnDelete"):
        return "it is retained on deletion"
    if kind in _MODELS:
        return "the stack checked these files, and owns neither them nor their bucket"
    if kind == _API and values.get("disableOnDestroy") is not True:
        return "the API stays enabled, as other stacks may use it (disableOnDestroy is false)"
    return _KEEPS.get(str(values.get("deletionPolicy") or ""), "") or _UNDELETABLE.get(kind, "")


def _values(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs, with what the provider added to them."""
    return {**(entry.get("outputs") or {}), **(entry.get("inputs") or {})}


def _what(entry: Mapping[str, Any]) -> str:
    name, kind = str(entry["urn"]).rpartition("::")[2], str(entry["type"])
    if kind == _API:
        return str(_values(entry).get("service") or entry.get("id") or name)
    return f"{name} ({kind}): {entry.get('id', '')}"


def _cost(entry: Mapping[str, Any]) -> str:
    """What it costs in a month, unknown where no row of the catalogue says so."""
    kind = str(entry["type"])
    if kind in _FREE:
        return "it costs nothing by itself"
    if kind in _MODELS:
        size = _values(entry).get("total_bytes")
        size_text = f" for {size / _GIB:.1f} GiB" if isinstance(size, int) and not isinstance(size, bool) else ""
        return f"unknown USD a month of Cloud Storage{size_text}"
    cost = stack_cost(resources_in([entry]))
    if cost.count and isinstance(cost.monthly, Priced):
        return f"{text(cost.monthly, 2)} USD a month at most"
    return "unknown USD a month"
