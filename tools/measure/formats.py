"""Formats that the checkout in the current folder writes, as JSON; for `compare_interfaces.py`.

A format is the path of each field with its type. Small operations run on an embedded cloud and on a simulated server,
and what they write is read: reports of `bezel ci`, records, reviews, locks and states in the bucket, files of
localcloud, results, journals and samples of `bezel bench`.

Leaves out `ci login` and `ci prices`, which need a forge, and the results of operations, whose schemas `interfaces.py`
has. What an operation deletes at its end, and only a killed one leaves, is written by the function that writes it then.
Runs in the environment of a checkout before or after the packages.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interfaces import module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SECONDS = 300
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}|__\w+")
_TOLD = frozenset({"version", "schema", "schema_version", "kind", "verdict", "tool"})
"""Fields whose values belong to the format, unless they are longer than what follows."""
_LONGEST = 20
_DATA = (".numbers", ".keys", ".stacks", ".labels", ".inputs", ".adds", ".updates", ".hidden")
"""Ends of paths whose keys are data."""
_RUN = {
    "GITHUB_RUN_ID": "7",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "deploy",
    "GITHUB_ACTOR": "ann",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_REPOSITORY": "acme/llm",
    "GITHUB_SERVER_URL": "https://forge.example",
}
_COPY = """
import os, sys, urllib.request
url = f"http://{os.environ['STORAGE_EMULATOR_HOST']}/storage/v1/b/{sys.argv[1]}/o/{sys.argv[2]}?alt=media"
open(sys.argv[3], "wb").write(urllib.request.urlopen(url, timeout=60).read())
"""
_LENGTHS = "--input-tokens 16 --output-tokens 4"
_LONG = "--input-tokens 16 --output-tokens 128"
BENCHMARKS = {
    "run": f"--url URL --users 1 --requests 4 {_LENGTHS} --public --out run.json --json",
    "sweep": "--url URL --contexts 16,64 --users 1,2 --output-tokens 4 --full --public --out sweep.json --json",
    "rates": f"--url URL --rates 4,8 --seconds 1 {_LENGTHS} --public --out rates.json --json",
    "goodput": f"--url URL --rate 8:16 --seconds 1 --runs 1 --slo ttft_mean=9s {_LENGTHS} --public --out g.json --json",
    "ab": f"--arm a=URL --arm b=SECOND --rounds 3 --users 1 --requests 4 {_LONG} --public --out ab.json --json",
    "audit": "ok.json --json",
    "compare": "ok.json ok.json --json",
    "report": "ok.json --json",
    "export": "ok.json --format vllm",
}
"""Command of `bezel bench` -> its arguments; `ok.json` is the result of `run` as an idle machine measures it."""


def main() -> None:
    """Print the formats of the parts that the arguments name, or of all."""
    parts: dict[str, Callable[[Path], dict[str, Any]]] = {
        "records": records,
        "benchmarks": benchmarks,
        "pipeline": pipeline,
    }
    formats = {}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory(prefix="bezel-formats-") as folder:
            formats[name] = {key: shape(value) for key, value in parts[name](Path(folder)).items()}
    print(json.dumps({"formats": formats}))


def shape(value: object) -> dict[str, list[str]]:
    """Path of each field -> its types; positions of lists and keys that are data are one path, and null is no type."""
    paths: dict[str, set[str]] = {}
    for path, leaf in _fields(value, ""):
        paths.setdefault(path, {"field"}).update({leaf} - {"NoneType"})
    return {path: sorted(leaves) for path, leaves in sorted(paths.items())}


def _fields(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield path, "object"
        for key, inner in value.items():
            name = key if _NAME.fullmatch(key) and not path.endswith(_DATA) else "*"
            yield from _fields(inner, f"{path}.{name}")
            if key in _TOLD and isinstance(inner, str | int) and len(str(inner)) <= _LONGEST:
                yield f"{path}.{name}", f"= {inner}"
    elif isinstance(value, list):
        yield path, "list"
        for inner in value:
            yield from _fields(inner, f"{path}[]")
    else:
        yield path, "number" if type(value) in {int, float} else type(value).__name__


def records(folder: Path) -> dict[str, Any]:
    """What only a killed operation leaves: open changes, the job of a load, an upload under way."""
    runs = module("bezel.engine.run.record", "bezel.pulumi_engine.runs")
    changes = module("bezel.engine.events.open_changes", "bezel.pulumi_engine.recovery_plan")
    change = getattr(changes, "OpenChange", None) or changes.Change
    runs.LastRun(folder / "run").remember([change("urn:pulumi:dev::p::t::n", "creating", {"type": "t"})])
    jobs, uploads = module("bezel.bench_jobs.job_registry"), module("bezel.weights.transfer")
    with jobs.hold_record(jobs.JobRecord("p", "us-east4", "job", "gs://b/o", "run"), folder / "jobs"):
        job = next((folder / "jobs").iterdir()).read_text()
    uploads.Journal(folder / "uploads").keep(uploads.Entry("b/o", "hash", "1", "https://upload.example"))
    return {
        "open changes": json.loads((folder / "run" / "open").read_text()),
        "job of a load": json.loads(job),
        "upload": json.loads(next((folder / "uploads").iterdir()).read_text()),
    }


def pipeline(folder: Path) -> dict[str, Any]:
    """Reports of `bezel ci`, and what the steps of a pipeline leave in the bucket and in localcloud's folder."""
    from tests.support.gitops.pipeline import STACK, STATES, Pipeline

    made = Pipeline.small(folder)
    try:
        lock = folder / "lock.json"
        copy = (sys.executable, "-c", _COPY, STATES, f"locks%2Fsmall%2F{STACK}.json", str(lock))
        ended = made.bezel("ci", "lock", STACK, "--", *copy, **_RUN)
        if ended.code:
            raise SystemExit(ended.text)
        reports: dict[str, Any] = {"lock": json.loads(lock.read_text())}
        made.set("small:gpu", "nvidia-l4")
        made.commit()
        previews = [_report(made, "preview", STACK, code=3)]
        made.reset()
        previews.append(_report(made, "preview", STACK))
        for step in (("deploy", STACK), ("lock", STACK, "--show"), ("judge", STACK)):
            reports[f"report of ci {step[0]}"] = _report(made, *step)
        made.set("small:notes", {"first": "two"})
        made.commit()
        previews.append(_report(made, "preview", STACK))
        reports["report of ci preview"] = previews
        report = folder / "preview.json"
        report.write_text(json.dumps(previews[-1]))
        reports["report of ci drift"] = _report(made, "drift", STACK, code=4)
        reports["report of ci rehearse"] = _report(made, "rehearse", STACK, code=1)  # it is no stack of a plan
        further: tuple[tuple[str, ...], ...] = (
            ("changed", "--base", "HEAD~1"), ("expire",), ("examples",), ("comment", str(report)),
        )  # fmt: skip
        for line in further:
            reports[f"report of ci {line[0]}"] = _report(made, *line)
        for name in made.objects():
            if name.endswith(".json") and not name.startswith(".pulumi/history"):
                reports.setdefault(f"object {_without_marks(name)}", []).append(made.read(name))
        reports |= files_in(folder / "cloud", leave_out="objects contents")
    finally:
        made.stop()
    return reports


def _report(made: Any, *step: str, code: int = 0) -> Any:
    """The report of a step of `bezel ci`; a text where the checkout has no such step."""
    try:
        return made.report("ci", *step, code=code)
    except AssertionError as error:
        if "invalid choice" not in str(error):
            raise
        return "no such step"


def benchmarks(folder: Path) -> dict[str, Any]:
    """What the commands of `bezel bench` print as JSON and write, beside a simulated server."""
    sys.path.extend(map(str, Path.cwd().glob("packages/*/tests")))
    try:
        from simulated_vllm_support.process import simulated_vllm
    except ModuleNotFoundError:  # of a checkout whose packages have no tests of their own
        from tests.support.simulated_vllm.process import simulated_vllm  # type: ignore[no-redef]

    outputs: dict[str, Any] = {}
    results, links = folder / "results", folder / "links"
    results.mkdir()
    links.mkdir()
    with (
        simulated_vllm(folder / "first", serving_speed=100.0) as first,
        simulated_vllm(folder / "second", serving_speed=100.0) as second,
    ):
        for name, line in BENCHMARKS.items():
            arguments = line.replace("URL", first).replace("SECOND", second).split()
            outputs[f"output of bench {name}"] = _benchmark([name, *arguments], results, links)
            if name == "run":
                (results / "ok.json").write_text(json.dumps(_as_idle(outputs["output of bench run"])))
    return outputs | files_in(results) | files_in(links)


def _as_idle(result: dict[str, Any]) -> dict[str, Any]:
    """A result as an idle machine measures it; the commands that read one leave out the figures of a busy machine."""
    cells = [{**cell, "state": "ok", "reason": ""} for cell in result["cells"]]
    return {**result, "cells": cells}


def _benchmark(arguments: Sequence[str], results: Path, links: Path) -> Any:
    """Run `bezel bench WORDS` in the folder of results; links keep the journals, which it deletes at its end."""
    with tempfile.TemporaryFile("w+") as output:
        command = [str(Path(sys.executable).parent / "bezel"), "bench", *arguments]
        with subprocess.Popen(command, cwd=results, stdout=output) as running:
            until = time.monotonic() + SECONDS
            while running.poll() is None and time.monotonic() < until:
                for file in results.rglob("[!.]*"):
                    with contextlib.suppress(OSError):  # linked, deleted meanwhile, or a folder
                        (links / file.name).hardlink_to(file)
                time.sleep(0.02)
            running.kill()
        output.seek(0)
        text = output.read()
        if running.returncode not in {0, 1, 3, 4} or not text:
            raise SystemExit(f"bezel bench {' '.join(arguments)} ended with {running.returncode}, and printed {text!r}")
        return json.loads(text)


def files_in(folder: Path, *, leave_out: str = "") -> dict[str, Any]:
    """Name of each file below a folder that is JSON, or lines of JSON, -> its content; some subfolders are left out."""
    contents = {}
    for file in sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()):
        content = None if file.parts[0] in leave_out.split() else _json_of(folder / file)
        if content is not None:
            contents[f"file {_without_marks(str(file))}"] = content
    return contents


def _without_marks(name: str) -> str:
    """A name without the hashes and times of one run."""
    return re.sub(r"[0-9a-f]{13,}", "MARK", name)


def _json_of(file: Path) -> object:
    try:
        text = file.read_text()
        lines = [json.loads(line) for line in text.splitlines()] if not text.startswith(("{\n", "[\n")) else []
        return (lines if len(lines) > 1 else lines[0]) if lines else json.loads(text)
    except (UnicodeDecodeError, ValueError):
        return None


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()
