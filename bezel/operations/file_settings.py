"""Settings of a stack file that differ from those of the last deploy: not deployed yet, or deployed from elsewhere.

Owns the comparison of two configurations by the settings that a plan reads from them, so that a default that is written
out is no difference. The third value, that of the cloud, is shown where one field of the service has it; whether it was
changed outside of the program is bezel.outside_changes' to say.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.deployment.history_reader import read_deploys
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, utc
from bezel.outside_changes.change import NOT_SET
from bezel.outside_changes.fields import text_of, value_at
from bezel.planner.base.parse import read_settings
from bezel.planner.base.problems import NAMESPACE
from bezel_base.errors import UserError, one_line
from bezel_base.text.shell import shell_word

_TEXT = 200
_ENCRYPTED = "(encrypted)"
# Setting -> its field in run v2, which the state's inputs and the live service both have.
_FIELDS = {
    "accelerator": "template.nodeSelector.accelerator",
    "scaling.min_instances": "template.scaling.minInstanceCount",
    "scaling.max_instances": "template.scaling.maxInstanceCount",
    "scaling.request_concurrency": "template.maxInstanceRequestConcurrency",
    "resources.cpu": "container.resources.limits.cpu",
    "resources.memory": "container.resources.limits.memory",
    "probe.initial_delay_seconds": "container.startupProbe.initialDelaySeconds",
    "probe.period_seconds": "container.startupProbe.periodSeconds",
    "probe.timeout_seconds": "container.startupProbe.timeoutSeconds",
    "probe.failure_threshold": "container.startupProbe.failureThreshold",
}
# Fields that Google leaves out of its answers where they are 0.
_ZERO = frozenset({"scaling.min_instances", "probe.initial_delay_seconds"})


class UndeployedSetting(Result):
    """A setting whose value in the stack file is not the one that was deployed last."""

    setting: str = Field(description="its path in the stack file, e.g. scaling.max_instances")
    file: str = Field(description="its value in the file, `not set` without one")
    deployed: str = Field(description="its value in the last deploy that succeeded")
    cloud: str | None = Field(description="its live value; null where no field of a service has it")

    def line(self) -> str:
        """The setting for people."""
        cloud = "" if self.cloud is None else f", cloud {self.cloud}"
        return f"{self.setting}: file {self.file}, deployed {self.deployed}{cloud}"


class FileSettings(Result):
    """The stack file beside the last deploy."""

    settings: tuple[UndeployedSetting, ...] = Field(description="settings that differ")
    deployed_at: datetime | None = Field(description="end of the last deploy that succeeded; null if unknown")
    failed_at: datetime | None = Field(description="end of a later deploy that failed; null without one")
    unknown_because: str | None = Field(description="why they cannot be compared; null where they were")


def file_settings(context: Context, deployment: Deployment, live: Mapping[str, Any] | None) -> FileSettings | None:
    """The settings of a stack's file that are not deployed; None without a file. Never raises for an unreadable one.

    Args:
        context: The context.
        deployment: The stack.
        live: Its GPU service as Cloud Run has it; None without one.
    """
    project, stack = context.project, deployment.stack
    if stack not in project.stacks():
        return None
    try:
        deploys = read_deploys(context.folder, project.name, stack, context.environ)
        if not deploys:
            return _unknown("the backend has no record of a deploy")
        last = deploys[-1] if deploys[-1].is_done else deploys[0]
        file = project.engine_configuration(stack)
        file = {key: value for key, value in file.items() if key not in last.hidden}
        service = deployment.service
        state = service.inputs if service is not None and service.has_gpu else None
        undeployed = differences(file, last.config, NAMESPACE, state, None if state is None else live)
    except UserError as error:
        return _unknown(clean_text(one_line(error), _TEXT))
    failed = None if deploys[0].is_done else deploys[0]
    if failed is not None:
        undeployed = [each for each in undeployed if not _is_in_place(each, state)]
    return FileSettings(
        settings=tuple(undeployed),
        deployed_at=utc(last.at) if last.is_done else None,
        failed_at=utc(failed.at) if failed else None,
        unknown_because=None,
    )


def differences(
    file: Mapping[str, Any],
    deployed: Mapping[str, Any],
    project: str,
    state: Mapping[str, Any] | None = None,
    live: Mapping[str, Any] | None = None,
) -> list[UndeployedSetting]:
    """The settings that differ between two configurations. Pure.

    Args:
        file: That of the stack file, by the engine's keys.
        deployed: That of the last deploy.
        project: The namespace of the settings.
        state: Inputs of the GPU service in the state; None without one.
        live: The service in run v2's description.
    """
    mine, theirs = _read(file, project), _read(deployed, project)
    if mine is None or theirs is None:
        # A value that no plan can read: all are compared as they are written.
        mine, theirs = _as_written(file, project), _as_written(deployed, project)
    undeployed = []
    for path in sorted({*mine, *theirs}):
        wanted, there = mine.get(path), theirs.get(path)
        if wanted == there or (wanted == _ENCRYPTED and there == _ENCRYPTED):
            continue
        cloud = None if live is None or state is None else _field(live, path)
        undeployed.append(
            UndeployedSetting(
                setting=clean_text(path, _TEXT),
                file=_value_text(wanted),
                deployed=_value_text(there),
                cloud=None if cloud is None else _value_text(cloud),
            )
        )
    return undeployed


def file_rows(stack: str, settings: FileSettings | None) -> list[tuple[str, str]]:
    """Rows about what is not deployed."""
    if settings is None:
        return []
    name = f"Pulumi.{stack}.yaml"
    if settings.unknown_because is not None:
        return [("file", f"{name}: not judged whether it is deployed: {settings.unknown_because}")]
    rows = [("not deployed", each.line()) for each in settings.settings]
    if rows and settings.failed_at is not None:
        rows.append(("not deployed", f"the deploy of {settings.failed_at:%Y-%m-%d %H:%M} UTC failed"))
    if rows:
        when = "" if settings.deployed_at is None else f" of {settings.deployed_at:%Y-%m-%d %H:%M} UTC"
        text = (
            f"`bezel deploy {shell_word(stack)}` deploys {name}; to keep the last deploy{when}, restore its values "
            "there."
        )
        rows.append(("repair", text))
    return rows


def _read(config: Mapping[str, Any], project: str) -> dict[str, Any] | None:
    """Each setting by its path, those of the project as a plan reads them; None where it cannot read one."""
    project_values = _without_secrets(
        {key.partition(":")[2]: value for key, value in config.items() if _is_own(key, project)}
    )
    others = _without_secrets({key: value for key, value in config.items() if not _is_own(key, project)})
    settings, problems = read_settings(project_values)
    if problems:
        return None
    return dict(_leaves(settings.model_dump(mode="json"), "")) | dict(_leaves(others, ""))


def _as_written(config: Mapping[str, Any], project: str) -> dict[str, Any]:
    """Each setting by its path, as text."""
    values = {key.partition(":")[2] if _is_own(key, project) else key: value for key, value in config.items()}
    return {path: _value_text(value) for path, value in _leaves(_without_secrets(values), "")}


def _is_own(key: str, project: str) -> bool:
    return key.startswith(f"{project}:")


def _leaves(value: Any, path: str) -> list[tuple[str, Any]]:
    """Each value with its path; a list is one value, and an empty map or text is none.

    An option of vLLM that is null removes a default.
    """
    if value is None and path.startswith("vllm."):
        return [(path, "null")]
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in _leaves(item, f"{path}.{key}" if path else str(key))]
    return [] if value in (None, "", []) else [(path, value)]


def _without_secrets(value: Any) -> Any:
    """A configuration with `(encrypted)` for each encrypted value: its text differs with each encryption."""
    if isinstance(value, Mapping):
        if list(value) == ["secure"]:
            return _ENCRYPTED
        return {key: _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _field(service: Mapping[str, Any], path: str) -> Any:
    """The value of a setting in a service; None where no field of it has the setting."""
    containers = value_at(service, "template.containers") or [{}]
    container = containers[0] if isinstance(containers[0], Mapping) else {}
    section, _, name = path.partition(".")
    if path in _FIELDS:
        value = value_at({**service, "container": container}, _FIELDS[path])
        return 0 if value is None and path in _ZERO else value
    if section == "labels":
        return value_at(service, "labels") and (service["labels"].get(name) or NOT_SET)
    if section == "vllm":
        arguments = dict(_argument(text) for text in container.get("args") or () if str(text).startswith("--"))
        return arguments.get(name, NOT_SET)
    if section == "variables":
        listed = [*(container.get("env") or ()), *(container.get("envs") or ())]
        return next((each.get("value") for each in listed if each.get("name") == name), NOT_SET)
    return None


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.removeprefix("--").partition("=")
    return name, value if equals else "true"


def _is_in_place(setting: UndeployedSetting, state: Mapping[str, Any] | None) -> bool:
    """Whether a deploy that failed has brought the file's value about before."""
    there = None if state is None else _field(state, setting.setting)
    return there is not None and _value_text(there) == setting.file


def _value_text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list | Mapping) and value else text_of(value)
    return clean_text(text, _TEXT)


def _unknown(why: str) -> FileSettings:
    return FileSettings(settings=(), deployed_at=None, failed_at=None, unknown_because=why)
