"""A load sent by the tasks of a job, whole processes on the embedded cloud: merged, told when one dies, never left."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bezel.bench_jobs.job_registry import LABELS
from bezel.bench_jobs.job_runner import Fleet, send_by_tasks
from bezel_base.errors import UserError
from bezel_base.process_status import processes_with_variable
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_localcloud import control
from localcloud_support.client import PARENT, REGION, RUNTIME, SERVICES, Client, is_alive, until
from simulated_vllm_support.process import MODEL
from tests.support.bench_jobs.container_engine import install
from tests.support.e2e import warm_localcloud
from tests.support.record_results import check_results

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
MAIN = "import sys; from bezel.cli.main import main; sys.exit(main())"
HOLD = "/localcloud/hold"
JOBS = f"/run/v2/{PARENT}/locations/{REGION}/jobs"


class Site:
    """A cloud with a service to load, a bucket, an image, and an account that may use them."""

    def __init__(self, folder):
        self.endpoint = warm_localcloud.start(folder / "cloud", "--speed", "10000")
        self.client = Client(self.endpoint)
        self.client.prepare()
        self.environment = os.environ | control.environment(self.endpoint)
        self.environment |= {
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": str(ROOT),
        }
        self.notes = folder / "state" / "bezel" / "load-jobs"
        self.account = self.client.account("loader")
        for name in ("loads", "models"):
            self.client.post("/storage/v1/b", {"name": name}, project="bezel-local")
        self.client.grant_bucket("loads", "roles/storage.objectUser", f"serviceAccount:{self.account}")
        path = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
        self.client.finish("artifactregistry/v1", self.client.post(path, {"format": "DOCKER"}, repositoryId="tools"))
        for name, content in (("config.json", json.dumps(MODEL).encode()), ("model.safetensors", b"\0" * 400_000)):
            query = {"uploadType": "media", "name": f"tiny/{name}"}
            self.client.http.post("/upload/storage/v1/b/models/o", params=query, content=content)
        made = self.client.create(
            "tiny",
            self.client.template(
                "/mnt/models/tiny",
                "--served-model-name=tiny",
                env=[{"name": "LOCALCLOUD_SERVING_SPEED", "value": "20"}],
                volumeMounts=[{"name": "weights", "mountPath": "/mnt/models"}],
                volumes=[{"name": "weights", "gcs": {"bucket": "models", "readOnly": True}}],
                maxInstanceRequestConcurrency=100,
            ),
        )
        assert "error" not in made
        self.client.grant(f"{SERVICES}/tiny", "roles/run.invoker", f"serviceAccount:{self.account}")
        self.url = self.client.service("tiny")["uri"]

    def victim(self, tasks=2, account=""):
        """A run of the fleet as a process of its own."""
        command = [
            sys.executable,
            "-m",
            "tests.support.localcloud.killable_job",
            self.url,
            str(tasks),
            "bezel-local",
            REGION,
        ]
        return subprocess.Popen(
            [*command, account or self.account],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def remaining(self):
        """What runs have made and not deleted."""
        resources = self.client.get("/localcloud/resources").json()
        kinds = {kind: names for kind, names in resources.items() if kind in {"jobs", "executions", "tasks"}}
        objects = [name for name in resources.get("objects", []) if name.startswith("loads/")]
        notes = [file.name for file in self.notes.glob("*.json")]
        return kinds | {kind: names for kind, names in (("objects", objects), ("a note", notes)) if names}

    def executions(self):
        return self.client.get("/localcloud/resources").json().get("executions", [])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    bench_site = Site(tmp_path_factory.mktemp("fleet"))
    yield bench_site
    control.stop(bench_site.endpoint.directory)


@pytest.fixture(scope="module")
def image(site, tmp_path_factory):
    """The image that `bezel bench image` has pushed and printed, by its digest."""
    token = site.client.http.headers["Authorization"].removeprefix("Bearer ")
    engine = install(tmp_path_factory.mktemp("engine") / "bin", token)
    command = [sys.executable, "-c", MAIN, "bench", "image", f"{REGION}-docker.pkg.dev/bezel-local/tools"]
    variables = site.environment | {"PATH": str(engine)}
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60, check=True)
    return ran.stdout.strip()


def test_three_tasks_send_one_load_and_the_result_is_that_of_one(site, image, tmp_path):
    assert "@sha256:" in image
    command = [sys.executable, "-c", MAIN, "bench", "job", "--url", site.url, "--model", "tiny"]
    command += ["--users", "6", "--requests", "30", "--input-tokens", "64", "--output-tokens", "16", "--tasks", "3"]
    command += ["--image", image, "--bucket", "loads"]
    command += ["--service-account", site.account, "--job-region", REGION, "--out", str(tmp_path / "r.json")]
    ran = subprocess.run(
        command, cwd=ROOT, env=site.environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert (tmp_path / "r.json").exists(), ran.stderr
    result = json.loads((tmp_path / "r.json").read_text())
    cell = result["cells"][0]
    assert (cell["requests"], cell["failures"]) == (30, {})
    assert {check["name"]: check["state"] for check in cell["checks"]}["counters"] == "passed"
    assert result["manifest"]["client"]["workers"] == 3
    assert result["nature"] == "simulated"
    assert any(note.startswith("3 tasks sent this load: first requests") for note in result["notes"])
    with np.load(tmp_path / "r.samples.npz") as samples:
        assert sorted(samples["run/index"].tolist()) == [*range(30)]
        assert set(samples["run/worker"].tolist()) == {0, 1, 2}
    assert "cost about $" in ran.stderr
    assert site.remaining() == {}


def hold(site, method, path, nth=1, when="before"):
    """Let the n-th such call wait, until `HOLD` is deleted."""
    site.client.put(HOLD, {"method": method, "path": path, "nth": nth, "when": when})


def wait_for_held_call(site):
    """Wait until the call has come that is to wait."""
    until(lambda: site.client.get(HOLD, seconds=1).json()["reached"])


def test_a_task_that_dies_fails_the_run_with_its_reason(site):
    # A task's word that it is ready, the second object, is held: until then the load does not begin.
    hold(site, "POST", "/upload/storage/v1/b/loads/o", nth=2)
    run = site.victim()
    wait_for_held_call(site)
    execution = site.executions()[0].rpartition("/")[2]

    def second():
        return [
            one
            for one in processes_with_variable("CLOUD_RUN_EXECUTION", execution)
            if one in processes_with_variable("CLOUD_RUN_TASK_INDEX", "1")
        ]

    os.kill(until(second, 60)[0], signal.SIGKILL)
    site.client.http.delete(HOLD)
    _, errors = run.communicate(timeout=100)
    assert run.returncode == 1
    assert "task 1 of 2 died (The container was ended by a signal), so nothing was measured" in errors
    assert site.remaining() == {}


def test_a_task_that_may_not_read_the_bucket_fails_the_run(site):
    run = site.victim(1, RUNTIME)
    _, errors = run.communicate(timeout=100)
    assert run.returncode == 1
    assert "task 0 of 1 died (The container exited with an error, exit code 1)" in errors
    assert "The last lines of its log: bezel: gs://loads/" in errors
    assert re.search(r"Permission 'storage\.objects\.(get|create)' denied", errors)
    assert "--role=roles/storage.objectUser" in errors
    assert site.remaining() == {}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"bucket": "nowhere"}, "gcloud storage buckets create gs://nowhere"),
        (
            {"image": "localhost/bezel-bench:9"},
            "Image 'localhost/bezel-bench:9' not found.\n   Repair: name the image that `bezel bench image",
        ),
    ],
)
def test_a_missing_bucket_or_image_is_reported_with_its_repair(site, monkeypatch, place, message):
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    place_options = {"image": "localhost/bezel-bench:0.1.0", "bucket": "loads"} | place
    fleet = Fleet(
        "bezel-local", REGION, 1, service_account=site.account, ready_seconds=60, seconds=120, **place_options
    )
    load = Load(Target(site.url, "tiny"), Closed(2), Stop(requests=2), PromptPlan())
    with pytest.raises(UserError) as refused:
        send_by_tasks(load, fleet, lambda _: None)
    assert message in str(refused.value)
    assert site.remaining() == {}


@pytest.mark.wide_cases("15")  # a run that has taken a job over is ended by SIGTERM too, below
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(site, number):
    # A task's word that it is ready, the second object, is held: however long this test looks, the run cannot end.
    hold(site, "POST", "/upload/storage/v1/b/loads/o", nth=2)
    run = site.victim()
    wait_for_held_call(site)
    execution = site.executions()[0].rpartition("/")[2]
    tasks = until(lambda: processes_with_variable("CLOUD_RUN_EXECUTION", execution), 60)
    run.send_signal(number)
    run.communicate(timeout=100)
    site.client.http.delete(HOLD, params={"drop": 1})
    assert run.returncode == 130
    assert site.remaining() == {}
    until(lambda: not any(is_alive(pid) for pid in tasks))


KILLS = [
    ("the plan is in the bucket", "POST", "/upload/storage/v1/b/loads/o", "after"),
    ("the job is made", "POST", JOBS, "after"),
    ("the job is run", "POST", f"{JOBS}/*:run", "after"),
    ("what was left is about to be deleted", "DELETE", f"{JOBS}/*", "before"),
    ("the job that was left is deleted", "DELETE", f"{JOBS}/*", "after"),
]


@pytest.mark.wide
def test_a_run_that_is_killed_anywhere_leaves_nothing_after_the_next(site):
    rows = []
    for what, method, path, when in KILLS:
        hold(site, method, path, when=when)
        run = site.victim()
        wait_for_held_call(site)
        run.kill()
        run.communicate(timeout=60)
        site.client.http.delete(HOLD, params={"drop": int(when == "before")})
        rows.append([what, method, ", ".join(sorted(site.remaining())) or "nothing"])
    last = site.victim()
    out, errors = last.communicate(timeout=100)
    assert last.returncode == 0, errors
    results = json.loads(out)
    assert (results["indices"], results["workers"], results["failures"]) == ([*range(12)], [0, 1], [])
    assert site.remaining() == {}
    check_results(
        "kills-load-jobs",
        {
            "title": "Kills of a load of many machines",
            "document": "reliability",
            "provider": "none: requests over REST alone",
            "order": 24,
            "about": "Runs of `bezel bench job` with two tasks, one after the other, each killed at a call of its own; "
            "each finds what the one before it has left and deletes it first. The last one is let go: it measures, and "
            "nothing is left.",
            "command": ".venv/bin/pytest -q tests/localcloud/cloud_run/test_jobs_bench.py",
            "checked": "make test-wide",
            "stamp": None,
            "columns": ["killed when", "call", "left then"],
            "rows": [*rows, ["not at all: all requests answered", "", "nothing"]],
            "notes": [],
        },
    )


@pytest.fixture
def foreign(site):
    """A function that makes a job of the run's own name, with labels, as another machine or person would have."""
    name = Fleet("bezel-local", REGION, 2, "x", site.account, "loads", 60, 120).record_for(site.url).job

    def make(labels):
        container = {"image": "localhost/bezel-bench:0.1.0", "command": ["sleep"], "args": ["100"]}
        task = {"containers": [container], "timeout": "600s"}
        body = {"labels": labels, "template": {"template": task}}
        site.client.finish("run/v2", site.client.post(JOBS, body, jobId=name))
        return f"{JOBS}/{name}"

    yield make
    site.client.delete(f"{JOBS}/{name}")


def test_a_job_of_that_name_that_is_somebody_elses_is_left_alone(site, foreign):
    job = foreign({})
    run = site.victim()
    _, errors = run.communicate(timeout=100)
    assert run.returncode == 1
    assert "was not created by bezel (labels missing)" in errors
    assert site.client.get(job).status_code == 200


def test_a_job_of_another_machine_is_taken_over_only_when_it_ended(site, foreign):
    job = foreign(LABELS)
    execution = site.client.post(f"{job}:run").json()["metadata"]["name"]
    run = site.victim()
    _, errors = run.communicate(timeout=100)
    assert run.returncode == 1
    assert "a run of deployer@bezel-local.iam.gserviceaccount.com on another machine" in errors
    site.client.finish("run/v2", site.client.post(f"/run/v2/{execution}:cancel"))
    hold(site, "POST", f"{JOBS}/*:run")
    run = site.victim()
    wait_for_held_call(site)
    assert "bezel-run" in site.client.get(job).json()["labels"]
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=100)
    site.client.http.delete(HOLD, params={"drop": 1})
    assert run.returncode == 130
    assert site.remaining() == {}
