"""Cases of the table of relations, and what the plan and the simulated server say of each.

A case is a row of tests/fixtures/start_relations/*.toml under its relation's id:

    [[RELATION]]
    stack = "l4-qat"                   # a shipped stack
    model = "gemma-4-e2b-it"           # instead of the stack's own
    changes = { resources = {...} }    # other settings of the stack file, merged into its own
    options = { block-size = 8 }       # of `bezel:vllm`; `"null"` drops a default
    refused = true
    says = "block size"                # part of vLLM's message, where it is refused
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, PlanError, make_plan
from bezel.planner.vllm.arguments import chosen_arguments, merge
from bezel_catalog import model, models, vllm_options
from bezel_simulated_vllm.configuration.adapters import load_adapters
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.hub import adapter_reader
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import make_settings
from bezel_simulated_vllm.release import DEFAULT_RELEASE
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.planner.command_line import option_words
from tests.support.planner.v6e_stack import L4X8

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "start_relations"
STACKS = Project(ROOT).stacks()
OPTIONS = vllm_options(DEFAULT_RELEASE)
ADAPTER = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
UNPRICED = "gce-l4x8"  # the plan needs its price, which its owner knows
_FOLDERS = ("/mnt/models", "/dev/shm/models", "/var/lib/bezel/models")  # noqa: S108 - of containers


@dataclass(frozen=True)
class Case:
    """One case; see the module's text for its fields."""

    relation: str
    stack: str
    options: dict[str, Any]
    refused: bool
    model: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    says: str = ""

    @property
    def id(self) -> str:
        """Its name in the list of tests."""
        parts = (self.relation, self.stack, self.model, json.dumps(self.changes | self.options, sort_keys=True))
        return " ".join(filter(None, parts))


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return every case of every file."""
    return tuple(
        Case(relation, **row)
        for file in sorted(FIXTURES.glob("*.toml"))
        for relation, rows in tomllib.loads(file.read_text(encoding="utf-8")).items()
        for row in rows
    )


def configuration(stack: str) -> dict[str, Any]:
    """Return the stack's configuration, with a price where it has none."""
    config = copy.deepcopy(_shipped_configuration(stack))
    if stack == UNPRICED:
        config["cost"] = {**config.get("cost", {}), "prices": L4X8["cost"]["prices"]}
    return config


@functools.cache
def _shipped_configuration(stack: str) -> dict[str, Any]:
    return dict(Project(ROOT).configuration(stack))


@functools.cache
def shipped_plan(stack: str) -> Any:
    """Return the plan of a stack as it is shipped."""
    return make_plan(configuration(stack), project="bezel-local", stack=stack)


def plan_case(case: Case) -> tuple[Any, tuple[Any, ...]]:
    """Return the plan of a case and no problems, or None and its problems."""
    config = configuration(case.stack)
    for key, value in case.changes.items():
        present = config.get(key)
        config[key] = {**present, **value} if isinstance(present, dict) and isinstance(value, dict) else value
    config["model"] = case.model or config["model"]
    config["vllm"] = {**config.get("vllm", {}), **_options(case)}
    try:
        return make_plan(config, project="bezel-local", stack=case.stack), ()
    except PlanError as error:
        return None, error.problems


def _options(case: Case) -> dict[str, Any]:
    return {name: None if value == "null" else value for name, value in case.options.items()}


def model_folders() -> dict[str, str]:
    """Return the folder of every model, assistant and shipped stack -> the id of what it holds."""
    places = {row.folder: row.id for row in models().values() if row.folder}
    places |= {str(row.assistant).rsplit("/", 1)[-1]: str(row.assistant) for row in models().values() if row.assistant}
    return places | {shipped_plan(stack).weights.path: shipped_plan(stack).model for stack in STACKS}


def seed_models(folder: Path) -> None:
    """Write what localcloud seeds for every model, its assistant and the stacks' own folders, and two adapters."""
    for adapter in ("a", "b"):
        (folder / adapter).mkdir()
        (folder / adapter / "adapter_config.json").write_text(json.dumps(ADAPTER))
        (folder / adapter / "adapter_model.safetensors").write_bytes(b"")
    for path, name in model_folders().items():
        (folder / path).mkdir(parents=True, exist_ok=True)
        for file, content in model_files(name).items():
            (folder / path / file).write_bytes(content)


def command(case: Case) -> tuple[list[str], dict[str, str]]:
    """Return what follows `vllm serve` in a case, and the variables of its container."""
    plan = shipped_plan(case.stack)
    arguments = [_model_path(case, plan), *_replace_options(plan.server.arguments[1:], _options(case))]
    return arguments, {**plan.server.environment, **case.changes.get("variables", {})}


def start_case(case: Case, folder: Path) -> str | None:
    """Return how the simulated server refuses a case; None where it starts.

    Args:
        case: to be tried.
        folder: where `seed_models` wrote the models.
    """
    plan = shipped_plan(case.stack)
    arguments, environment = command(case)
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            options = parse(arguments)
        machine = _machine(case, plan, folder)
        read = adapter_reader(machine, environment)
        load_adapters(options, make_settings(options, machine, environment).served_names, read)
    except SystemExit:
        return output.getvalue().strip().splitlines()[-1]
    except StartError as error:
        return str(error)
    return None


def _model_path(case: Case, plan: Any) -> str:
    path = plan.server.arguments[0]
    changed = case.changes.get("weights", {}).get("path")
    if not case.model and not changed:
        return path
    return f"{path.removesuffix(plan.weights.path)}{changed or model(case.model).folder}"


def _replace_options(arguments: tuple[str, ...], chosen: dict[str, Any]) -> list[str]:
    """Replace options in an argument list."""
    replaced = [OPTIONS.find(f"--{name.replace('_', '-')}")[0] for name in chosen]
    flags = {flag for option in replaced for flag in (*option.flags, option.negation)}
    kept, drops = [], False
    for word in arguments:
        if word.startswith("--"):
            drops = word.partition("=")[0] in flags
        if not drops:
            kept.append(word)
    return [*kept, *option_words(merge({}, chosen_arguments(chosen, OPTIONS), OPTIONS), OPTIONS)]


def _machine(case: Case, plan: Any, folder: Path) -> Any:
    if isinstance(plan, LeasePlan):
        hardware = plan.terms.hardware
        row = {
            "accelerator": hardware.gpu.id if hardware.gpu else "tpu-v6e",
            "accelerators": hardware.chips,
            "cpu": 64,
            "memory_gib": hardware.host_memory_gib,
        }
    else:
        service, resources = plan.service, case.changes.get("resources", {})
        row = {
            "accelerator": service.accelerator,
            "accelerators": service.accelerator_count,
            "cpu": resources.get("cpu", service.cpu),
            "memory_gib": float(str(resources.get("memory", service.memory_gib)).removesuffix("Gi")),
        }
    mounts = [*_FOLDERS, *([f"gs://{plan.weights.bucket}"] if plan.weights.bucket else [])]
    return machine_from_environment({
        "LOCALCLOUD_HARDWARE": json.dumps(row),
        "LOCALCLOUD_MOUNTS": json.dumps({mount: str(folder) for mount in mounts}),
    })  # fmt: skip
