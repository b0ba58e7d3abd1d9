"""The boot of a node: the very script, against a metadata server, Secret Manager and commands at the wire."""

import json
import socket

import pytest

from tests.support.components.fake_node import IMAGE, MODEL, PHASES, SECRET, TOKEN, Node

pytestmark = pytest.mark.slow


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    yield node
    node.close()


def nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}/storage/v1/"


def traces(node, output):
    """Every place where a value was seen that belongs in none: command lines, messages, files."""
    places = {
        "output": output,
        "command lines": (node.fake / "calls").read_text(),
        "guest attributes": repr(node.reports),
        **{name: content.decode(errors="replace") for name, content in node.files().items()},
    }
    return [(name, value) for name, text in places.items() for value in (SECRET, TOKEN) if value in text]


def test_a_boot_goes_through_its_phases_and_starts_the_container_by_digest(node):
    node.use_real_curl()
    node.put_object("models/compile-cache/key/graph", b"compiled")
    run = node.boot()
    assert run.returncode == 0, run.stdout
    assert list(node.states().items()) == [(phase, "done") for phase in PHASES]
    assert [phase for phase, state, _ in node.reports if state == "done"] == [*PHASES, "compile"]
    (started,) = node.calls("docker", "run")
    at = started.index("--entrypoint")
    served = [MODEL, "--max-model-len", "16384", "--limit", '{"image": 4}']
    assert started[at:] == ["--entrypoint", "vllm", IMAGE, "serve", *served]
    for pair in (("--restart", "on-failure:10"), ("--net", "host"), ("--shm-size", "10gb")):
        assert list(pair) == started[started.index(pair[0]) :][:2]
    assert "--privileged" in started
    assert "--gpus" not in started
    environment = (node.fake / "environment").read_text().splitlines()
    assert sorted(environment) == [
        f"HF_TOKEN={SECRET}",
        "VLLM_TPU_BUCKET_PADDING_GAP=256",
        "VLLM_XLA_CACHE_PATH=/var/cache/bezel/compile",
    ]
    assert (node.fake / "environment.mode").read_text() == "600\n"
    assert (node.fake / "login").read_text() == TOKEN
    assert (node.root / "var/cache/bezel/compile/graph").read_bytes() == b"compiled"
    assert "8 bytes" in node.detail("compile")
    assert traces(node, run.stdout) == []


def test_a_first_boot_finds_no_compile_cache_and_keeps_one(node):
    assert node.boot().returncode == 0
    details = [detail for phase, _, detail in node.reports if phase == "compile"]
    assert any("no compile cache yet" in detail for detail in details)
    assert "kept in gs://models/compile-cache/key" in details[-1]


def test_a_node_with_gpus_gets_them_without_privileges(node):
    """A node with GPUs gets them without privileges and leaves weights of the hub to the server."""
    node.attributes |= {"bezel-weights": "", "bezel-model-folder": "", "bezel-compile-cache": "", "bezel-device": "gpu"}
    assert node.boot().returncode == 0
    assert node.calls("gsutil") == []
    (started,) = node.calls("docker", "run")
    assert started[started.index("--gpus") :][:4] == ["--gpus", "all", "--ipc", "host"]
    assert "--privileged" not in started
    assert "HF_HOME=/dev/shm/models/hub\n" in (node.fake / "environment").read_text()


def test_a_reboot_serves_again_with_a_new_container(node):
    """A reboot serves again with a new container and the image that is there."""
    assert node.boot().returncode == 0
    for path in (node.fake / "running", node.fake / "environment", node.fake / "login"):
        path.unlink()
    run = node.boot()
    assert run.returncode == 0, run.stdout
    assert set(node.states().values()) == {"done"}
    assert node.calls("docker", "pull") == node.calls("docker", "login") == []
    order = [call[1] for call in node.calls("docker")]
    assert order.index("rm") < order.index("run")
    assert traces(node, run.stdout) == []


def test_what_fails_for_a_while_is_tried_again_with_longer_waits(node):
    """What fails for a while is tried again with longer and longer waits."""
    node.use_real_curl()
    node.fails("docker-pull", 3, "unexpected EOF")
    node.fails("gsutil-rsync", 2, "ConnectionResetError")
    node.broken["/computeMetadata/v1/instance/service-accounts/default/token"] = (503, 1)
    node.broken["/secretmanager/v1/projects/p/secrets/hf-token/versions/latest:access"] = (403, 2)
    run = node.boot()
    assert run.returncode == 0, run.stdout
    assert set(node.states().values()) == {"done"}
    assert node.slept()[:10] == [2, 2, 4, 8, 2, 4, 2, 2, 4, 10]
    assert "refused for a test" in run.stdout
    assert traces(node, run.stdout) == []


# step that fails -> (phase, what the user reads, attempts)
FAILURES = {
    "docker-info": ("image", "docker does not answer", 8),
    "docker-pull": ("image", "roles/artifactregistry.reader", 5),
    "gsutil-rsync": ("weights", "roles/storage.objectViewer", 4),
    "docker-run": ("compile", "cannot be started", 1),
    "docker-inspect": ("healthy", "is gone", 3),
}


@pytest.mark.wide_except("docker-pull", "docker-inspect")
@pytest.mark.parametrize("step", FAILURES)
def test_what_fails_for_good_ends_the_boot_with_a_reason(node, step):
    """What fails for good ends the boot with a reason after a bounded number of attempts."""
    phase, text, attempts = FAILURES[step]
    node.fails(step, says="words of the command")
    run = node.boot()
    assert run.returncode == 1
    before = PHASES[: PHASES.index(phase)]
    assert node.states() == dict.fromkeys(before, "done") | {phase: "failed"}
    assert text in node.detail(phase)
    assert "words of the command" in node.detail(phase)
    program, _, verb = step.partition("-")
    verbs = [next(word for word in call[1:] if not word.startswith("-")) for call in node.calls(program)]
    assert verbs.count(verb) == attempts
    assert sum(node.slept()) <= 2 + 126
    assert traces(node, run.stdout) == []


def refuse(path, status=403, times=99):
    return lambda node: node.broken.update({path: (status, times)})


# how a node is -> (phase that fails, what the user reads)
FAULTY_NODES = {
    "no account": (
        refuse("/computeMetadata/v1/instance/service-accounts/default/token", 404),
        ("network", "give the node a service account"),
    ),
    "no way to Google": (
        lambda node: node.environment.update(GOOGLE_STORAGE_CUSTOM_ENDPOINT=nobody_listens()),
        ("network", "private Google access"),
    ),
    "half a model": (
        lambda node: (node.fake / "bucket/models/gemma/config.json").unlink(),
        ("weights", "copy the whole model into the bucket"),
    ),
    "no access to a secret": (
        refuse("/secretmanager/v1/projects/p/secrets/hf-token/versions/latest:access"),
        ("compile", "HTTP 403 refused for a test"),
    ),
    "two lines": (
        lambda node: node.attributes.update({"bezel-environment": json.dumps({"A": "1\n2"})}),
        ("compile", "A has more than one line"),
    ),
    "a container that ends": (
        lambda node: ((node.fake / "state").write_text("exited 1 2"), (node.fake / "logs").write_text(LOG)),
        ("healthy", "exit code 2 before it served, 1 restarts (ValueError: no memory"),
    ),
    "a container that restarts": (
        lambda node: ((node.fake / "state").write_text("restarting 3 1"), (node.fake / "logs").write_text(LOG)),
        ("healthy", "3 restarts (ValueError: no memory for ***)"),
    ),
}
LOG = f"token is {SECRET}\nValueError: no memory for {SECRET}\nRuntimeError: Engine core initialization failed.\nbye\n"


@pytest.mark.parametrize("name", FAULTY_NODES)
def test_a_node_that_cannot_serve_says_why_and_what_to_do(node, name):
    spoil, (phase, text) = FAULTY_NODES[name]
    spoil(node)
    run = node.boot()
    assert run.returncode == 1
    assert node.states()[phase] == "failed"
    assert text in node.detail(phase)
    assert "\n" not in node.detail(phase)
    assert [entry for entry in node.reports if PHASES.index(entry[0]) > PHASES.index(phase)] == []
    assert len(node.slept()) <= 8
    assert traces(node, run.stdout) == []


def test_everything_wrong_with_the_attributes_is_reported_at_once(node):
    wrong = {
        "image": "vllm:latest",
        "device": "abacus",
        "environment": "{",
        "arguments": "[1]",
        "secrets-by-name": "",
        "packages": "vim",
    }
    node.attributes |= {f"bezel-{name}": value for name, value in wrong.items()}
    assert node.boot().returncode == 1
    for name in wrong:
        assert f"bezel-{name} is" in node.detail("network")


def test_a_server_that_never_answers_is_given_up_after_its_deadline(node):
    node.fails("curl-health", 10**6)
    (node.fake / "logs").write_text("compiling\nstill compiling\n")
    run = node.boot()
    assert run.returncode == 1
    assert "after 5400 s (still compiling)" in node.detail("healthy")
    assert sum(node.slept()) == 5400 + 2  # the compile cache was asked for twice


@pytest.mark.parametrize("step", ["gsutil-restore", "gsutil-save"])
def test_a_compile_cache_that_fails_costs_time_and_nothing_else(node, step):
    node.put_object("models/compile-cache/key/graph", b"compiled")
    node.fails(step, says="AccessDeniedException: 403")
    assert node.boot().returncode == 0
    assert set(node.states().values()) == {"done"}
    details = [detail for phase, _, detail in node.reports if phase == "compile"]
    assert any("AccessDeniedException" in detail for detail in details)


def test_docker_is_installed_only_where_it_is_missing_and_asked_for(node):
    node.attributes["bezel-packages"] = "docker"
    assert node.boot().returncode == 0
    assert node.calls("apt-get") == []
    node.fails("docker", 1)
    assert node.boot().returncode == 0
    assert [call[-1] for call in node.calls("apt-get")] == ["update", "docker.io"]
    assert node.calls("wget") == node.calls("nvidia-ctk") == []


def test_docker_of_a_machine_with_gpus_comes_with_what_hands_them_over(node):
    node.attributes |= {"bezel-packages": "docker", "bezel-device": "gpu"}
    node.fails("docker", 1)
    run = node.boot()
    assert run.returncode == 0, run.stdout
    assert node.calls("apt-get")[-1][-2:] == ["docker.io", "nvidia-container-toolkit"]
    assert node.calls("nvidia-ctk")[0][-2:] == ["configure", "--runtime=docker"]
    assert node.calls("systemctl") == [["systemctl", "restart", "docker"]]
    source = (node.root / "etc/apt/sources.list.d/nvidia.list").read_text()
    assert source.startswith("deb [signed-by=/etc/apt/keyrings/nvidia.asc] https://nvidia.github.io/")
    assert (node.root / "etc/apt/keyrings/nvidia.asc").read_text() == "a key\n"


def test_docker_that_cannot_be_installed_asks_for_a_way_to_the_internet(node):
    node.attributes["bezel-packages"] = "docker"
    node.fails("docker", 1)
    node.fails("apt-get-update", says="Could not connect to archive.ubuntu.com")
    assert node.boot().returncode == 1
    assert "network.nat: true" in node.detail("network")
    assert len(node.calls("apt-get")) == 4
