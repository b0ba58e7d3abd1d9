"""Reconciler of machines: advances requests with the clock, boots and ends machines, also after a restart.

Owns every change of a request that no call makes. Leaves out the life cycle itself (lifecycle.py), stock and quotas
(capacity.py), the messages of both APIs (tpu/api.py, compute/instances_api.py), and the programs on a
machine.
"""

import asyncio
import logging

from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.operations import EMPTY
from bezel_localcloud.core.patterns import shell_pattern_fits
from bezel_localcloud.core.store import is_full
from bezel_localcloud.machines import capacity
from bezel_localcloud.machines.capacity import Held
from bezel_localcloud.machines.lifecycle import GONE, NO_ADDRESS, PLACED, Conditions, Life, advance, move
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_quotas.in_force import value_in
from bezel_localcloud.services.compute.vpc import free_address, loopback
from bezel_localcloud.services.machines.tpu_json import failure, queued_resource

log = logging.getLogger(__name__)
QUEUED, INSTANCE, NODE, LATE = "queuedResource", "instance", "node", "lateFill"
KINDS = {QUEUED: "tpu", INSTANCE: "compute"}  # and the API that each is of
_TICK_SECONDS = 0.2
_RESPONSE = "type.googleapis.com/google.cloud.tpu.{}.QueuedResource"


class MachineReconciler:
    """Every request for machines, of both APIs, in the store.

    A row holds `life`, the request (`request`, `goods`, `zone`, `model`), the open operations (`operation`,
    `deletion`), the `machine` to boot (name, metadata, ...) and, once it has one, its `place` in a network.
    """

    def __init__(self, cloud: Context) -> None:
        self._cloud = cloud
        self._tasks = BackgroundTasks()
        self._requested = asyncio.Event()

    def advance(self) -> None:
        """Advance every request to its state at this time; every handler calls this first."""
        self._fill_late()
        for kind, name, row in self._rows():
            self._advance(kind, name, row)

    def begin(self, kind: str, name: str, row: Json) -> None:
        """Store a new request."""
        self._requested.set()
        self._cloud.store.put(kind, name, row)

    def begin_late(self, kind: str, name: str, row: Json) -> None:
        """Store a request when its life begins, unless its name is taken then."""
        self._requested.set()
        self._cloud.store.put(LATE, name, {"kind": kind, "row": row})

    def move(self, kind: str, name: str, row: Json, life: Life) -> None:
        """Move a request to a state that a user, or the platform, requests now."""
        self._settle(kind, name, row, life)

    def set_metadata(self, kind: str, name: str, row: Json, metadata: dict[str, str], **changes: Json) -> None:
        """Store other attributes of a machine, and hand them to it where it runs."""
        machine = row["machine"] | {"metadata": metadata}
        self._cloud.store.put(kind, name, row | changes | {"machine": machine})
        self._cloud.nodes.set_metadata(machine["name"], metadata)

    def end_all(self, *, lost: bool) -> list[str]:
        """End every running machine, as if its time were over or the platform reclaimed it, and return their names."""
        self.advance()
        now, active = (
            self._cloud.pace.now(),
            [request for request in self._rows() if request[2]["life"]["state"] == "ACTIVE"],
        )
        for kind, name, row in active:
            life = move(Life(**row["life"]), "SUSPENDING", now, lost=lost and kind == QUEUED)
            self._settle(kind, name, row, life)
        return [name for _, name, _ in active]

    def held_machines(self) -> list[Held]:
        """Requests that count in stock and quotas."""
        return [
            Held(KINDS[kind], row["zone"], row["goods"], row["model"], row["life"]["state"])
            for kind, _, row in self._rows()
        ]

    def quotas(self, place: str | None = None) -> dict[str, int]:
        """The project's limit of each quota: in a place, or without one the initial limit."""
        fault = self._cloud.faults.find("lease-quota")
        values = capacity.quota_values()
        if place is not None:
            store, now = self._cloud.store, self._cloud.pace.now()
            owners = {name: capacity.quota_places(name)[0] for name in values}
            values = {name: value_in(store, now, owners[name], name, place, value) for name, value in values.items()}
        return {name: min(value, int(fault.number("units"))) if fault else value for name, value in values.items()}

    def accepts_flex_start(self, zone: str) -> bool:
        """Whether a zone accepts requests of that provisioning model."""
        fault = self._cloud.faults.find("lease-zone-refused")
        refused = fault is not None and shell_pattern_fits(fault.text("zone"), zone)
        return zone in capacity.zones() and capacity.zones()[zone].flex_start and not refused

    def resume(self) -> None:
        """Boot the machines that should run after a restart, and advance all requests from now on."""
        self.advance()
        for _, _, row in self._rows():
            if row["life"]["state"] == "ACTIVE":
                self._boot(row)
        self._tasks.keep(asyncio.create_task(self._tick()))

    async def close(self) -> None:
        """Stop advancing; the store keeps the record of the machines that should run."""
        await self._tasks.end()

    async def _tick(self) -> None:
        while True:
            if not any(self._cloud.store.rows(kind, limit=1) for kind in (*KINDS, LATE)):
                self._requested.clear()
                await self._requested.wait()
            await asyncio.sleep(_TICK_SECONDS)
            try:
                self.advance()
            except Exception as error:
                if not is_full(error):  # the next caller that writes gets the error of a full disk
                    log.exception("requests for machines could not be advanced")

    def _rows(self) -> list[tuple[str, str, Json]]:
        """(kind, name, row) of every request."""
        return [(kind, name, row) for kind in KINDS for name, row in self._cloud.store.rows(kind)]

    def _fill_late(self) -> None:
        store = self._cloud.store
        for name, late in store.rows(LATE):
            if late["row"]["life"]["created"] > self._cloud.pace.now():
                continue
            with store.transaction():
                store.delete(LATE, name)
                taken = {row["machine"]["name"] for _, _, row in self._rows()}
                if store.get(late["kind"], name) is None and late["row"]["machine"]["name"] not in taken:
                    store.put(late["kind"], name, late["row"])

    def _advance(self, kind: str, name: str, row: Json) -> None:
        while (life := advance(Life(**row["life"]), self._cloud.pace.now(), self._conditions(row))) is not None:
            row = self._settle(kind, name, row, life)
            if life.state == GONE or self._cloud.store.get(kind, name) is None:
                return

    def _conditions(self, row: Json) -> Conditions:
        zone, faults, seconds = row["zone"], self._cloud.faults, self._cloud.pace.seconds
        waits = {wait: seconds(value) for wait, value in capacity.waits().items()}
        if slow := faults.find("lease-slow-delete"):
            waits["deleting"] += seconds(slow.number("seconds"))
        never, sold_out = faults.find("lease-never-active"), bool(self._sold_out(zone))
        in_stock = row["life"]["state"] in {"CREATING", "WAITING_FOR_RESOURCES"} and not sold_out
        return Conditions(
            waits,
            in_stock=in_stock and capacity.free_machines(zone, row["goods"], self.held_machines()) > 0,
            gives_up=sold_out or bool(capacity.zones()[zone].stock_out),
            never_ready=seconds(never.number("seconds")) if never else None,
        )

    def _sold_out(self, zone: str) -> str:
        """Stock-out message of a zone with such a fault, "" without one."""
        fault = self._cloud.faults.find("lease-stock-out")
        return fault.text("code") if fault and shell_pattern_fits(fault.text("zone"), zone) else ""

    def _settle(self, kind: str, name: str, row: Json, life: Life) -> Json:
        """Store a new state with all its effects and return the new row."""
        previous = row["life"]["state"]
        with self._cloud.store.transaction():
            if life.state == "PROVISIONING" and not (row := self._with_place(row)).get("place"):
                life = move(life, "FAILED", life.since, failure=NO_ADDRESS)
            if life.state not in PLACED | {"DELETING"}:
                row = {key: value for key, value in row.items() if key != "place" or life.lost}
            if life.state == "FAILED":
                row |= {"said": self._sold_out(row["zone"]) or capacity.zones()[row["zone"]].stock_out}
            row |= {"life": life.as_json()}
            ended = life.state == GONE or (kind == INSTANCE and life.state in {"FAILED", "SUSPENDED"})
            if ended:
                self._cloud.store.delete(kind, name)
                self._cloud.store.delete_policy(name)
            else:
                self._cloud.store.put(kind, name, row)
            self._keep_node(kind, name, row, gone=ended)
            self._finish(kind, name, row, previous)
        if life.state == "ACTIVE":
            self._boot(row)
        elif previous == "ACTIVE":
            self._cloud.nodes.end(row["machine"]["name"])
        return row

    def _with_place(self, row: Json) -> Json:
        """Return a row with its machine placed in its network; without a place if no address is left there."""
        machine, store = row["machine"], self._cloud.store
        subnetwork = store.get("subnetwork", machine["subnetwork"])
        address = free_address(store, machine["subnetwork"])
        if subnetwork is None or address is None:
            return row
        place = {"network": subnetwork["network"], "subnetwork": machine["subnetwork"], "address": address}
        return row | {"place": place}

    def _keep_node(self, kind: str, name: str, row: Json, *, gone: bool) -> None:
        """Store or delete the node of a queued resource, which exists as long as the resource has a place."""
        if kind != QUEUED:
            return
        node = row["machine"]["name"]
        if row.get("place") and not gone:
            created = (self._cloud.store.get(NODE, node) or {}).get("created", row["life"]["since"])
            self._cloud.store.put(NODE, node, {"queuedResource": name, "place": row["place"], "created": created})
        else:
            self._cloud.store.delete(NODE, node)

    def _finish(self, kind: str, name: str, row: Json, previous: str) -> None:
        """End the operations that waited for this state."""
        operations, state = self._cloud.operations, row["life"]["state"]
        if kind == QUEUED and previous == "CREATING":
            message = _RESPONSE.format(row.get("version", "v2alpha1"))
            operations.finish(row["operation"], response={"@type": message} | queued_resource(name, row))
        if kind == INSTANCE and state == "ACTIVE":
            operations.finish(row["operation"])
        if kind == INSTANCE and state == "FAILED":
            operations.finish(row["operation"], error=failure(row))
        if state == GONE:
            operations.finish(row.get("deletion", ""), response=EMPTY if kind == QUEUED else None)

    def _boot(self, row: Json) -> None:
        machine, place = row["machine"], row["place"]
        spec = NodeSpec(
            name=machine["name"],
            hardware=row["goods"],
            metadata=machine["metadata"],
            service_account=machine["service_account"],
            network=place["network"],
            subnetwork=place["subnetwork"],
            address=loopback(place["address"]),
            external_address=external_address(machine, place),
            tags=tuple(machine["tags"]),
        )
        self._cloud.nodes.boot(spec)


def external_address(machine: Json, place: Json | None) -> str:
    """The external address of a row's machine on this computer: 127.192.0.5 beside 127.64.0.5; "" for none."""
    if not machine["external"] or not place:
        return ""
    first, second, rest = loopback(place["address"]).split(".", 2)
    return f"{first}.{int(second) ^ 128}.{rest}"
