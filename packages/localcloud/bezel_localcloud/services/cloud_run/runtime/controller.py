"""Controller of Cloud Run services: starts revisions, shifts traffic and retires revisions as the store requires.

Owns deployments, pools of instances and ingresses of all services; after a restart it continues from the store. Leaves
out the API's messages (api.py) and the path of one request (ingress.py).
"""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import partial

from starlette.types import ASGIApp

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.logbook import LogSource
from bezel_localcloud.core.store import write_when_room
from bezel_localcloud.routing.context import Context, RevisionUse
from bezel_localcloud.services.cloud_run import egress, failures, status, traffic
from bezel_localcloud.services.cloud_run.failures import KilledError, RevisionFailureError
from bezel_localcloud.services.cloud_run.references import check_image, check_quota
from bezel_localcloud.services.cloud_run.runtime.autoscaler import Autoscaler, RevisionRoute, Scaling
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch, container_command
from bezel_localcloud.services.cloud_run.runtime.containers.sidecars import make_sidecar
from bezel_localcloud.services.cloud_run.runtime.ingress import Ingress
from bezel_localcloud.services.cloud_run.runtime.instance import Instance, Readiness
from bezel_localcloud.services.cloud_run.runtime.instance_register import InstanceRegister
from bezel_localcloud.services.cloud_run.runtime.metadata import MetadataServers
from bezel_localcloud.services.cloud_run.runtime.region_outages import RegionOutages
from bezel_localcloud.services.cloud_run.spec import ContainerSpec, RevisionSpec, revision_spec

log = logging.getLogger(__name__)
_KILLS = 3  # number of killed containers that one start replaces before it fails
_PROBE_SECONDS = 0.05  # real ones, at least, between two readiness probes
_PROVISION_SECONDS = 5.0  # of the platform's time, before a container starts


class Controller:
    """All running parts behind Cloud Run's API."""

    def __init__(self, cloud: Context, launcher: Callable[[ContainerLaunch], Command], timing: InstanceTiming) -> None:
        self._cloud = cloud
        self._outages = RegionOutages(cloud.faults)
        self._launcher = launcher
        self._timing = timing
        self._ingresses: dict[tuple[str, str], Ingress] = {}
        self._random = random.Random()  # noqa: S311 - shares of traffic
        self._pools: dict[str, RevisionRoute] = {}
        self._instances = InstanceRegister()
        self._metadata = MetadataServers(cloud)
        self._deployments: dict[str, asyncio.Task[None]] = {}
        self._background = BackgroundTasks()

    async def resume(self) -> None:
        """Restore the state in the store: ingresses, minimum instances, unfinished deployments."""
        for name, service in self._cloud.store.rows("service"):
            uri = self.open_ingress(name)
            urls = {"uri": uri, "urls": [uri]} | self.routing(service)
            if any(service.get(key) != value for key, value in urls.items()):
                self._cloud.store.put("service", name, service | urls)
            if (pending := self._cloud.store.get("deployment", name)) is not None:
                self._start_deployment(name, pending["operation"], pending["revision"])
            for revision in self._reachable(service):
                self._pool(revision, service).pool.fit()

    async def close(self) -> None:
        """End all instances and ingresses; the store keeps the desired state."""
        for task in self._deployments.values():
            task.cancel()
        await asyncio.gather(*self._deployments.values(), return_exceptions=True)
        await asyncio.gather(*(ingress.close() for ingress in self._ingresses.values()))
        await asyncio.gather(*(routed.pool.close() for routed in self._pools.values()))
        await self._background.end()
        await self._metadata.close()

    def open_ingress(self, name: str, tag: str = "") -> str:
        """Return the address of a service or of a tag; a name keeps its address while its port is free."""
        if (name, tag) not in self._ingresses:
            key = f"front {name} {tag}".rstrip()
            listener = listen_on_loopback(int(self._cloud.store.setting(key) or 0))
            ingress = Ingress(self._cloud, self._outages, self.route, name, tag, listener)
            self._ingresses[name, tag] = ingress
            self._cloud.store.set_setting(key, str(ingress.port))
            self._spawn(ingress.start())
        return self._ingresses[name, tag].uri

    def routing(self, service: Json) -> Json:
        """The part of a service's status that shows its traffic; its tags have addresses from now on."""
        if not service.get("latestReadyRevision"):
            return {}
        tags = {target["tag"] for target in service["traffic"] if target.get("tag")}
        for name, tag in [key for key in self._ingresses if key[0] == service["name"] and key[1]]:
            if tag not in tags:
                self._spawn(self._ingresses.pop((name, tag)).close())
        statuses = [
            dict(target) | ({"uri": self.open_ingress(service["name"], target["tag"])} if target.get("tag") else {})
            for target in service["traffic"]
        ]
        return {"trafficStatuses": statuses}

    def deploy(self, name: str, operation: str, revision: str) -> None:
        """Start a revision that the store holds, and end the operation with it."""
        self._cloud.store.put("deployment", name, {"operation": operation, "revision": revision})
        self._start_deployment(name, operation, revision)

    def abort_deployment(self, name: str) -> None:
        """Abort the operation of a running deployment that a newer one replaces."""
        if task := self._deployments.pop(name, None):
            task.cancel()
            self._background.keep(task)
        if pending := self._cloud.store.get("deployment", name):
            error = ApiError("ABORTED", f"The operation was superseded by a newer change of {status.short(name)}.")
            self._cloud.operations.finish(pending["operation"], error=error)
            self._cloud.store.delete("deployment", name)

    def apply_scaling(self, service: Json) -> None:
        """Apply a change of a service's traffic or scaling bounds."""
        for revision in self._reachable(service):
            pool = self._pool(revision, service).pool
            pool.scaling = self._scaling(revision, service)
            pool.fit()
        self._retire_unreachable(service)

    def remove(self, name: str) -> None:
        """End the ingresses and all instances of a deleted service."""
        self.abort_deployment(name)
        for key in [key for key in self._ingresses if key[0] == name]:
            self._spawn(self._ingresses.pop(key).close())
        for revision in [key for key in self._pools if key.startswith(f"{name}/")]:
            self._spawn(self._pools.pop(revision).pool.close())

    def application(self, name: str, tag: str = "") -> ASGIApp | None:
        """What serves the address of a service, or of a tag, for a balancer of this process; None without one."""
        ingress = self._ingresses.get((name, tag))
        return ingress.application if ingress else None

    def is_drained(self, region: str) -> bool:
        """Whether a balancer sends a region no further requests."""
        return self._outages.is_drained(region)

    def readiness(self, name: str) -> float | None:
        """Share of a service's instances that are ready; None where the service sends no signal of health."""
        shares = [route.pool.ready_share for key, route in self._pools.items() if key.startswith(f"{name}/")]
        signals = [share for share in shares if share is not None]
        return min(signals, default=None)

    def instance_counts(self, name: str) -> Counter[str]:
        """Number of instances of each revision of a service at this moment, retired ones included."""
        return self._instances.instance_counts(name)

    def use(self, name: str) -> dict[str, RevisionUse]:
        """Instances of each revision of a service by state, and how long its instances ran in all."""
        return self._instances.use(name)

    def subnetwork_of(self, instance: str) -> str:
        """Full name of the subnetwork that an instance sends from, "" for none or for an unknown instance."""
        if (running := self._instances.find(instance)) is None:
            return ""
        revision, sender = running
        return egress.subnetwork_of(self._cloud.store.get("revision", revision) or {}, sender.source.location)

    def route(self, name: str, tag: str = "") -> RevisionRoute | None:
        """The route of the next request to a service, or to a tag's own address; None while no revision is ready."""
        service = self._cloud.store.get("service", name)
        if service is None:
            return None
        if tag:
            chosen = next((target.revision for target in traffic.targets(service) if target.tag == tag), None)
        else:
            chosen = traffic.pick(traffic.shares(service), self._random.random())
        revision = self._cloud.store.get("revision", chosen) if chosen else None
        return self._pool(revision, service) if revision else None

    def _reachable(self, service: Json) -> list[Json]:
        """The revisions that can get requests, by a share of the traffic or by a tag."""
        names = dict.fromkeys(target.revision for target in traffic.targets(service) if target.percent or target.tag)
        return [revision for name in names if (revision := self._cloud.store.get("revision", name))]

    def _pool(self, revision: Json, service: Json) -> RevisionRoute:
        if revision["name"] not in self._pools:
            self._pools[revision["name"]] = self._new_pool(revision, service)
        return self._pools[revision["name"]]

    def _new_pool(self, revision: Json, service: Json) -> RevisionRoute:
        spec, name = revision_spec(revision, service.get("scaling") or {}), revision["name"]
        source = LogSource(service["name"].split("/")[3], status.short(service["name"]), status.short(name))
        start = partial(self._start, spec, source, name)
        return RevisionRoute(Autoscaler(start, self._scaling(revision, service)), spec, source)

    def _scaling(self, revision: Json, service: Json) -> Scaling:
        spec = revision_spec(revision, service.get("scaling") or {})
        idle_seconds, queue_seconds = self._timing.idle_seconds, self._timing.queue_seconds
        bounds = traffic.bounds(service, revision)
        readiness = self._readiness_of(spec, revision["name"].split("/")[3])
        return Scaling(spec.concurrency, *bounds, idle_seconds, queue_seconds, spec.liveness, readiness)

    def _readiness_of(self, spec: RevisionSpec, region: str) -> Readiness | None:
        if (probe := spec.readiness) is None:
            return None
        pause = max(_PROBE_SECONDS, self._cloud.pace.seconds(probe.period))
        return Readiness(probe, pause, lambda: not self._outages.is_down(region))

    async def _start(self, spec: RevisionSpec, source: LogSource, revision: str, reason: str) -> Instance:
        if spec.instance_accelerators and (fault := self._outages.exhaustion(source.location)):
            failure = failures.NoCapacityError(spec.accelerator, source.location, int(fault.text("status")))
            self._cloud.logbook.platform(source, "ERROR", failure.text)
            raise failure
        for _ in range(_KILLS):
            with contextlib.suppress(KilledError):
                return await self._start_once(spec, source, revision, reason)
        return await self._start_once(spec, source, revision, reason)

    async def _start_once(self, spec: RevisionSpec, source: LogSource, revision: str, reason: str) -> Instance:
        instance = Instance(source, spec, self._cloud.sockets.new(spec.port), self._cloud.logbook)
        try:
            metadata = await self._metadata.environment(source.location, spec.service_account)
            platform = {
                "K_SERVICE": source.service,
                "K_REVISION": source.revision,
                "K_CONFIGURATION": source.service,
                **metadata,
            }
            command = self._command(spec, instance.address, platform)
            sidecars = {
                sidecar.name: make_sidecar(self._cloud, sidecar, instance, partial(self._command, platform=platform))
                for sidecar in spec.sidecars
            }
            # Set before the start: its first packet already comes from its subnetwork.
            self._instances.add(revision, instance)
            try:
                healthy = await instance.start_all(command, sidecars, reason, self._timing)
            except OSError as error:
                await instance.stop()
                self._instances.remove(instance)
                raise failures.ContainerFailureError(f"Application exec likely failed: {error}.") from None
        except RevisionFailureError as failure:
            self._cloud.logbook.platform(instance.source, "ERROR", failure.text)
            await instance.stop()
            self._instances.remove(instance)
            raise
        except BaseException:
            await instance.stop()
            self._instances.remove(instance)
            raise
        if not healthy:
            why = _why_unhealthy(spec, instance)
            killed = instance.was_killed
            await instance.stop()
            raise KilledError(why) if killed else failures.ContainerFailureError(why)
        return instance

    def _command(self, spec: ContainerSpec, address: str, platform: Mapping[str, str]) -> Command:
        speed = self._timing.startup_speed
        return container_command(self._cloud, self._launcher, spec, address, speed, platform)

    def _start_deployment(self, name: str, operation: str, revision: str) -> None:
        task = asyncio.create_task(self._deploy(name, operation, revision))
        self._deployments[name] = task

        def forget(done: asyncio.Task[None]) -> None:
            if self._deployments.get(name) is done:
                del self._deployments[name]

        task.add_done_callback(forget)

    async def _deploy(self, name: str, operation: str, revision_name: str) -> None:
        store = self._cloud.store
        await asyncio.sleep(self._cloud.pace.seconds(_PROVISION_SECONDS))
        service, revision = store.get("service", name), store.get("revision", revision_name)
        if service is None or revision is None:
            return
        # Its bounds are those of the traffic to the latest ready revision.
        routed = self._new_pool(revision, service | {"latestReadyRevision": revision_name})
        try:
            check_quota(self._cloud, routed.source.location, routed.spec)
            for image in dict.fromkeys(each.image for each in (routed.spec, *routed.spec.sidecars)):
                check_image(self._cloud, image)
            if not service["template"].get("healthCheckDisabled"):
                await routed.pool.first()
        except RevisionFailureError as failure:
            await write_when_room(partial(self._finish_failed, name, operation, revision_name, failure))
        except asyncio.CancelledError:
            await routed.pool.close()
            raise
        except Exception:
            log.exception("deployment of %s failed", revision_name)
            await write_when_room(
                partial(self._finish_failed, name, operation, revision_name, failures.internal_failure())
            )
        else:
            self._pools[revision_name] = routed
            await write_when_room(partial(self._finish_ready, name, operation, revision_name))

    def _finish_ready(self, name: str, operation: str, revision_name: str) -> None:
        store, now = self._cloud.store, self._cloud.pace.now()
        with store.transaction():
            service, revision = store.get("service", name) or {}, store.get("revision", revision_name) or {}
            store.put("revision", revision_name, status.ready_revision(revision, now))
            service |= {"latestReadyRevision": revision_name} | status.ready_status(service, now)
            service |= self.routing(service)
            store.put("service", name, service)
            store.delete("deployment", name)
            self._cloud.operations.finish(operation, response=status.typed_message("Service", service))
        self.apply_scaling(service)

    def _finish_failed(self, name: str, operation: str, revision_name: str, failure: RevisionFailureError) -> None:
        store, now = self._cloud.store, self._cloud.pace.now()
        with store.transaction():
            service, revision = store.get("service", name) or {}, store.get("revision", revision_name) or {}
            store.put("revision", revision_name, status.failed_revision(revision, failure, now))
            store.put("service", name, service | status.failed_status(service, revision_name, failure, now))
            store.delete("deployment", name)
            message = status.failure_message(revision_name, failure)
            self._cloud.operations.finish(operation, error=ApiError(failure.code, message))

    def _retire_unreachable(self, service: Json) -> None:
        reachable = {revision["name"] for revision in self._reachable(service)}
        for name in [key for key in self._pools if key.startswith(f"{service['name']}/") and key not in reachable]:
            retired = self._pools.pop(name)
            self._spawn(retired.pool.close(patience=retired.spec.timeout))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._background.keep(asyncio.create_task(_log_failure(work)))


async def _log_failure(work: Coroutine[None, None, None]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        try:
            await work
        except Exception:
            log.exception("background work failed")


def _why_unhealthy(spec: RevisionSpec, instance: Instance) -> str:
    if name := instance.failed_sidecar:
        return f"The container '{name}' exited before all containers of the instance had started."
    if spec.startup is not None and spec.startup.path is not None and instance.code is None:
        return "The user-provided container failed the configured startup probe checks."
    return (
        "The user-provided container failed to start and listen on the port defined provided by the "
        f"PORT={spec.port} environment variable within the allocated timeout. This can happen when the container port "
        "is misconfigured or if the timeout is too short. The health check timeout can be extended."
    )
