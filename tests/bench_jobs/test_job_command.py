"""`bezel bench job`: what is wrong with its options, and what it says that the tasks cost."""

import argparse

import pytest

from bezel.bench_jobs.job_runner import Fleet
from bezel.cli.bench import job
from bezel.cli.main import parse
from bezel_base.command_line.parser import UsageError
from bezel_base.errors import UserError
from bezel_bench.load.plan import Closed, Load, PromptPlan, Replay, Stage, Staged, Stop, Target

OPTIONS = [
    *("bench", "job", "--url", "http://127.0.0.1:1", "--tasks", "3", "--image", "localhost/bezel-bench:0.1.0"),
    *("--bucket", "b", "--service-account", "a", "--job-region", "us-east4", "--project", "p"),
]
FLEET = Fleet("p", "us-east4", 3, "i", "a", "b", 60.0, 600.0)


def load(pattern, stop):
    return Load(Target("http://127.0.0.1:1", "m"), pattern, stop, PromptPlan(), deadline_seconds=30.0)


def options(*more):
    return parse([*OPTIONS, *more])


def test_the_options_make_a_fleet():
    assert job._fleet(options("--ready-seconds", "60", "--job-seconds", "600")) == Fleet(
        "p", "us-east4", 3, "localhost/bezel-bench:0.1.0", "a", "b", 60.0, 600.0
    )


def test_all_that_is_wrong_with_a_fleet_is_said_at_once(monkeypatch):
    for name in ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    wrong_options = options("--workers", "2", "--ca-file", "x.pem", "--tasks", "0", "--project", "")
    with pytest.raises(UserError) as refused:
        job._fleet(wrong_options)
    for option in ("--tasks = 0", "--project", "--workers = 2", "--ca-file"):
        assert option in str(refused.value)


def test_a_job_of_a_project_that_no_id_names_is_refused():
    with pytest.raises(UserError, match=r"--project = a b; rm\n.*not the ID of a Google Cloud project"):
        job._fleet(options("--project", "a b; rm"))


def test_no_more_tasks_than_users():
    way = job._ByTasks(FLEET)
    with pytest.raises(UserError, match=r"--tasks = 3\n   with 2 users some tasks would send nothing"):
        way.send(load(Closed(2), Stop(requests=9)), None, None, print)


@pytest.mark.parametrize(
    ("pattern", "stop", "seconds"),
    [
        (Closed(3), Stop(seconds=600), 600),
        (Staged("users", (Stage(3, 500), Stage(6, 100))), Stop(), 600),
        (Staged("users", (Stage(3, 500), Stage(6, 100))), Stop(seconds=50), 50),
        (Replay((0.0, 700.0)), Stop(), 700),
        (Closed(3), Stop(requests=9), 0),
    ],
)
def test_a_job_that_may_end_before_its_load_is_refused(pattern, stop, seconds):
    made = load(pattern, stop)
    assert job._longest(made) == seconds
    if 60 + seconds + 30 > FLEET.seconds:
        with pytest.raises(UserError, match=f"give {60 + seconds + 30} or more"):
            job._ByTasks(FLEET).send(made, None, None, print)


def test_the_cost_is_reported_by_the_minute_and_at_most():
    # 2 vCPU at 0.000018 and 2 GiB at 0.000002 a second, three times.
    assert job._cost(FLEET) == (
        "3 tasks of 2 vCPU and 2 GiB cost about $0.0072 a minute, at most $0.07 in the 600 s of each job "
        "(estimated, list prices as of 2026-09)."
    )


def test_a_region_without_a_price_has_an_unknown_cost():
    cost = job._cost(Fleet("p", "us-west1", 3, "i", "a", "b", 60.0, 600.0))
    assert "their cost is unknown" in cost
    assert "cloud-run, vcpu, us-west1" in cost
    assert "$" not in cost


def test_a_worker_is_run_by_a_job_only(capsys, monkeypatch):
    from bezel.cli.main import main

    monkeypatch.delenv("CLOUD_RUN_TASK_INDEX", raising=False)
    assert main(["bench", "worker", "gs://b/p"]) == 1
    assert "use `.venv/bin/bezel bench job`" in capsys.readouterr().err


def test_a_place_is_an_address_in_a_bucket(monkeypatch, capsys):
    from bezel.cli.main import main

    monkeypatch.setenv("CLOUD_RUN_TASK_INDEX", "0")
    assert main(["bench", "worker", "gs://only-a-bucket"]) == 1
    assert "write gs://BUCKET/PREFIX" in capsys.readouterr().err


def test_the_options_are_those_of_run_and_the_tasks_own():
    assert isinstance(options(), argparse.Namespace)
    with pytest.raises(UsageError):
        parse(["bench", "job", "--url", "http://127.0.0.1:1", "--tasks", "3"])
