"""A cloud with machines in this process: its event loop in a thread, its containers the tiny fake, its clock fast."""

import asyncio
import json
import os
import threading
from pathlib import Path

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.cloud import Cloud, largest_body
from bezel_localcloud.core.clock import InstanceTiming, PlatformClock
from bezel_localcloud.core.paths import PROJECT, Endpoint, Paths
from bezel_localcloud.http.serving import HttpServer
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.node.machine import Nodes
from localcloud_support.client import PARENT, REGION, RUNTIME, Client, until
from localcloud_support.fake_daemon import launch_fake
from localcloud_support.in_process import Nodes as NotedNodes
from localcloud_support.made_keys import write_keys

ZONE = f"{REGION}-a"
NAME = f"projects/{PROJECT}/zones/{ZONE}/instances/lease"
NETWORK = f"projects/{PROJECT}/global/networks/bezel"
NODES = f"projects/{PROJECT}/regions/{REGION}/subnetworks/nodes"
GATEWAY = f"projects/{PROJECT}/regions/{REGION}/subnetworks/gateway"
ROUTER = f"projects/{PROJECT}/regions/{REGION}/routers/nat"
SHORT_SCRIPT = """#!/bin/bash
set -eu
url="http://$GCE_METADATA_HOST/computeMetadata/v1/instance/service-accounts/default/token"
curl --silent --header 'Metadata-Flavor: Google' "$url" | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/' |
  docker login --username oauth2accesstoken --password-stdin https://{registry}
docker pull --quiet {image}
docker run --detach --name vllm --restart on-failure:3 --net host --gpus all --entrypoint vllm {image} serve model
until curl --silent --fail --output /dev/null http://127.0.0.1:8000/health; do sleep 10; done
echo container is up
"""
MODEL = "/dev/shm/models/gemma"  # noqa: S108 - a folder of the machine
PHASES = ("network", "image", "weights", "compile", "healthy")
SECRET = "planted-value-of-a-secret"


class RunningCloud:
    """A cloud that serves, and its machines; `instances` says which Cloud Run instance sends from which subnetwork.

    `script` is what machines run at their start, where a test gives no other.
    """

    def __init__(self, directory: Path, launcher=launch_fake, script: str = "") -> None:
        self.script = script
        self.instances: dict[str, str] = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.call(self._start(directory, launcher))
        self.client = Client(self.endpoint)

    async def _start(self, directory, launcher):
        layout, timing = Paths(directory), InstanceTiming(600, machine_seconds=5.0)
        write_keys(directory)
        self.cloud = Cloud(layout, PlatformClock(10_000), launcher, timing, lambda _: NotedNodes())
        self.nodes = Nodes(self.cloud, launcher, timing, lambda instance: self.instances.get(instance, ""))
        listener = listen_on_loopback()
        self.cloud.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.cloud.prepare()
        self.server = HttpServer(self.cloud.application(), listener, largest_body)
        await self.server.start()
        self.endpoint = Endpoint(layout.root, os.getpid(), self.cloud.base, "sim", 10_000)

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def do(self, function, *arguments):
        """Call a function in the cloud's own thread."""

        async def work():
            return function(*arguments)

        return self.call(work())

    def put(self, kind: str, name: str, **body: object) -> None:
        self.do(self.cloud.store.put, kind, name, {"name": name, **body})

    def close(self) -> None:
        async def work():
            await self.nodes.close()
            await self.server.close()
            await self.cloud.services.close()
            self.cloud.store.close()

        self.call(work())
        self.loop.call_soon_threadsafe(self.loop.stop)

    def furnish(self) -> None:
        """What a node needs: network and rules, image, weights, a secret, and an account that may read them."""
        self.client.prepare()
        self.client.grant_bucket("models", "roles/storage.objectUser", f"serviceAccount:{RUNTIME}")
        repository = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories/hub"
        self.client.grant(repository, "roles/artifactregistry.reader", f"serviceAccount:{RUNTIME}")
        secrets = f"/secretmanager/v1/{PARENT}/secrets"
        self.client.post(secrets, {"replication": {"automatic": {}}}, secretId="token")
        self.client.post(f"{secrets}/token:addVersion", {"payload": {"data": "cGxhbnRlZC12YWx1ZS1vZi1hLXNlY3JldA=="}})
        self.client.grant(f"{secrets}/token", "roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
        for name, content in (("config.json", b"{}"), ("sub/model.safetensors", b"w" * 5000)):
            self.object(f"gemma/{name}", content)
        self.network()

    def object(self, name: str, content: bytes) -> None:
        path = f"/upload/storage/v1/b/models/o?uploadType=media&name={name}"
        assert self.client.http.post(path, content=content).status_code == 200

    def objects(self, prefix: str) -> list[str]:
        items = self.client.get("/storage/v1/b/models/o", prefix=prefix).json().get("items", [])
        return [item["name"] for item in items]

    def network(self, *, private: bool = True) -> None:
        for name, ip_range in ((NODES, "10.64.0.0/20"), (GATEWAY, "10.64.16.0/26")):
            self.put("subnetwork", name, network=NETWORK, ipCidrRange=ip_range, privateIpGoogleAccess=private)
        self.rule("10.64.16.0/26")

    def rule(self, source: str) -> None:
        self.put(
            "firewall",
            f"projects/{PROJECT}/global/firewalls/gateway",
            network=NETWORK,
            direction="INGRESS",
            disabled=False,
            priority=1000,
            sourceRanges=[source],
            targetTags=["bezel-node"],
            allowed=[{"IPProtocol": "tcp", "ports": ["8000"]}],
        )

    def nat(self) -> None:
        nat = {"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
        self.put("router", ROUTER, network=NETWORK, nats=[nat])

    def image(self) -> str:
        return f"{REGION}-docker.pkg.dev/{PROJECT}/hub/vllm/vllm-openai@{self.client.digest()}"

    def spec(self, address: str, *arguments: str, external: str = "", **attributes: str) -> NodeSpec:
        metadata = {
            "startup-script": self.script,
            "enable-guest-attributes": "TRUE",
            "bezel-image": self.image(),
            "bezel-arguments": json.dumps([MODEL, *arguments]),
            "bezel-environment": json.dumps({"PLAIN": "value"}),
            "bezel-secrets-by-name": json.dumps({"HF_TOKEN": "token"}),
            "bezel-weights": "gs://models/gemma",
            "bezel-model-folder": MODEL,
            "bezel-compile-cache": "gs://models/compile-cache/key",
            "bezel-port": "8000",
            "bezel-device": "gpu",
            "bezel-packages": "",
        }
        return NodeSpec(
            name=NAME,
            hardware="g2-standard-96",
            metadata=metadata | attributes,
            service_account=RUNTIME,
            network=NETWORK,
            subnetwork=NODES,
            address=address,
            external_address=external,
            tags=("bezel-node",),
        )

    def boot(self, spec: NodeSpec) -> None:
        self.do(self.nodes.boot, spec)

    def serve(self, address: str, **changes: str) -> None:
        """Boot a machine that only starts the container, and wait until it has."""
        registry, image = f"{REGION}-docker.pkg.dev", self.image()
        script = SHORT_SCRIPT.format(registry=registry, image=image)
        self.boot(self.spec(address, **{"startup-script": script, **changes}))
        until(lambda: "container is up" in self.console(), 60)

    def clear(self) -> None:
        """No machine, and the network as it was made."""
        self.do(self.nodes.end, NAME)
        self.network()
        self.do(self.cloud.store.delete, "router", ROUTER)

    def phases(self) -> dict[str, dict]:
        return {key: value for key, value in self._attributes().items() if key in PHASES}

    def container(self) -> dict:
        """What the machine reported of its container, {} before the end of its boot."""
        return self._attributes().get("container", {})

    def _attributes(self) -> dict[str, dict]:
        attributes = self.do(self.nodes.guest_attributes, NAME)
        return {key.removeprefix("bezel/"): json.loads(value) for key, value in attributes.items()}

    def states(self) -> dict[str, str]:
        return {phase: phase_state["state"] for phase, phase_state in self.phases().items()}

    def console(self) -> str:
        return self.do(self.nodes.serial_output, NAME)

    def settle(self, phase: str, seconds: float = 60) -> str:
        """The state that a phase comes to: done or failed; at once where an earlier one fails."""

        def final_state():
            states = self.states()
            state = "failed" if "failed" in states.values() else states.get(phase)
            return state if state in {"done", "failed"} else None

        return until(final_state, seconds)


def own_address(number: int) -> str:
    """An address of this computer that no test beside this one uses."""
    return f"127.66.{os.getpid() % 250}.{number}"
