"""Remove one thing from the source, run the tests, and record which of them fails.

    .venv/bin/python -m tools.mutation.mutate --area provider [--only GLOB] [--jobs 2] [--list] [--record]

Works on copies of the commit, never in the checkout. The test that failed for a mutant is stored in
`tests/results/mutants/`, by the content of the mutated file, and is committed: an interrupted run continues where it
stopped, on any machine, and after a change only the mutants that it affects run again, beginning with the test that
failed before. `--fresh` runs all of them. `--record` writes `tests/results/mutations.json` when every area has been
run. Exit status 1 if a mutant survives without an excuse in `areas.py`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime as dt
import fnmatch
import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.mutation.areas import AREAS, Area
from tools.mutation.mutants import Mutant, mutants

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "results" / "mutations.json"
MEMORY = RESULTS.parent / "mutants"
SECONDS = 600
# Number of tests that are tried before all of them are run.
FIRST = 12
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> int:
    """Run one area, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", choices=[*AREAS, "all"], default="all")
    parser.add_argument("--only", default="*", help="a pattern that 'file: name' of a mutant must match")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name the mutants, run nothing")
    parser.add_argument("--fresh", action="store_true", help="run what was noticed before, too")
    parser.add_argument("--record", action="store_true", help="write the table of all areas")
    options = parser.parse_args()
    names = list(AREAS) if options.area == "all" else [options.area]
    alive = 0
    for name in names:
        mutants = [mutant for mutant in _of(AREAS[name]) if fnmatch.fnmatchcase(_title(mutant), options.only)]
        if options.list:
            print(*map(_title, mutants), sep="\n")
            continue
        alive += _run(name, mutants, options.jobs, fresh=options.fresh)
    if options.record:
        _record()
    return 1 if alive else 0


def _title(mutant: Mutant) -> str:
    return f"{mutant.file}: {mutant.name}"


def _of(area: Area) -> list[Mutant]:
    listed = _git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    files = [file for file in listed if any(fnmatch.fnmatchcase(file, pattern) for pattern in area.files)]
    return [mutant for file in files for mutant in mutants(file, _git("show", f"HEAD:{file}"), area.kinds)]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _run(name: str, mutants: list[Mutant], jobs: int, *, fresh: bool) -> int:
    """Run the mutants of an area that no test has detected yet; return how many survive without an excuse."""
    area, memory = AREAS[name], Memory(name, fresh=fresh)
    left = [
        mutant for mutant in mutants if memory.noticing_test(mutant) is None and area.excuse(_title(mutant)) is None
    ]
    print(f"{name}: {len(mutants)} mutants, {len(left)} to run", flush=True)
    if left:
        with _copies(jobs) as copies:
            place = copies.get()
            if failure := _whole(place, area.tests):
                raise SystemExit(f"the tests fail already without a mutant: {failure}")
            copies.put(place)
            _run_all(left, area, memory, copies, jobs)
        memory.tidy(_of(area))
    alive = [
        mutant for mutant in mutants if memory.noticing_test(mutant) is None and area.excuse(_title(mutant)) is None
    ]
    for mutant in alive:
        print(f"  lives: {_title(mutant)}")
    print(f"{name}: {len(mutants) - len(alive)} of {len(mutants)} noticed or excused", flush=True)
    return len(alive)


def _run_all(left: list[Mutant], area: Area, memory: Memory, copies: queue.Queue[Path], jobs: int) -> None:
    def one(mutant: Mutant) -> tuple[Mutant, str | None]:
        place = copies.get()
        try:
            return mutant, _try(place, mutant, area.tests, _first(mutant, area, memory))
        finally:
            copies.put(place)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, (mutant, test) in enumerate(pool.map(one, left), 1):
            memory.remember(mutant, test)
            print(f"  {number}/{len(left)} {_title(mutant)} -> {test or 'LIVES'}", flush=True)


def _try(place: Path, mutant: Mutant, tests: tuple[str, ...], first: list[str]) -> str | None:
    """The test that detects the mutant."""
    file = place / mutant.file
    original = file.read_text()
    file.write_text(mutant.source)
    try:
        return (_tests(place, first, whole=False) if first else None) or _whole(place, tests)
    finally:
        file.write_text(original)


def _whole(place: Path, tests: tuple[str, ...]) -> str | None:
    """The first of all tests that fails: a fast one detects most mutants."""
    fast = _tests(place, [*tests, "-m", "not slow"], whole=True)
    return fast or _tests(place, [*tests, "-m", "slow"], whole=True)


def _tests(place: Path, tests: list[str], *, whole: bool) -> str | None:
    """The first of the tests that fails, None if none does; `whole`: all of them are known to exist."""
    # The configuration of the root: the tests of one package alone would be named from their package's folder.
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-q", "-x", "--tb=no", "--no-header"]
    command += ["-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(place), "HYPOTHESIS_STORAGE_DIRECTORY": str(place / ".hypothesis")}
    # A session of its own: processes that a mutant leaves running end with its tests.
    with subprocess.Popen(
        [*command, "--timeout", "60", *tests],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            printed, _ = run.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "the time limit"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    if run.returncode == 1:
        failure = _FAILED.search(printed)
        return failure[1] if failure else "a failure without a name"
    # A conftest that cannot be imported ends pytest with 4, as does a missing test: the next run distinguishes them.
    return "the import of the tests" if run.returncode in {2, 3} or (run.returncode == 4 and whole) else None


class Memory:
    """The test that detected each mutant of an area, stored between runs by the mutated file's content."""

    def __init__(self, area: str, *, fresh: bool) -> None:
        self._file = MEMORY / f"{area}.json"
        earlier: dict[str, str] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._known = {} if fresh else earlier
        self._before = {key.rpartition(" #")[0]: test for key, test in earlier.items()}

    def noticing_test(self, mutant: Mutant) -> str | None:
        """The test that failed."""
        return self._known.get(self._key(mutant))

    def before(self, mutant: Mutant) -> list[str]:
        """The tests that detected the same mutant in an earlier state of its file."""
        return [self._before[_title(mutant)]] if _title(mutant) in self._before else []

    def near(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """The tests that detected others of its file, the last first, and those that detected all the others."""
        detections = [(key.partition(":")[0], test) for key, test in reversed(self._known.items())]
        return [test for place, test in detections if place == mutant.file], [test for _, test in detections]

    def remember(self, mutant: Mutant, test: str | None) -> None:
        """Store the result at once."""
        self._known.pop(self._key(mutant), None)
        if test is not None:
            self._known[self._key(mutant)] = test
        self._write()

    def tidy(self, mutants: list[Mutant]) -> None:
        """Remove mutants that do not exist any more; sort the others in the order of the source."""
        self._known = {self._key(mutant): test for mutant in mutants if (test := self.noticing_test(mutant))}
        self._write()

    def _write(self) -> None:
        MEMORY.mkdir(exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self._known, indent=1, ensure_ascii=False) + "\n")
        new.replace(self._file)

    @staticmethod
    def _key(mutant: Mutant) -> str:
        return f"{_title(mutant)} #{hashlib.sha256(mutant.source.encode()).hexdigest()[:12]}"


def _first(mutant: Mutant, area: Area, memory: Memory) -> list[str]:
    """Tests to begin with: those that detected it before, those named after its file, those that detected most others.

    A test with parameters is taken with all of them: another one may detect this mutant.
    """
    near, others = memory.near(mutant)
    named = [
        str(file.relative_to(ROOT))
        for folder in area.tests
        for file in sorted((ROOT / folder).rglob(f"test_*{Path(mutant.file).stem}*.py"))
    ]
    tests_first = [*memory.before(mutant), *near[:2], *named, *_common(near), *_common(others)]
    functions = dict.fromkeys(test.partition("[")[0] for test in tests_first if ".py" in test)
    return [test for test in functions if (ROOT / test.partition("::")[0]).exists()][:FIRST]


def _common(tests: list[str]) -> list[str]:
    return [test for test, _ in Counter(tests).most_common(FIRST)]


@contextlib.contextmanager
def _copies(number: int) -> Iterator[queue.Queue[Path]]:
    """Copies of the commit."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        places: queue.Queue[Path] = queue.Queue()
        for index in range(number):
            place = Path(folder) / str(index)
            place.mkdir()
            archive = subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x"], cwd=place, stdin=archive.stdout, check=True)
            if archive.wait(timeout=SECONDS):
                raise SystemExit("git archive failed: is this a checkout with a commit?")
            (place / ".venv").symlink_to(ROOT / ".venv")
            places.put(place)
        yield places


def _record() -> None:
    rows: list[list[Any]] = []
    notes = []
    for name, area in AREAS.items():
        memory, mutants = Memory(name, fresh=False), _of(area)
        excused = [(mutant, why) for mutant in mutants if (why := area.excuse(_title(mutant)))]
        lives = {_title(mutant) for mutant, _ in excused}
        noticed = [test for mutant in mutants if _title(mutant) not in lives and (test := memory.noticing_test(mutant))]
        rows.append([area.about, len(mutants), len(noticed), len(excused), len(mutants) - len(noticed) - len(excused)])
        notes += [
            {"what": _title(mutant), "why": why, "evidence": "tools/mutation/areas.py"} for mutant, why in excused
        ]
    stamp = {
        "commit": _git("rev-parse", "--short", "HEAD").strip(),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
    }
    table = {
        "title": "Mutations: each rule removed in turn",
        "document": "fidelity",
        "order": 90,
        "about": "A rule is taken out of the source and the tests are run: a named test has to fail.",
        "command": ".venv/bin/python -m tools.mutation.mutate --record",
        "stamp": stamp,
        "columns": ["what is removed", "mutants", "noticed by a named test", "excused", "alive"],
        "rows": rows,
        "notes": notes,
    }
    RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
