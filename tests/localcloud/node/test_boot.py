"""A machine of localcloud runs the very startup script of its metadata, to a container that answers or to a reason."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bezel_base.loopback.plain_http import NO_TLS
from bezel_base.process_status import DIRECTORY_VARIABLE, processes_with_variable
from bezel_localcloud.services.cloud_run.runtime.instance import INSTANCE_VARIABLE
from localcloud_support.client import PARENT, RUNTIME, until
from localcloud_support.node_harness import GATEWAY, NAME, PHASES, SECRET, ZONE, RunningCloud, own_address

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[3] / "components" / "bezel_components" / "node" / "startup.sh"
ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=10).read().decode())"


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    running = RunningCloud(tmp_path_factory.mktemp("machines") / "cloud", script=SCRIPT.read_text())
    running.furnish()
    running.instances |= {"gateway": GATEWAY, "elsewhere": ""}
    yield running
    running.close()


@pytest.fixture
def world(running):
    yield running
    running.clear()


def answer_from(url: str, instance: str = "") -> str:
    """What a process of a Cloud Run instance, or of nobody, gets from an address; "" where it gets nothing."""
    environment = {INSTANCE_VARIABLE: instance} if instance else {}
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ASK, url],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return run.stdout


def ends(world) -> list[dict]:
    """The entries that tell of the end of a lease."""
    body = {"resourceNames": [PARENT], "filter": 'logName:"bezel-lease"'}
    return world.client.post("/logging/v2/entries:list", body).json().get("entries", [])


def test_a_machine_boots_serves_behind_its_firewall_and_leaves_nothing(world):
    address, notices = own_address(5), len(ends(world))
    world.boot(world.spec(address))
    assert world.settle("healthy") == "done", world.console()
    until(world.container)
    assert len(ends(world)) == notices, "no attribute asks for a notice of its end"
    assert world.states() == dict.fromkeys(PHASES, "done")
    seen = answer_from(f"http://{address}:8000/x", "gateway")
    assert f'"HF_TOKEN": "{SECRET}"' in seen
    assert '"PLAIN": "value"' in seen
    for stranger in ("", "elsewhere"):
        assert answer_from(f"http://{address}:8000/x", stranger) == ""
    world.rule("10.0.0.0/16")
    assert answer_from(f"http://{address}:8000/x", "gateway") == ""
    assert "healthy done" in world.console()
    assert SECRET not in world.console() + repr(world.phases())
    wanted = 'resource.type="gce_instance" AND textPayload:"healthy done"'
    entries = world.client.post("/logging/v2/entries:list", {"resourceNames": [PARENT], "filter": wanted})
    assert entries.json()["entries"]
    root = world.cloud.layout.root
    processes = processes_with_variable(DIRECTORY_VARIABLE, str(root))
    assert processes
    world.do(world.nodes.end, NAME)
    until(lambda: not (root / "nodes").exists() or not list((root / "nodes").iterdir()))
    assert until(lambda: not processes_with_variable(DIRECTORY_VARIABLE, str(root)))
    assert world.phases() == {}
    kept = [path for path in root.rglob("*") if path.is_file() and path.suffix not in {".db", ".db-wal", ".db-shm"}]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def test_a_container_is_stopped_and_started_as_the_attribute_asks(world):
    address = own_address(13)
    spec = world.spec(address)
    world.boot(spec)
    assert world.settle("healthy") == "done", world.console()

    def asks(number, verb):
        request = {"id": f"{number:032x}", "verb": verb}
        metadata = dict(spec.metadata) | {"bezel-container": json.dumps(request)}
        world.do(world.nodes.set_metadata, NAME, metadata)

        def ended_container():
            container = world.container()
            return container if container.get("id") == request["id"] and container["result"] != "running" else None

        return until(ended_container, 60)

    assert answer_from(f"http://{address}:8000/health", "gateway")
    stopped = asks(1, "stop")
    assert (stopped["result"], stopped["state"], stopped["healthy"]) == ("done", "exited", False)
    assert answer_from(f"http://{address}:8000/health", "gateway") == ""
    for number, verb in ((2, "start"), (3, "restart")):
        outcome = asks(number, verb)
        assert (outcome["result"], outcome["state"], outcome["healthy"]) == ("done", "running", True)
        assert answer_from(f"http://{address}:8000/health", "gateway")
    assert SECRET not in world.console() + repr(world.container())


def test_a_machine_writes_the_notice_of_its_end_once_its_account_may(world):
    notice = json.dumps({"lease": "bezel-moe", "stack": "moe", "run_seconds": 4})
    world.boot(world.spec(own_address(14), **{"bezel-end-notice": notice}))
    until(lambda: "cannot be written to Cloud Logging, attempt 1 of 10" in world.console(), 60)
    until(lambda: "logging.logEntries.create" in world.console())
    assert ends(world) == []
    world.client.grant_project("roles/logging.logWriter", f"serviceAccount:{RUNTIME}")
    (entry,) = until(lambda: ends(world), 60)
    assert (entry["severity"], entry["jsonPayload"]["lease"]) == ("WARNING", "bezel-moe")
    assert entry["resource"]["labels"]["location"] == ZONE
    until(lambda: "the notice of the end of the lease is written" in world.console())


def test_a_machine_without_a_way_to_google_says_how_to_give_it_one(world):
    world.network(private=False)
    world.boot(world.spec(own_address(6)))
    assert world.settle("network") == "failed"
    assert "private Google access" in world.phases()["network"]["detail"]


REFUSALS = {
    "image": ("image", {"bezel-image": "docker.io/vllm/vllm-openai@sha256:" + "0" * 64}, "network.nat"),
    "weights": ("weights", {"bezel-weights": "gs://models/nothing"}, "does not name a directory"),
    "secret": ("compile", {"bezel-secrets-by-name": '{"A": "other"}'}, "secret other cannot be read"),
}


@pytest.mark.wide_except("secret")
@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_account_or_the_network_does_not_reach_fails_its_phase(world, name):
    phase, attributes, text = REFUSALS[name]
    world.boot(world.spec(own_address(7), **attributes))
    assert world.settle(phase) == "failed"
    assert world.states()[phase] == "failed"
    assert text in world.phases()[phase]["detail"]


def test_an_account_without_the_reader_role_pulls_no_image(world):
    world.client.account("nobody")
    world.boot(replace(world.spec(own_address(8)), service_account=RUNTIME.replace("runtime", "nobody")))
    assert world.settle("image") == "failed"
    assert "roles/artifactregistry.reader" in world.phases()["image"]["detail"]


def test_a_container_that_never_serves_ends_the_boot_with_its_exit_code(world):
    world.boot(world.spec(own_address(9), "--exit=3"))
    assert world.settle("healthy") == "failed"
    assert "exit code 3" in world.phases()["healthy"]["detail"]


def test_a_container_that_dies_later_is_started_again(world):
    address = own_address(10)
    world.serve(address)
    assert answer_from(f"http://{address}:8000/die", "gateway") == ""
    until(lambda: answer_from(f"http://{address}:8000/health", "gateway"))


def test_an_external_address_is_open_to_the_internet_where_a_rule_says_so(world):
    address, external = own_address(11), own_address(111)
    world.serve(address, external=external)
    assert answer_from(f"http://{external}:8000/x") == ""
    world.rule("0.0.0.0/0")
    assert "arguments" in answer_from(f"http://{external}:8000/x")
    assert answer_from(f"http://{address}:8000/x") == ""


def test_the_hub_is_out_of_reach_without_a_nat(world):
    address = own_address(12)
    world.serve(address)
    hub = json.loads(answer_from(f"http://{address}:8000/x", "gateway"))["environment"]["HF_ENDPOINT"]
    model = f"{hub}/api/models/google/gemma-4-12B-it/revision/main"
    with pytest.raises(httpx.HTTPError):
        httpx.get(model, trust_env=False, verify=NO_TLS, timeout=10)
    world.nat()
    assert httpx.get(model, trust_env=False, verify=NO_TLS, timeout=10).status_code == 200
