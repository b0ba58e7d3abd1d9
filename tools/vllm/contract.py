"""Contract tests of the simulated vLLM against a real one, and the table of both.

    .venv/bin/python -m tools.vllm.contract FOLDER [--only NAME ...] [--record]

FOLDER holds a real vLLM and a tiny Gemma 4: `venv/bin/vllm`, `models/tiny-gemma4` and
`models/tiny-gemma4-assistant`. For each configuration the server is started once, the tests of that configuration run
against it, and it is stopped; `starts` starts servers that fail, `bench` runs `vllm bench serve` against the simulated
server, `generated` compares the answers to generated requests, `clients` those to requests as clients send them. The
samples are those of one release; a real server of another is compared with the simulated server of that release by
`bench`, `generated` and `clients`. `--record` writes `tests/results/vllm-contract.json` and those of the others; with
`--only` it uses the last runs of the others. Every wait has a limit.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.loopback.listeners import free_port
from simulated_vllm_support.contract_report import NOT_RUN, RESULTS, Outcome, table
from simulated_vllm_support.samples import SAMPLES_RELEASE
from simulated_vllm_support.servers import CONFIGURATIONS
from tools.vllm.real_server import command, end_at_exit, environment, installed_release, log_file, until_healthy
from tools.vllm.vllm_bench import BENCH, bench_against_simulated

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "packages" / "simulated-vllm" / "tests"

# Servers in the order in which they are started, each with the configurations that it is tested as.
SERVERS = {"plain": ["plain", "plain-dead"], "small": ["small", "small-dead"], "keyed": ["keyed"], "mtp": ["mtp"]} | {
    "parsers": ["parsers"]
}
# What else is run: starts that fail, the load client, generated requests.
FURTHER = ("starts", "bench", "generated", "clients")
# What is compared with the simulated server alone, and so runs on any release.
_OF_ANY_RELEASE = ("bench", "generated", "clients")
_MODULES_OF = {"generated": "tools.vllm.generated_requests", "clients": "tools.vllm.releases.compare"}
_MODULES = [str(TESTS / f"test_contract{part}.py") for part in ("", "_http", "_metrics", "_refusals", "_starts")]
_TEST_SECONDS = 1800
# The responses of a server whose engine died are tested too.
_KEPT_ALIVE = {"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1"}


def main() -> int:
    """Run the requested configurations; exit status 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=[*SERVERS, *FURTHER], default=[])
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    release = installed_release(folder)
    has_samples = release == SAMPLES_RELEASE
    chosen = options.only or ([*SERVERS, *FURTHER] if has_samples else [*_OF_ANY_RELEASE])
    if not has_samples and (unknown := [name for name in chosen if name not in _OF_ANY_RELEASE]):
        raise SystemExit(f"the samples are of vLLM {SAMPLES_RELEASE}, not of {release}: leave out {', '.join(unknown)}")
    names = [*itertools.chain(*SERVERS.values()), "starts"]
    differs = 0
    for name in chosen:
        if name == "starts":
            _pytest(name, _real_environment(folder) | {"BEZEL_VLLM_URL": "none"})
        elif name == "bench":
            wrong = bench_against_simulated(folder, _real_environment(folder), release)
            print("bench:", wrong or "the same keys, nothing failed", flush=True)
            outcome = {"test": "bench", "outcome": "failed" if wrong else "passed", "explained": None}
            _report("bench").write_text(json.dumps(outcome) + "\n", encoding="utf-8")
        elif name in _MODULES_OF:
            record = ["--record"] if options.record and (has_samples or name == "clients") else []
            line = [sys.executable, "-m", _MODULES_OF[name], str(folder), *record]
            differs |= subprocess.run(line, cwd=ROOT, timeout=_TEST_SECONDS, check=False).returncode
        else:
            _server(folder, name)
    real = _outcome([*names, "bench"])
    print(
        f"real vLLM: {real.count_passed} passed, {len(real.failed_tests)} failed",
        *real.failed_tests,
        sep="\n  ",
        flush=True,
    )
    if options.record and has_samples:
        _pytest("simulated", {})
        stamp = {
            "commit": subprocess.run(
                ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip(),
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": f"vLLM {release} on {platform.machine()} (CPU), tiny Gemma 4",
        }
        bench = ["`vllm bench serve`", 1, int(real.tests.get("bench", False)), NOT_RUN, BENCH]
        text = json.dumps(table(_outcome(["simulated"]), real, stamp, bench), indent=1, ensure_ascii=False)
        RESULTS.write_text(text + "\n", encoding="utf-8")
    return 1 if real.failed_tests or differs else 0


def _report(name: str) -> Path:
    """The file for the results of a run of the tests."""
    return log_file(f"vllm-contract-{name}.jsonl")


def _outcome(names: list[str]) -> Outcome:
    """The results of the last runs of these configurations."""
    result = Outcome()
    for name in names:
        if _report(name).exists():
            result.add(_report(name))
    return result


def _server(folder: Path, name: str) -> None:
    """Start one real server and run the tests of its configurations."""
    port, log = free_port(), log_file(f"vllm-contract-{name}.log")
    line = command(folder, port, CONFIGURATIONS[name].arguments)
    environment = _real_environment(folder)
    with (
        log.open("w") as out,
        end_at_exit(subprocess.Popen(line, env=environment, stdout=out, stderr=out, start_new_session=True)) as process,
    ):
        answers = until_healthy(process, port, log)
        for configuration in SERVERS[name]:
            variables = environment | {
                "BEZEL_VLLM_URL": f"http://127.0.0.1:{port}",
                "BEZEL_VLLM_STARTUP": " ".join(answers),
                "BEZEL_VLLM_ENGINE_PID": str(_worker(process.pid)),
            }
            _pytest(configuration, variables)


def _worker(group: int) -> int:
    """The computing process of the server's group: its death is the engine's."""
    result = subprocess.run(
        ["pgrep", "-g", str(group), "-f", "VLLM::Worker"], capture_output=True, text=True, check=False
    )
    return int(result.stdout.split()[0]) if result.stdout.split() else 0


def _real_environment(folder: Path) -> dict[str, str]:
    model = {"BEZEL_VLLM_MODEL": str(folder / "models" / "tiny-gemma4")}
    return environment(folder) | _KEPT_ALIVE | model | {"BEZEL_VLLM_PROGRAM": str(folder / "venv/bin/vllm")}


def _pytest(name: str, environment: dict[str, str]) -> None:
    """Run the contract's tests."""
    report = _report(name)
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=300"]
    modules = [TESTS / "test_start.py", *_MODULES] if name == "simulated" else _MODULES
    subprocess.run(
        [*command, *map(str, modules)],
        cwd=ROOT,
        env=os.environ | environment | {"BEZEL_VLLM_CONFIGURATION": name, "BEZEL_VLLM_REPORT": str(report)},
        timeout=_TEST_SECONDS,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
