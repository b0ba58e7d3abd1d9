"""Everything that one localcloud holds, put together: store, keys, clock, and the applications on top of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from bezel.localcloud import keys
from bezel.localcloud.access import PROJECT_NAME
from bezel.localcloud.api import unknown_method
from bezel.localcloud.faults.book import Faults
from bezel.localcloud.faults.platform import FaultyAccess, FaultyOperations, FaultyTokens
from bezel.localcloud.faults.wire import Spoiled
from bezel.localcloud.holds import Holds
from bezel.localcloud.layout import DEFAULT_COMPUTE_ACCOUNT, DEPLOYER, PROJECT, RUN_AGENT, Layout, write_atomically
from bezel.localcloud.logbook import Logbook
from bezel.localcloud.machines.keeper import Keeper
from bezel.localcloud.objects import ObjectFiles
from bezel.localcloud.quota_use import QuotaUse
from bezel.localcloud.run.controller import Controller
from bezel.localcloud.run.jobs import Jobs
from bezel.localcloud.run.sockets import Sockets
from bezel.localcloud.shapes import timestamp, without_zeros
from bezel.localcloud.store import Store
from bezel.localcloud.wire import WireLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from bezel.localcloud.node.spec import NodeHost, NodeSpec
    from bezel.localcloud.pace import InstanceTiming, Pace
    from bezel.localcloud.run.launch import Command, Container
    from bezel.localcloud.shapes import Json

# What a project can do before anything is enabled: enabling itself, and what every new project has.
ENABLED_FROM_THE_START = frozenset(
    f"{name}.googleapis.com"
    for name in ("serviceusage", "cloudresourcemanager", "compute", "storage", "storage-api", "logging", "monitoring")
)
_TOKEN_REQUEST, _MESSAGE, _OBJECT = 64 << 10, 10 << 20, 5 << 40  # bytes; the last two are Google's limits
BUILT_IN_ACCOUNTS = frozenset({DEPLOYER, DEFAULT_COMPUTE_ACCOUNT})
BUILT_IN_BINDINGS = frozenset(
    {("roles/owner", f"serviceAccount:{DEPLOYER}"), ("roles/run.serviceAgent", f"serviceAccount:{RUN_AGENT}")}
)


def largest_body(path: str) -> int:
    """How many bytes the body of a request to the APIs may have: an object goes to the disk piece by piece."""
    if path == "/token":
        return _TOKEN_REQUEST
    return _OBJECT if path.startswith("/upload/") else _MESSAGE


class NoNodes:
    """Machines that are there by their name only."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def boot(self, spec: NodeSpec) -> None:
        """Nothing starts."""

    def end(self, name: str) -> None:
        """Nothing ends."""

    def guest_attributes(self, name: str) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        """Nothing was written."""
        return {}

    def serial_output(self, name: str) -> str:  # noqa: ARG002 - the protocol's
        """Nothing was shown."""
        return ""

    async def close(self) -> None:
        """Nothing ends."""


class Cloud:
    """One project of the embedded cloud.

    Attributes:
        base: Address of the APIs, set once the daemon listens.
        faults: What is to go wrong, and does.
        sockets: Where instances listen.
        nodes: What runs the machines that TPU and Compute Engine sell.
    """

    def __init__(
        self,
        layout: Layout,
        pace: Pace,
        launcher: Callable[[Container], Command],
        timing: InstanceTiming,
        nodes: Callable[[Cloud], NodeHost] = NoNodes,
    ) -> None:
        self.base = ""
        self.layout = layout
        self.pace = pace
        self.store = Store(layout.database)
        self.faults = Faults(layout.root)
        self.access = FaultyAccess(self.store, self.faults)
        self.operations = FaultyOperations(self.store, pace, self.faults)
        self.logbook = Logbook(self.store, pace)
        self.objects = ObjectFiles(layout, self.store)
        issuer_key = keys.load_or_make(layout.issuer_key)
        self.tokens = FaultyTokens(issuer_key, self.store, pace, lambda: self.base, self.faults)
        self.sockets = Sockets(layout.sockets)
        self.services = Controller(self, launcher, timing)
        self.jobs = Jobs(self, launcher, timing)
        self.faults.listen(self._heed_full_disk)
        self.holds = Holds()
        self.nodes = nodes(self)
        self.machines = Keeper(self)
        self.quota_use = QuotaUse(self)

    def _heed_full_disk(self) -> None:
        full = self.faults.find("localcloud-disk-full") is not None
        if full != self.objects.full:
            self.objects.full = full
            self.store.limit(full=full)

    def is_enabled(self, api: str) -> bool:
        """Whether the project has enabled an API."""
        found = self.store.get("api", api)
        return found is not None and found["state"] == "ENABLED"

    @staticmethod
    def shown(service: Json) -> Json:
        """A service as the API shows it."""
        return without_zeros(service)

    def prepare(self) -> None:
        """Make what a new project has, mend what a kill left, and write the key file for today's address."""
        from bezel.localcloud.apis.iam import new_account

        with self.store.transaction():
            if self.store.setting("created") is None:
                self.store.set_setting("created", timestamp(self.pace.now()))
                for api in ENABLED_FROM_THE_START:
                    self.store.put("api", api, {"state": "ENABLED"})
                for email, title in ((DEPLOYER, "Deployer"), (DEFAULT_COMPUTE_ACCOUNT, "Compute Engine default")):
                    self.store.put("account", email, new_account(email, title))
                bindings = [{"role": role, "members": [member]} for role, member in sorted(BUILT_IN_BINDINGS)]
                self.store.put_policy(PROJECT_NAME, {"version": 1, "etag": "ACAB", "bindings": bindings})
            self._write_key_file()
        self.objects.recover()

    def _write_key_file(self) -> None:
        account = self.store.get("account", DEPLOYER)
        if account is None:
            return
        path = self.layout.credentials
        kept = json.loads(path.read_text())["private_key"] if path.exists() else None
        key = keys.load_private(kept) if kept else keys.new_key()
        self.store.put("key", f"{DEPLOYER}/{keys.key_id(key)}", {"publicKeyPem": keys.public_pem(key)})
        content = keys.key_file(key, email=DEPLOYER, unique_id=account["uniqueId"], project=PROJECT, base=self.base)
        write_atomically(path, json.dumps(content, indent=2).encode())

    def application(self) -> ASGIApp:
        """The REST surface of all APIs, with the log of the wire."""
        from bezel.localcloud.apis import (
            artifact_registry,
            cloud_quotas,
            compute,
            compute_instances,
            compute_vpc,
            faults,
            holds,
            iam,
            iam_credentials,
            inventory,
            logs,
            model_hub,
            monitoring,
            oauth,
            registry,
            resource_manager,
            rewrites,
            run,
            run_executions,
            run_jobs,
            secret_manager,
            service_usage,
            storage,
            tpu,
            uploads,
        )

        apis = [
            *(
                module.api
                for module in (run, run_jobs, run_executions, storage, uploads, rewrites, iam, iam_credentials)
            ),
            *(module.api for module in (resource_manager, secret_manager)),
            *(module.api for module in (artifact_registry, service_usage, cloud_quotas, logs, monitoring)),
            *(module.api for module in (compute, compute_vpc, compute_instances, tpu)),
            *(module.api for module in (inventory, holds, faults)),
        ]
        routes = [*oauth.routes(self), *registry.routes(self), *model_hub.routes()]
        routes += [route for api in apis for route in api.routes(self)]

        async def not_found(request: Request, _: Exception) -> Response:
            return unknown_method(request)

        app = Starlette(routes=routes, exception_handlers={404: not_found, 405: not_found})
        app.router.redirect_slashes = False
        return WireLog(Spoiled(app, self.faults, "api"), self.layout.wire_log, self.holds)
