"""Time of `pulumi preview` of a stack over a bare program that declares the same resources, in alternating pairs.

    .venv/bin/python -m tools.measure.preview [STACK] [--pairs N]

The bare program is written from the stack's own preview: one literal call of the provider's class a resource, no
settings, no plan, no components. Both run against the same localcloud with the same plugins, in turns. Prints a table
of medians and the median of the pairs' ratios. Leaves out `up`, whose time is mostly the cloud's.
"""

import argparse
import importlib
import inspect
import json
import os
import pprint
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel.cli.local.program import BezelLocal
from bezel.cli.local.stacks import Local
from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from bezel_localcloud.command.cloud import LocalCloud
from tools.measure.own_cloud import own_cloud

CLONE = Path(__file__).resolve().parents[2]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SPEED = 10_000.0
# Placeholder for an output of the service, which a bare program would pass on.
FROM_THE_SERVICE = {"url": "uri", "revision": "latest_created_revision"}
DYNAMIC = {
    "pulumi-python:dynamic/components:ModelFiles": ("bezel_components.model_files", "ModelFiles"),
    "pulumi-python:dynamic/smoke:AddressCheck": ("bezel_smoke.address", "AddressCheck"),
    "pulumi-python:dynamic/smoke:DoorCheck": ("bezel_smoke.door", "DoorCheck"),
    "pulumi-python:dynamic/smoke:HealthCheck": ("bezel_smoke.health", "HealthCheck"),
    "pulumi-python:dynamic/smoke:ShortBenchmark": ("bezel_smoke.benchmark", "ShortBenchmark"),
}


class Expression:
    """Source text of a value in the bare program."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def main() -> None:
    """Run the pairs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stack", nargs="?", default="l4-qat")
    parser.add_argument("--pairs", type=int, default=9)
    options = parser.parse_args()
    # Unset, as for most users: with it, which some set to keep folders clean, every run would compile every module.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with own_cloud() as (folder, cloud):
        bare = folder / "bare"
        local = Local(Project(CLONE), LocalCloud(BezelLocal(), cloud, speed=SPEED))
        if local.run_stack("preview", options.stack, ["--suppress-progress"]):
            sys.exit("the stack's own preview failed")
        endpoint = control.start(cloud, speed=SPEED)
        environment = control.environment(endpoint)
        program = LocalEngine(Project(CLONE), cloud, environment)
        write_bare(bare, options.stack, preview(program, options.stack, "--json"))
        bare_engine = LocalEngine(Project(bare), cloud / "of-bare", environment)
        (cloud / "of-bare").mkdir()
        bare_engine.prepare(options.stack)
        times = [
            (preview_seconds(bare_engine, options.stack), preview_seconds(program, options.stack))
            for _ in range(options.pairs + 1)
        ][1:]
    report(times)


def report(times: list[tuple[float, float]]) -> None:
    """Print medians in seconds and the median of the pairs' ratios."""
    bare, program = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(own_seconds / other for other, own_seconds in times)
    print(f"pairs         {len(times)}")
    print(f"bare program  {bare:.2f} s   ({min(t for t, _ in times):.2f} to {max(t for t, _ in times):.2f})")
    print(f"this program  {program:.2f} s   ({min(t for _, t in times):.2f} to {max(t for _, t in times):.2f})")
    print(f"ratio         {ratio:.3f}   (median of the pairs' ratios)")


def preview_seconds(engine: LocalEngine, stack: str) -> float:
    """Seconds of one preview."""
    started = time.perf_counter()
    preview(engine, stack)
    return time.perf_counter() - started


def preview(engine: LocalEngine, stack: str, *options: str) -> str:
    """Run one preview; return its output."""
    copy = engine.stack_copy(stack).absolute()
    answer = subprocess.run(
        [
            str(Path(sys.executable).parent / "pulumi"),
            "preview",
            "--stack",
            stack,
            "--config-file",
            str(copy),
            *options,
        ],
        cwd=engine.project.folder,
        env=os.environ | engine.environment() | {"PYTHONPATH": str(CLONE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if answer.returncode:
        sys.exit(f"preview in {engine.project.folder} failed:\n{answer.stdout}\n{answer.stderr}")
    return answer.stdout


def write_bare(folder: Path, stack: str, preview_json: str) -> None:
    """Write the bare program that declares what the preview lists."""
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text(
        f"name: bare\nruntime: {{name: python, options: {{toolchain: uv, virtualenv: {CLONE / '.venv'}}}}}\n"
    )
    (folder / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
    steps = [step for step in json.loads(preview_json)["steps"] if step.get("op") == "create"]
    modules: set[str] = set()
    lines: list[str] = []
    service = ""
    for step in steps:
        state = step["newState"]
        token, name = state["type"], state["urn"].rpartition("::")[2]
        variable = re.sub(r"\W", "_", name)
        inputs = plain(state.get("inputs", {}), service)
        if token.startswith("gcp:"):
            module, cls = token.split(":")[1].partition("/")[0], token.rpartition(":")[2]
            modules.add(f"from pulumi_gcp import {module}")
            lines.append(f"{variable} = {module}.{cls}({name!r}, **{pprint.pformat(inputs)})")
            if (module, cls) == ("cloudrunv2", "Service"):
                service = variable
        elif token in DYNAMIC:
            module, cls = DYNAMIC[token]
            modules.add(f"from {module} import {cls}, {cls}Args")
            parameters = inspect.signature(getattr(importlib.import_module(module), f"{cls}Args")).parameters
            accepted = {key: value for key, value in inputs.items() if key in parameters}
            lines.append(f"{variable} = {cls}({name!r}, {cls}Args(**{pprint.pformat(accepted)}))")
    look_up = "docker.get_registry_image(name='docker.io/vllm/vllm-openai:v0.32.0')"
    text = ["import pulumi_docker as docker", *sorted(modules), "", look_up, *lines, ""]
    (folder / "__main__.py").write_text("\n".join(text))


def plain(value: Any, service: str) -> Any:
    """Inputs as keyword arguments: snake_case keys; an unknown one is an output of the service."""
    if isinstance(value, Mapping):
        return {
            snake(key): Expression(f"{service}.{FROM_THE_SERVICE[key]}") if item == UNKNOWN else plain(item, service)
            for key, item in value.items()
            if key not in {"effectiveLabels", "pulumiLabels", "__defaults"}
        }
    return [plain(item, service) for item in value] if isinstance(value, list) else value


def snake(key: str) -> str:
    """A property's name in Python."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower() if re.fullmatch(r"[a-z]\w*", key) else key


if __name__ == "__main__":
    main()
