"""A machine bought by the TPU API: it boots in the daemon, dies with it, boots again with it, and goes when deleted."""

import json
import os
import signal

import pytest

from bezel_base.process_status import DIRECTORY_VARIABLE, processes_with_variable
from localcloud_support.client import PARENT, REGION, RUNTIME, Client, until
from localcloud_support.node_harness import SHORT_SCRIPT

pytestmark = pytest.mark.slow
ZONE = "us-east5-a"
TPU = f"/tpu/v2alpha1/{PARENT}/locations/{ZONE}"
COMPUTE = f"/compute/v1/{PARENT}"
TELL = """
curl --silent --request PUT --header 'Metadata-Flavor: Google' --data up \\
  "http://$GCE_METADATA_HOST/computeMetadata/v1/instance/guest-attributes/bezel/healthy"
"""


def request(client) -> dict:
    image = f"{REGION}-docker.pkg.dev/{PARENT.partition('/')[2]}/hub/vllm/vllm-openai@{client.digest()}"
    script = SHORT_SCRIPT.format(registry=f"{REGION}-docker.pkg.dev", image=image).replace("--gpus all", "--privileged")
    node = {
        "acceleratorType": "v6e-1",
        "runtimeVersion": "v2-alpha-tpuv6e",
        "networkConfig": {"enableExternalIps": False, "subnetwork": "nodes"},
        "serviceAccount": {"email": RUNTIME, "scope": ["https://www.googleapis.com/auth/cloud-platform"]},
        "metadata": {"startup-script": script + TELL, "enable-guest-attributes": "TRUE"},
    }
    parent = f"{PARENT}/locations/{ZONE}"
    return {
        "tpu": {"nodeSpec": [{"parent": parent, "nodeId": "lease", "node": node}]},
        "provisioningModel": "FLEX_START",
        "runDuration": {"maxRunDuration": "14400s"},
    }


def guest_attributes(client) -> str:
    """What the machine wrote, as the TPU API shows it."""
    answer = client.post(f"{TPU}/nodes/lease:getGuestAttributes", {"queryPath": "bezel/"})
    return json.dumps(answer.json()) if answer.is_success else ""


def test_a_leased_machine_lives_and_dies_with_its_lease_and_its_daemon(own_daemon):
    endpoint = own_daemon()
    client = Client(endpoint)
    client.prepare()
    client.enable("tpu")
    repository = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories/hub"
    client.grant(repository, "roles/artifactregistry.reader", f"serviceAccount:{RUNTIME}")
    assert client.post(f"{COMPUTE}/global/networks", {"name": "net", "autoCreateSubnetworks": False}).is_success
    subnetwork = {
        "name": "nodes",
        "network": f"{PARENT}/global/networks/net",
        "ipCidrRange": f"10.77.{os.getpid() % 250}.0/28",
        "privateIpGoogleAccess": True,
    }
    until(lambda: client.post(f"{COMPUTE}/regions/us-east5/subnetworks", subnetwork).is_success)
    until(lambda: client.get(f"{COMPUTE}/regions/us-east5/subnetworks/nodes").is_success)
    asked = client.post(f"{TPU}/queuedResources", request(client), queuedResourceId="lease")
    assert asked.status_code == 200, asked.text
    until(lambda: "up" in guest_attributes(client), 60)
    os.kill(endpoint.pid, signal.SIGKILL)
    until(lambda: not processes_with_variable(DIRECTORY_VARIABLE, str(endpoint.directory)))
    client = Client(own_daemon())
    until(lambda: "up" in guest_attributes(client), 60)
    assert processes_with_variable(DIRECTORY_VARIABLE, str(endpoint.directory))
    assert client.http.delete(f"{TPU}/queuedResources/lease", params={"force": "true"}).is_success
    until(lambda: not processes_with_variable(DIRECTORY_VARIABLE, str(endpoint.directory)))
    until(lambda: not list((endpoint.directory / "nodes").iterdir()))
