"""Single leases on an embedded cloud: a context as a face makes it, and what the operations are asked."""

import threading
from pathlib import Path
from typing import Any

from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.tpu.create_lease import apply_create, plan_create
from bezel.operations.tpu.delete_lease import DeleteArguments, apply_delete, plan_delete
from bezel.operations.tpu.lease_request import CreateArguments
from bezel.operations.tpu.list_leases import Leases, ListArguments, list_leases
from localcloud_support.in_process import PARENT
from tests.support.cli.tpu_cloud import OTHER, ZONE, Cloud

ROOT = Path(__file__).parents[3]
PROJECT = PARENT.partition("/")[2]
ACCOUNT = f"dev-machine@{PROJECT}.iam.gserviceaccount.com"


class LeaseCloud:
    """The operations on an embedded cloud with a network `net` in two regions."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.cancelled = threading.Event()
        self.account = ACCOUNT
        cloud.project.cloud.store.put("api", "iam.googleapis.com", {"state": "ENABLED"})
        cloud.project.ok("POST", f"/iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": "dev-machine"})

    def context(self) -> Context:
        """A new context."""
        return Context(ROOT, show=lambda _line: None, cancelled=self.cancelled)

    def plan(self, **changes: Any) -> Plan:
        """The plan of a request."""
        values = {"name": "dev-one", "hardware": "v6e-1", "zone": (ZONE, OTHER), "network": "net"}
        with self.context() as context:
            arguments = CreateArguments.model_validate({**values, "service_account": ACCOUNT, **changes})
            return plan_create(context, arguments)

    def create(self, plan: Plan) -> Outcome:
        """Carry a plan of a request out."""
        with self.context() as context:
            return apply_create(context, plan)

    def list(self, *zones: str) -> Leases:
        """The leases."""
        with self.context() as context:
            return list_leases(context, ListArguments(zone=zones or (ZONE, OTHER)))

    def plan_delete(self, name: str) -> Plan:
        """The plan of a deletion."""
        with self.context() as context:
            return plan_delete(context, DeleteArguments(name=name, zone=(ZONE, OTHER)))

    def delete(self, plan: Plan) -> Outcome:
        """Carry a plan of a deletion out."""
        with self.context() as context:
            return apply_delete(context, plan)
