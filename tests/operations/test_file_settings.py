"""Settings of a stack file beside the last deploy: each that differs is named, with its value in the cloud."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from bezel.operations.file_settings import differences
from bezel.operations.status.status import StackStatus, StatusArguments, status
from bezel.operations.watch.page import Watch
from bezel.planner.base.parse import read_settings
from bezel.planner.base.settings import Settings
from tests.support.operations.deployed import (
    SERVICE,
    Deployed,
    live_service,
    service_inputs,
    service_resource,
    state_of,
)

BASE: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
# Values, of which each setting takes one that it accepts and does not have.
VALUES = (
    True, False, 7, 3, 77, 0.5, "12Gi", "45m", "prod", "always", "gated", "hub", "other-text", "2026-11-24T12:00:00Z",
    ["a@b.co"], ["serviceAccount:a@b.iam.gserviceaccount.com"], [{"cron": "0 8 * * *", "min_instances": 1}],
    [{"zone": "us-east5-a", "patience": "10m"}], [{"start": "0 8 * * *", "end": "0 18 * * *"}], {"a": "b"}, {"n": 3},
    "internal", "all-traffic", "spot", "queued_resource", "tcp", "012345-6789AB-CDEF01", "EUR",
    [{"name": "sql", "source": "acme/sql", "rank": 8}],
    [{"item": "vcpu", "region": "us-east4", "usd_per_unit": 0.1, "as_of": "2026-11", "source": "our invoice"}],
)  # fmt: skip


def paths(model: type[BaseModel], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all settings: those of sections, and each section's own."""
    paths_below = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths_below += paths(kind, (*above, name))
        else:
            paths_below.append((*above, name))
    return paths_below


def with_value(path: tuple[str, ...], value: object) -> dict[str, Any]:
    settings = json.loads(json.dumps(BASE))
    place = settings
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = value
    return settings


def config(values: dict[str, Any]) -> dict[str, Any]:
    return {f"bezel:{key}": value for key, value in values.items()}


def differing_names(file: dict[str, Any], deployed: dict[str, Any]) -> list[str]:
    return [each.setting for each in differences(config(file), config(deployed), "bezel")]


@pytest.mark.slow
def test_each_setting_that_differs_is_named_and_no_other() -> None:
    default = read_settings(BASE)[0].model_dump(mode="json")
    for path in paths(Settings):
        for value in VALUES:
            changed = with_value(path, value)
            settings, problems = read_settings(changed)
            if not problems and settings.model_dump(mode="json") != default:
                break
        else:
            pytest.fail(f"no value for {'.'.join(path)}")
        for file, deployed in ((changed, BASE), (BASE, changed)):
            (setting,) = differing_names(file, deployed)
            assert f"{setting}.".startswith(f"{'.'.join(path)}."), path
        assert differing_names(changed, changed) == []
    assert len(paths(Settings)) > 70


def test_a_default_that_is_written_out_is_no_difference() -> None:
    written = {key: value for key, value in Settings(**BASE).model_dump(mode="json").items() if value is not None}
    assert differing_names(written, BASE) == []
    assert differing_names({**BASE, "scaling": {"max_instances": "1"}}, {**BASE, "scaling": {"max_instances": 1}}) == []


def test_an_option_that_removes_a_default_is_a_difference() -> None:
    assert differing_names({**BASE, "vllm": {"dtype": None}}, BASE) == ["vllm.dtype"]


def test_a_value_that_no_plan_can_read_is_compared_as_written() -> None:
    assert differing_names({**BASE, "scaling": {"max_instances": "many"}}, BASE) == ["scaling.max_instances"]
    assert differing_names({**BASE, "gone": 1, "scaling": {"max_instances": 2}}, {**BASE, "gone": 1}) == [
        "scaling.max_instances"
    ]


def test_other_namespaces_and_secrets_are_compared_without_being_shown() -> None:
    secure = [{"bezel:variables": {"A": {"secure": text}}, "gcp:project": text} for text in ("v1:abc", "v1:def")]
    (setting,) = differences(config(BASE) | secure[0], config(BASE) | secure[1], "bezel")
    assert (setting.setting, setting.file, setting.deployed) == ("gcp:project", "v1:abc", "v1:def")
    (setting,) = differences(
        config(BASE) | {"bezel:variables": {"A": "x"}},
        config(BASE) | {"bezel:variables": {"A": {"secure": "v1:q"}}},
        "bezel",
    )
    assert (setting.file, setting.deployed) == ("x", "(encrypted)")


class Stack:
    """A deployed stack with a file, a history and a service in the cloud."""

    def __init__(self, cloud: Deployed) -> None:
        self.cloud, self.runs = cloud, 0
        inputs = service_inputs()
        inputs["template"]["scaling"] = {"maxInstanceCount": 2, "minInstanceCount": 0}
        inputs["template"]["containers"][0]["args"] = ["--max-num-seqs=8"]
        cloud.keep("dev", state_of(service_resource(**inputs)))
        self.service(maximum=2)

    def service(self, maximum: int) -> None:
        template = {**service_inputs()["template"], "scaling": {"maxInstanceCount": maximum}}
        self.cloud.live[SERVICE] = live_service(template=template)

    def write(self, **values: Any) -> None:
        text = yaml.safe_dump({"config": config({**BASE, **values})})
        (self.cloud.folder / "Pulumi.dev.yaml").write_text(text)

    def ran(self, kind: str = "update", result: str = "succeeded", **values: Any) -> None:
        """A run of the engine, after those before."""
        self.runs += 1
        history = self.cloud.folder / "state/.pulumi/history/bezel/dev"
        history.mkdir(parents=True, exist_ok=True)
        end = 1_789_990_000 + self.runs
        run = {"kind": kind, "result": result, "endTime": end, "config": config({**BASE, **values})}
        (history / f"dev-{end}000000000.history.json").write_text(json.dumps(run))
        (history / f"dev-{end}000000000.history.json.attrs").write_text("{}")

    def status(self) -> tuple[StackStatus, str]:
        report = status(self.cloud.context, StatusArguments(stack="dev"))
        return report.stacks[0], "\n".join(" ".join(line.split()) for line in report.text().splitlines())


@pytest.fixture
def stack(cloud: Deployed) -> Stack:
    return Stack(cloud)


@pytest.mark.slow
def test_status_names_file_deployed_and_cloud(stack: Stack) -> None:
    stack.write(scaling={"max_instances": 1})
    stack.ran(scaling={"max_instances": 2})
    stack.ran(kind="refresh", scaling={"max_instances": 9})
    stack_status, text = stack.status()
    assert "not deployed scaling.max_instances: file 1, deployed 2, cloud 2" in text
    assert "repair `bezel deploy dev` deploys Pulumi.dev.yaml" in text
    assert stack_status.outside == ()
    # Somebody else changed it as well: all three differ.
    stack.service(maximum=3)
    stack_status, text = stack.status()
    assert "not deployed scaling.max_instances: file 1, deployed 2, cloud 3" in text
    assert "template.scaling.maxInstanceCount: cloud 3, program 2" in text
    assert stack_status.verdict == "ready"
    # Beside another stack, and on the page of `watch`.
    stack.cloud.keep("prod", state_of(service_resource()))
    table = status(stack.cloud.context, StatusArguments(stack=None)).text()
    assert "dev: not deployed: scaling.max_instances: file 1, deployed 2, cloud 3" in table
    page = Watch(stack="dev", at=datetime.now(UTC), status=stack_status, metrics=None, notes=())
    assert "not deployed: scaling.max_instances: file 1, deployed 2, cloud 3" in page.lines()


@pytest.mark.slow
def test_a_file_as_it_was_deployed_has_no_row(stack: Stack) -> None:
    stack.write(scaling={"max_instances": 2})
    stack.ran(scaling={"max_instances": 1})
    stack.ran(scaling={"max_instances": 2})
    stack_status, text = stack.status()
    assert stack_status.file is not None
    assert (stack_status.file.settings, stack_status.file.unknown_because) == ((), None)
    assert "not deployed" not in text
    # A change outside alone is not the file's.
    stack.service(maximum=3)
    stack_status, text = stack.status()
    assert "not deployed" not in text
    assert [each.setting for each in stack_status.outside] == ["template.scaling.maxInstanceCount"]


def test_a_deploy_that_failed_is_not_the_deployed_one(stack: Stack) -> None:
    stack.write(scaling={"max_instances": 2}, vllm={"max-num-seqs": 4})
    stack.ran(scaling={"max_instances": 1}, vllm={"max-num-seqs": 8})
    stack.ran(result="failed", scaling={"max_instances": 2}, vllm={"max-num-seqs": 4})
    stack_status, text = stack.status()
    assert stack_status.file is not None
    # The state has the maximum of the deploy that failed, and the arguments of the one before.
    assert [each.setting for each in stack_status.file.settings] == ["vllm.max-num-seqs"]
    assert "not deployed vllm.max-num-seqs: file 4, deployed 8" in text
    assert "not deployed the deploy of 2026-09-21 11:26 UTC failed" in text


@pytest.mark.slow
def test_without_a_record_it_is_not_judged_and_without_a_file_nothing(stack: Stack) -> None:
    assert stack.status()[0].file is None
    stack.write()
    stack_status, text = stack.status()
    assert "file Pulumi.dev.yaml: not judged whether it is deployed: the backend has no record of a deploy" in text
    assert stack_status.file is not None
    stack.ran()
    next(Path(stack.cloud.folder, "state/.pulumi/history/bezel/dev").glob("*.json")).write_text("{")
    assert "the history of dev cannot be read" in stack.status()[1]
