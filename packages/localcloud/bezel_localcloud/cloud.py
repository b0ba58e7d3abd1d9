"""Composition of one localcloud: store, keys, clock, and the applications on top of them."""

import json
from collections.abc import Callable

from starlette.types import ASGIApp

from bezel_base.atomic_write import write_whole
from bezel_localcloud.access.credentials import external_account, keys
from bezel_localcloud.access.credentials.issuer_keys import IssuerKeys
from bezel_localcloud.access.credentials.tokens import Tokens
from bezel_localcloud.access.permissions import PROJECT_NAME, Access
from bezel_localcloud.core.clock import InstanceTiming, PlatformClock
from bezel_localcloud.core.files.blobs import BlobFiles
from bezel_localcloud.core.files.objects import ObjectFiles
from bezel_localcloud.core.files.secret_folders import SecretFolders
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.logbook import Logbook
from bezel_localcloud.core.operations import Operations
from bezel_localcloud.core.paths import (
    BILLING_ACCOUNT,
    BILLING_BINDINGS,
    BUILT_IN_BINDINGS,
    DEFAULT_COMPUTE_ACCOUNT,
    DEPLOYER,
    ENABLED_FROM_THE_START,
    PROJECT,
    Paths,
)
from bezel_localcloud.core.store import Store
from bezel_localcloud.faults.platform import FaultyAccess, FaultyOperations, FaultyTokens
from bezel_localcloud.faults.registry import Faults
from bezel_localcloud.faults.wire import FaultMiddleware
from bezel_localcloud.http.client_forms import ClientForms
from bezel_localcloud.http.request_bodies import LARGEST_MESSAGE, LARGEST_OBJECT
from bezel_localcloud.http.request_log import Breakpoints, WireLog
from bezel_localcloud.machines.node_spec import NodeHost
from bezel_localcloud.processes.sockets import Sockets
from bezel_localcloud.routing.bare_paths import BarePaths
from bezel_localcloud.routing.generation import Generation
from bezel_localcloud.routing.route_table import RouteTable
from bezel_localcloud.routing.unknown_methods import unknown_method
from bezel_localcloud.services.balancer.balancers import Balancers
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch
from bezel_localcloud.services.cloud_run.runtime.controller import Controller
from bezel_localcloud.services.cloud_run.runtime.jobs import JobRunner
from bezel_localcloud.services.logging.log_counts import LogEntryCounter
from bezel_localcloud.services.machines.reconciler import MachineReconciler
from bezel_localcloud.services.monitoring.prometheus_series import PrometheusSeries
from bezel_localcloud.services.monitoring.quota_use import QuotaUseSampler
from bezel_localcloud.services.monitoring.service_use import ServiceUseSampler
from bezel_localcloud.services.scheduler.dispatcher import JobDispatcher

_TOKEN_REQUEST = 64 << 10  # bytes
_UPLOADS = ("/upload/", "/resumable/upload/")


def largest_body(path: str) -> int:
    """Return the size limit in bytes of a request body; objects and blobs are streamed to disk in pieces."""
    if path in {"/token", "/sts/v1/token"}:
        return _TOKEN_REQUEST
    from bezel_localcloud.services.storage.xml.routes import bucket_path

    blob = path.startswith("/v2/") and "/blobs/uploads" in path
    return LARGEST_OBJECT if blob or path.startswith(_UPLOADS) or bucket_path(path) else LARGEST_MESSAGE


class Cloud:
    """One project of the embedded cloud.

    Attributes:
        base: Address of the APIs, set once the daemon listens.
        faults: Injected failures.
        sockets: Socket files that instances listen on.
        secret_folders: Secrets that instances mount.
        nodes: Runs the machines of the TPU API and of Compute Engine.
        generation: What the project is of those that the daemon has served.
    """

    access: Access
    operations: Operations
    tokens: Tokens

    def __init__(
        self,
        layout: Paths,
        pace: PlatformClock,
        launcher: Callable[[ContainerLaunch], Command],
        timing: InstanceTiming,
        nodes: Callable[["Cloud"], NodeHost],
        *,
        default_network: bool = True,
        generation: int = 1,
    ) -> None:
        self.base = ""
        self.generation = Generation(generation)
        self._default_network = default_network
        self.layout = layout
        self.pace = pace
        self.store = Store(layout.database)
        self.faults = Faults(layout.root)
        self.access = FaultyAccess(self.store, self.faults)
        self.operations = FaultyOperations(self.store, pace, self.faults)
        self.logbook = Logbook(self.store, pace)
        self.objects = ObjectFiles(layout, self.store)
        self.blobs = BlobFiles(layout)
        issuer_key = keys.load_or_make(layout.issuer_key)
        self.tokens = FaultyTokens(issuer_key, self.store, pace, lambda: self.base, self.faults)
        self.issuers = IssuerKeys(pace)
        self.sockets = Sockets(layout.sockets)
        self.secret_folders = SecretFolders(layout.secret_files)
        self.services = Controller(self, launcher, timing)
        self.jobs = JobRunner(self, launcher, timing)
        self.balancers = Balancers(self)
        self.faults.listen(self._heed_full_disk)
        self.holds = Breakpoints()
        self.nodes = nodes(self)
        self.machines = MachineReconciler(self)
        self.quota_use = QuotaUseSampler(self)
        self.service_use = ServiceUseSampler(self)
        self.prometheus_series = PrometheusSeries(self.store)
        self.log_counts = LogEntryCounter(self.store)
        self.scheduler = JobDispatcher(self)

    def _heed_full_disk(self) -> None:
        full = self.faults.find("localcloud-disk-full") is not None
        if full != self.objects.full:
            self.objects.full = self.blobs.full = full
            self.store.limit(full=full)

    def is_enabled(self, api: str) -> bool:
        """Whether the project has enabled an API."""
        row = self.store.get("api", api)
        return row is not None and row["state"] == "ENABLED"

    def prepare(self) -> None:
        """Create the initial resources, repair the state after a kill, and write the credentials with their address."""
        from bezel_localcloud.services.artifact_registry.names import images_of
        from bezel_localcloud.services.compute.auto_mode import default_resources
        from bezel_localcloud.services.compute.vpc_api import put_new
        from bezel_localcloud.services.iam.api import new_account

        with self.store.transaction():
            if self.store.setting("created") is None:
                self.store.set_setting("created", timestamp(self.pace.now()))
                for api in ENABLED_FROM_THE_START:
                    self.store.put("api", api, {"state": "ENABLED"})
                for email, title in ((DEPLOYER, "Deployer"), (DEFAULT_COMPUTE_ACCOUNT, "Compute Engine default")):
                    self.store.put("account", email, new_account(email, title))
                self.store.put_policy(PROJECT_NAME, _policy(BUILT_IN_BINDINGS))
                if self._default_network:
                    for kind, name, body in default_resources():
                        put_new(self.store, kind, name, body, self.pace.now())
            if self.store.policy(BILLING_ACCOUNT) is None:  # a directory of an earlier version has no account
                self.store.put_policy(BILLING_ACCOUNT, _policy(BILLING_BINDINGS))
            self._write_credentials()
        self.objects.recover()
        images_of(self).recover(self.pace.now())

    def _write_credentials(self) -> None:
        account = self.store.get("account", DEPLOYER)
        if account is None:
            return
        path = self.layout.credentials
        pem = json.loads(path.read_text(encoding="utf-8"))["private_key"] if path.exists() else None
        key = keys.load_private(pem) if pem else keys.new_key()
        self.store.put("key", f"{DEPLOYER}/{keys.key_id(key)}", {"publicKeyPem": keys.public_pem(key)})
        content = keys.key_file(key, email=DEPLOYER, unique_id=account["uniqueId"], project=PROJECT, base=self.base)
        write_whole(path, json.dumps(content, indent=2), mode=0o600)
        subject = external_account.subject_token(key, DEPLOYER, self.pace.now())
        write_whole(self.layout.subject_token, subject, mode=0o600)
        outside = external_account.content(self.base, self.layout.subject_token)
        write_whole(self.layout.external_account, json.dumps(outside, indent=2), mode=0o600)

    def application(self) -> ASGIApp:
        """The REST surface of all APIs, with the request log."""
        from bezel_localcloud import control_api
        from bezel_localcloud.routing import batch
        from bezel_localcloud.services.artifact_registry import api as artifact_registry
        from bezel_localcloud.services.artifact_registry import artifacts_api, registry
        from bezel_localcloud.services.billing import accounts, budgets, catalog
        from bezel_localcloud.services.certificate_manager import api as certificate_manager
        from bezel_localcloud.services.cloud_quotas import preferences_api as cloud_quotas
        from bezel_localcloud.services.cloud_run import api as run
        from bezel_localcloud.services.cloud_run import executions_api, jobs_api
        from bezel_localcloud.services.compute import api as compute
        from bezel_localcloud.services.compute import instances_api, policies_api, vpc_api
        from bezel_localcloud.services.dns import api as dns
        from bezel_localcloud.services.iam import api as iam
        from bezel_localcloud.services.iam import credentials, keys_api, oauth, pools_api, roles_api, sts
        from bezel_localcloud.services.kms import versions_api as kms
        from bezel_localcloud.services.load_balancing import api as load_balancing
        from bezel_localcloud.services.load_balancing import rules_api
        from bezel_localcloud.services.logging import api as logs
        from bezel_localcloud.services.logging import metrics_api as log_metrics
        from bezel_localcloud.services.model_hub import api as model_hub
        from bezel_localcloud.services.monitoring import (
            alert_policies,
            channels,
            dashboards,
            prometheus_api,
            uptime_checks,
        )
        from bezel_localcloud.services.monitoring import api as monitoring
        from bezel_localcloud.services.monitoring.written_metrics import create_api, descriptors_api
        from bezel_localcloud.services.resource_manager import api as resource_manager
        from bezel_localcloud.services.scheduler import api as scheduler
        from bezel_localcloud.services.secret_manager import api as secret_manager
        from bezel_localcloud.services.service_usage import api as service_usage
        from bezel_localcloud.services.storage import service as storage
        from bezel_localcloud.services.storage.xml.routes import XmlRoute
        from bezel_localcloud.services.tpu import api as tpu
        from bezel_localcloud.services.vertex_ai import garden_api as vertex_ai

        apis = [
            *(module.api for module in (run, jobs_api, executions_api, storage, iam, credentials)),
            *(module.api for module in (keys_api, pools_api, roles_api, sts)),
            *(module.api for module in (resource_manager, secret_manager, kms, artifact_registry, artifacts_api)),
            *(module.api for module in (service_usage, cloud_quotas, logs, log_metrics, monitoring, channels)),
            *(module.api for module in (alert_policies, dashboards, uptime_checks, scheduler)),
            *(module.api for module in (prometheus_api, create_api, descriptors_api)),
            *(module.api for module in (compute, vpc_api, instances_api, policies_api, tpu, vertex_ai)),
            *(module.api for module in (accounts, budgets, catalog)),
            *(module.api for module in (rules_api, load_balancing, certificate_manager, dns)),
            control_api.api,
        ]
        routes = [
            *oauth.routes(self),
            *registry.routes(self),
            *model_hub.routes(self.layout),
            *batch.routes(lambda: application),
        ]
        routes += [route for api in apis for route in api.routes]

        # Paths that begin with a bucket's name come last: an API's are taken.
        app = RouteTable(self, XmlRoute(self, by_host=True), routes, XmlRoute(self, by_host=False), unknown_method)
        logged = WireLog(FaultMiddleware(app, self.faults, "api"), self.layout.wire_log, self.holds)
        application = ClientForms(BarePaths(logged, apis))
        return application


def _policy(grants: frozenset[tuple[str, str]]) -> Json:
    bindings = [{"role": role, "members": [member]} for role, member in sorted(grants)]
    return {"version": 1, "etag": "ACAB", "bindings": bindings}
