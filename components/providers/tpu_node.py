"""Dynamic provider of `TpuNode`: waits until a lease serves, and detects its end.

The wait covers the queue, provisioning and boot, moves on to the next zone where one has no capacity, and shows each
state. Every preview reports a lease that ended, with the price of another one, which is bought only with `renew`.
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
from bezel.leases.controller import LeaseController, LeaseError
from bezel.leases.cost import cost_of
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import plain
from bezel.leases.observation import Observation
from bezel.leases.wanted import Goal, Wanted
from bezel.rest import RestError
from components.dynamic import DeployError, Progress
from components.providers.lease_properties import OVER, kept, observe_all_zones, spec_of, state_of

_PREVIEW_SECONDS = 8.0
_SETTINGS = ("zones", "hourly_usd", "run_seconds", "renew", "port", "former_zones")
_DEADLINES = ("provisioning_deadline_seconds", "boot_deadline_seconds")


class TpuNodeError(DeployError):
    """The lease does not serve; the text says what to do."""


class TpuNodeProvider(ResourceProvider):
    """Provider of `TpuNode`. Inputs: see `lease_properties`; request, renew, hourly_usd, port, urn.

    Outputs: lease, zone, state, address, active_at, ends_at, cost.
    """

    serialize_as_secret_always = False
    clock = staticmethod(clock_of)
    """Clock of this process."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report a change for another request or setting, a lease to renew, or one too many."""
        request = _news.get("request")
        if contains_unknowns(request) or request != _olds.get("request"):
            return DiffResult(changes=True)
        changed = any(plain(_olds.get(key)) != plain(_news.get(key)) for key in (*_SETTINGS, *_DEADLINES))
        clock = self.clock()
        try:
            with new_client(clock, seconds=_PREVIEW_SECONDS) as client:
                seen = observe_all_zones(client, spec_of(_olds))
        except RestError as error:
            # The plugin cannot write to the engine's log, but the engine shows its standard error.
            sys.stderr.write(f"warning: nobody could look at the lease {_olds['name']}: {error}\n")
            return DiffResult(changes=changed)
        return DiffResult(changes=_moved(seen, _olds, _news, clock.now()) or changed)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Wait until the lease serves.

        Raises:
            TpuNodeError: It does not, or not in time; what exists stays, and the next run continues with it.
        """
        outputs = self._settled(props, may_ask=True)
        return CreateResult(f"projects/{props['project']}/leases/{props['name']}/node", outputs)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Wait again; buy another lease only after another request, or with `renew`.

        Raises:
            TpuNodeError: The lease does not serve.
        """
        may_ask = bool(_news.get("renew")) or _news.get("request") != _olds.get("request")
        return UpdateResult(self._settled(_news, may_ask=may_ask, before=_olds))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record the lease's state and cost at a refresh; one that has ended stays, as `expired` or `gone`.

        Raises:
            TpuNodeError: The lease could not be read.
        """
        clock = self.clock()
        try:
            with new_client(clock) as client:
                seen = observe_all_zones(client, spec_of(props))
        except RestError as error:
            raise TpuNodeError(
                f"nobody could look at the lease {props['name']}: {error}\n"
                "repair: let whoever deploys have roles/tpu.viewer (or roles/compute.viewer), then run it again"
            ) from None
        live = [one for one in seen if one.live]
        return ReadResult(id_, {**props, **_outputs(live[0] if live else None, seen, props, clock.now())})

    def _settled(
        self, props: Mapping[str, Any], *, may_ask: bool, before: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        clock, spec = self.clock(), spec_of(props)
        wanted = Wanted(
            spec,
            Goal.HEALTHY,
            may_ask=may_ask,
            provisioning_seconds=float(props["provisioning_deadline_seconds"]),
            boot_seconds=float(props["boot_deadline_seconds"]),
            hourly_usd=dict(props.get("hourly_usd") or {}),
            current=str((before or {}).get("lease") or ""),
        )
        progress = Progress(props.get("urn"))
        try:
            with new_client(clock) as client:
                one = LeaseController(back_end_of(spec.back_end, client, spec.project), clock, progress).run(wanted)
                seen = [one] if one is not None else observe_all_zones(client, spec)
        except LeaseError as error:
            raise TpuNodeError(str(error)) from None
        except RestError as error:
            raise TpuNodeError(
                f"the lease {spec.name} could not be waited for: {error}\n"
                "consequence: what was asked for stays as it is\n"
                "repair: mend what it names, then run the same command again: it goes on with what there is"
            ) from None
        finally:
            progress.close()
        return {**kept(props), **_outputs(one, seen, {**(before or {}), **kept(props)}, clock.now())}


def _moved(seen: Sequence[Observation], olds: Mapping[str, Any], news: Mapping[str, Any], now: float) -> bool:
    """Whether the lease differs from its record in a way that an update would correct; print the difference.

    The end of a lease is recorded once, or the stack's outputs would call it active forever.
    """
    live = [one for one in seen if one.live]
    if not live:
        hourly = (olds.get("hourly_usd") or {}).get(str(olds.get("zone")))
        end, run = olds.get("ends_at"), olds.get("run_seconds")
        early, renew = (unix(end) or now) > now, bool(news.get("renew"))
        sys.stderr.write(f"warning: {messages.ended(olds['name'], end, hourly, run, early=early, renew=renew)}\n")
        return bool(news.get("renew")) or olds.get("state") not in OVER
    if len(seen) > 1:
        where = ", ".join(f"{one.zone} ({one.word})" for one in seen)
        sys.stderr.write(f"warning: {olds['name']} is there more than once: {where}; all but one are deleted\n")
        return True
    return live[0].id != olds.get("lease")


def _outputs(
    one: Observation | None, seen: Sequence[Observation], props: Mapping[str, Any], now: float
) -> dict[str, Any]:
    """The outputs of a lease; of an ended one, its last."""
    if one is None:
        before = {key: props.get(key) for key in ("lease", "zone", "address", "active_at", "ends_at", "cost")}
        return {**before, "state": state_of(seen, props, now), "cost": _final_cost(props, now)}
    hourly = (props.get("hourly_usd") or {}).get(one.zone)
    cost = cost_of(hourly, active_at=one.active_at, ends_at=one.ends_at, run_seconds=props.get("run_seconds"), now=now)
    return {
        "lease": one.id,
        "zone": one.zone,
        "state": str(one.state),
        "address": one.address,
        "active_at": rfc3339(one.active_at),
        "ends_at": rfc3339(one.ends_at),
        "cost": cost,
    }


def _final_cost(props: Mapping[str, Any], now: float) -> Any:
    """The cost of an ended lease: up to its planned end, or, if it ended earlier, as last computed."""
    end = unix(props.get("ends_at"))
    if end is None or end > now:
        return props.get("cost")
    hourly = (props.get("hourly_usd") or {}).get(str(props.get("zone")))
    began = unix(props.get("active_at"))
    return cost_of(hourly, active_at=began, ends_at=end, run_seconds=props.get("run_seconds"), now=end)
