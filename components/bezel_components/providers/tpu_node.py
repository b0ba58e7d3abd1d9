"""Dynamic provider of `TpuNode`: waits until a lease serves, and detects its end.

The wait covers the queue, provisioning and boot, moves on to the next zone where one has no capacity, and shows each
state. Every preview reports a lease that ended, with the price of another one, which is bought only with `renew`.
With hours, a lease may be there or not: a deploy requests one in its hours where none is left, and for a check.
Leaves deleting to `TpuRequest`. The class is pickled into the stack's state by reference: neither it nor this module
may be renamed, and it holds no data.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, ResourceProvider, UpdateResult
from pulumi.output import contains_unknowns

from bezel.leases import messages
from bezel.leases.clock import clock_of, rfc3339, unix
from bezel.leases.cost import UNKNOWN, cost_of
from bezel.leases.names import plain
from bezel.leases.state.observation import DesiredState, Goal, Observation
from bezel_base.errors import UserError
from bezel_components.providers import lease_properties as lease

_PREVIEW_SECONDS = 8.0
_SETTINGS = ("zones", "hourly_usd", "run_seconds", "renew", "port", "former_zones", "hours", "checked")
_DEADLINES = ("provisioning_deadline_seconds", "boot_deadline_seconds")


class TpuNodeProvider(ResourceProvider):
    """Provider of `TpuNode`. Inputs: see `lease_properties`; request, renew, hourly_usd, port, urn, checked.

    Outputs: lease, zone, state, address, active_at, ends_at, cost; equal_hashes (see `lease_properties`);
    granted where it is optional: whether the last deploy, or refresh, has found it.
    """

    serialize_as_secret_always = False
    clock = staticmethod(clock_of)
    """Clock of this process."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change for another request or setting, a lease to renew, or one too many."""
        if contains_unknowns([_news.get("request"), _news.get("checked")]) or _is_other_request(_olds, _news):
            return DiffResult(changes=True)
        changed = any(plain(_olds.get(key)) != plain(_news.get(key)) for key in (*_SETTINGS, *_DEADLINES))
        clock = self.clock()
        try:
            leases = lease.observations(_olds, clock, _PREVIEW_SECONDS)
        except UserError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: {error}\n")
            return DiffResult(changes=changed)
        return DiffResult(changes=_differs(leases, _olds, _news, clock.now()) or changed)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait until the lease serves.

        Raises:
            LeaseDeployError: It does not, or not in time; what exists stays, and the next run continues with it.
        """
        outputs = self._serving(props, may_request=True)
        return CreateResult(f"projects/{props['project']}/leases/{props['name']}/node", outputs)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Wait again; buy another lease only after another request, with `renew`, in its hours, or for a check.

        Raises:
            LeaseDeployError: The lease does not serve.
        """
        in_hours = lease.is_in_hours(_news, self.clock().now())
        missing = _olds.get("state") == lease.NOT_GRANTED
        may_request = bool(_news.get("renew")) or in_hours or missing or _is_other_request(_olds, _news)
        equal = {lease.EQUAL_HASHES: hashes} if (hashes := lease.equal_hashes(_olds, _news)) else {}
        return UpdateResult(self._serving({**_news, **equal}, may_request=may_request, before=_olds))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record the lease's state and cost at a refresh; one that has ended stays, as `expired` or `gone`.

        With hours nothing of it is recorded: it comes and goes without a deploy.

        Raises:
            LeaseDeployError: The lease could not be read.
        """
        if lease.windows_of(props):
            return ReadResult(id_, props)
        clock = self.clock()
        leases = lease.observe_all_zones(props, clock)
        live = next((each for each in leases if each.is_live), None)
        if live is None and props.get("state") == lease.NOT_GRANTED:
            return ReadResult(id_, props)
        granted = {"granted": live is not None} if props.get("optional") else {}
        return ReadResult(id_, {**props, **_outputs(live, leases, props, clock.now()), **granted})

    def _serving(
        self, props: Mapping[str, Any], *, may_request: bool, before: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        clock = self.clock()
        desired = DesiredState(
            lease.spec_of(props),
            Goal.HEALTHY,
            may_request=may_request,
            provisioning_seconds=float(props["provisioning_deadline_seconds"]),
            boot_seconds=float(props["boot_deadline_seconds"]),
            hourly_usd=dict(props.get("hourly_usd") or {}),
            current=str((before or {}).get("lease") or ""),
        )
        optional = bool(props.get("optional"))
        reached = lease.reach_optional(desired, clock, props.get("urn"), optional=optional)
        granted = {"granted": reached is not None} if optional else {}
        if lease.windows_of(props):
            return {**lease.own_properties(props), **_scheduled_outputs(props, clock.now()), **granted}
        if optional and reached is None and may_request:
            return {**lease.own_properties(props), **_missing_outputs(props, clock.now()), **granted}
        leases = [reached] if reached is not None else lease.observe_all_zones(props, clock)
        properties = lease.own_properties(props)
        return {**properties, **_outputs(reached, leases, {**(before or {}), **properties}, clock.now()), **granted}


def _is_other_request(olds: Mapping[str, Any], news: Mapping[str, Any]) -> bool:
    """Whether the lease was requested anew, or, with hours, its server is to be checked again."""
    other_check = bool(lease.windows_of(news)) and news.get("checked") != olds.get("checked")
    return news.get("request") != olds.get("request") or other_check


def _differs(leases: Sequence[Observation], olds: Mapping[str, Any], news: Mapping[str, Any], now: float) -> bool:
    """Whether the lease differs from its record in a way that an update would correct; print the difference.

    The end of a lease is recorded once, or the stack's outputs would call it active forever.
    """
    live, has_hours = [each for each in leases if each.is_live], bool(lease.windows_of(news))
    if not live and has_hours:
        if lease.is_in_hours(news, now):
            hourly = (news.get("hourly_usd") or {}).get(news["zones"][0]["zone"])
            sys.stderr.write(f"warning: {messages.none_in_hours(news['name'], hourly, news.get('run_seconds'))}\n")
            return True
        return False
    if not live and olds.get("state") == lease.NOT_GRANTED:
        sys.stderr.write(f"warning: the lease {olds['name']} was not granted: this deploy requests it again\n")
        return True
    if not live:
        hourly = (olds.get("hourly_usd") or {}).get(str(olds.get("zone")))
        end, run = olds.get("ends_at"), olds.get("run_seconds")
        early, renew = (unix(end) or now) > now, bool(news.get("renew"))
        sys.stderr.write(f"warning: {messages.end_text(olds['name'], end, hourly, run, early=early, renew=renew)}\n")
        return renew or olds.get("state") not in lease.OVER
    if len(leases) > 1:
        zones = ", ".join(f"{each.zone} ({each.word})" for each in leases)
        sys.stderr.write(f"warning: {olds['name']} exists more than once: {zones}; all but one are deleted\n")
        return True
    return not has_hours and live[0].id != olds.get("lease")


def _outputs(
    current: Observation | None, leases: Sequence[Observation], props: Mapping[str, Any], now: float
) -> dict[str, Any]:
    """The outputs of a lease; of an ended one, its last."""
    if current is None:
        before = {key: props.get(key) for key in ("lease", "zone", "address", "active_at", "ends_at", "cost")}
        return {**before, "state": lease.state_of(leases, props, now), "cost": _final_cost(props, now)}
    return {
        "lease": current.id,
        "zone": current.zone,
        "state": str(current.state),
        "address": current.address,
        "active_at": rfc3339(current.active_at),
        "ends_at": rfc3339(current.ends_at),
        "cost": _cost(props, current.zone, current.active_at, current.ends_at, now),
    }


def _missing_outputs(props: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The outputs of a lease that no zone has granted."""
    zone = str(props["zones"][0]["zone"])
    outputs = {"lease": "", "zone": zone, "state": lease.NOT_GRANTED, "address": "", "active_at": None, "ends_at": None}
    return {**outputs, "cost": _cost(props, zone, None, None, now) | {"so_far_usd": 0.0}}


def _scheduled_outputs(props: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The outputs of a lease with hours, which has one zone."""
    zone = str(props["zones"][0]["zone"])
    outputs = {"lease": props.get("request"), "zone": zone, "state": "scheduled", "address": ""}
    cost = _cost(props, zone, None, None, now) | {"so_far_usd": UNKNOWN}
    return {**outputs, "active_at": None, "ends_at": None, "cost": cost}


def _final_cost(props: Mapping[str, Any], now: float) -> Any:
    """The cost of an ended lease: up to its planned end, or, if it ended earlier, as last computed."""
    end = unix(props.get("ends_at"))
    if end is None or end > now:
        return props.get("cost")
    return _cost(props, str(props.get("zone")), unix(props.get("active_at")), end, end)


def _cost(
    props: Mapping[str, Any], zone: str, active_at: float | None, ends_at: float | None, now: float
) -> dict[str, Any]:
    hourly = (props.get("hourly_usd") or {}).get(zone)
    return cost_of(hourly, active_at=active_at, ends_at=ends_at, run_seconds=props.get("run_seconds"), now=now)
