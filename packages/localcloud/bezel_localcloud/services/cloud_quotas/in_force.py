"""Granted values of a project's quotas: what a preference raised or lowered a quota to, in one place.

Owns the stored row of a preference and the change of its state with the clock. Leaves out the decision
(`decisions.py`) and the methods of the API. Cloud Run and the machines ask here too, so a granted request is in force.
"""

from dataclasses import asdict, dataclass

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store

KIND = "quotaPreference"
PLACES = ("zone", "region")


@dataclass(frozen=True)
class Preference:
    """A stored preference.

    Attributes:
        body: What the caller may read and set, without what follows from the decision.
        before: The value in force until the decision; None is the quota's initial value.
        decides: Unix seconds of the decision.
        grants: The value from then on; None leaves it as it was.
        detail: The decision in words.
        trace: Id of an increase; "" for a decrease.
    """

    body: Json
    before: int | None
    decides: float
    grants: int | None
    detail: str
    trace: str

    @classmethod
    def of(cls, row: Json) -> "Preference":
        """From the store."""
        return cls(**row)

    def as_row(self) -> Json:
        """For the store."""
        return asdict(self)

    def value(self, now: float) -> int | None:
        """The value in force; None where it is the initial one."""
        return self.grants if now >= self.decides and self.grants is not None else self.before

    @property
    def place(self) -> str:
        """Its region or zone; "" for all."""
        dimensions = self.body.get("dimensions") or {}
        return next((str(dimensions[name]) for name in PLACES if name in dimensions), "")


def preferences(store: Store) -> list[tuple[str, Preference]]:
    """(name, preference) of the project."""
    return [(name, Preference.of(row)) for name, row in store.rows(KIND)]


def values_in_force(store: Store, now: float, service: str, quota: str) -> dict[str, int]:
    """Values in force of a quota by place; "" is every place without a value of its own."""
    values: dict[str, int] = {}
    for _, preference in preferences(store):
        if (preference.body["service"], preference.body["quotaId"]) == (service, quota):
            value = preference.value(now)
            if value is not None:
                values[preference.place] = value
    return values


def value_in(store: Store, now: float, service: str, quota: str, place: str, initial: int) -> int:
    """The value of a quota that is in force in a place."""
    values = values_in_force(store, now, service, quota)
    return values.get(place, values.get("", initial))
