"""What a run does without, as each of its workers would pay for it.

It reads only the test modules that it can want: importing all of them costs seconds. And it looks for garbage seldom,
and never among what was imported and collected, which stays to the end: 300,000 objects. And each worker begins with
its share of the runs of the engine, which take up to two minutes: what is left for the end is short.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.mark.expression import Expression
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from execnet import XSpec

# How long an example takes says how busy the machine is. Each run draws other examples, and one that has failed is
# stored and tried first in the next.
settings.register_profile("busy", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

gc.disable()  # until all is collected: what is imported stays

# httpx asks for it with each request, and each time all folders of the path are searched.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

# A shell without job control lets what it starts in the background ignore an interrupt, and all that it starts in turn:
# tests that interrupt something would wait for what never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does the same with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

WHOLE_ENGINE = Path(__file__).parent / "tests" / "e2e"
WORKER_FORKS = Path(__file__).parent / "tests" / "support" / "worker_forks"
SLOW = ("slow", "wide", "long")
FAST = "not slow"
# The selections of the Makefile's recipes that leave out marks, and those that want a mark.
WITHOUT = {FAST: SLOW, "not wide and not long": ("wide", "long")}
WITH = {"wide and not long": "wide", "long and not clients and not gitops": "long"}
SELECTIONS = (*WITHOUT, *WITH)
# Of a table of cases `make check` tries so many, the first and the last, and `make test` the others.
QUICK_CASES = 2
NO_PROXY = ("127.0.0.1", "localhost", "::1", ".invalid")
# Key of a message that has a test's name alone: it has passed.
PASSED = "bezel passed"
# Where Linux keeps files in memory, and how much has to be free there; the fast tests write a tenth of it.
MEMORY, LEAST_MEMORY = Path("/dev/shm"), 2**30  # noqa: S108 - only the parent of pytest's own folder


@cache
def prepare_run(config: pytest.Config) -> None:
    """Set what holds for all tests of this process, before the first; fixtures of each test would take seconds in all.

    A screen that breaks no sentence, which tests look for in what commands print. The one of pytest itself stays. And
    folders of their own for runs of pytest that a test starts: at its end each would clear away what earlier runs of
    this user left, for minutes where those were whole ones. No colours where a person forces them, and no proxy on the
    way to servers of this machine, or to none: with a SOCKS proxy httpx makes no client, for this machine neither.
    """
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        reporter._tw.fullwidth = reporter._tw.fullwidth
    os.environ["COLUMNS"] = "1000"
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(config._tmp_path_factory.getbasetemp())
    os.environ.pop("FORCE_COLOR", None)
    proxies = {name for name in os.environ if name.lower() in {"http_proxy", "https_proxy", "all_proxy"}}
    for name in proxies:
        if os.environ[name].startswith("socks"):
            del os.environ[name]
    if proxies:
        direct = ",".join(filter(None, (os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), *NO_PROXY)))
        os.environ |= dict.fromkeys(("no_proxy", "NO_PROXY"), direct)


def pytest_configure(config: pytest.Config) -> None:
    """Keep in memory what the fast tests write, where there is room: they would wait for the disk 3,000 times."""
    if config.option.markexpr == FAST and MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        memory = os.statvfs(MEMORY)
        if memory.f_bavail * memory.f_frsize >= LEAST_MEMORY and not memory.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list["XSpec"]) -> None:
    """Let one process collect, of which the workers are forks; not where this file is a copy in another folder."""
    if WORKER_FORKS.is_dir():
        from tests.support.worker_forks.group import use_forks

        use_forks(config, specs)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the recipes' `-m` would deselect anyway, as far as a module's text tells."""
    wanted = config.option.markexpr
    if wanted not in SELECTIONS or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if wanted in WITH:
        return f"mark.{WITH[wanted]}" not in text or None
    # In the folder of the engine's runs every test is slow, whatever its module says.
    if wanted == FAST and WHOLE_ENGINE in collection_path.parents:
        return True
    marks = tuple(f"pytestmark = {bracket}pytest.mark.{mark}" for bracket in ("", "[") for mark in WITHOUT[wanted])
    return any(line.startswith(marks) for line in text.splitlines()) or None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Mark the cases of a table, and make no item of one that the selection leaves out: it is made 13,000 times.

    Wide is what `wide_except` and `wide_cases` tell so. Slow is what a table of fast cases has beside its quick ones:
    10,000 of 16,000 tests are such cases.
    """
    yield
    cases = metafunc._calls
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if WHOLE_ENGINE in metafunc.definition.path.parents:
        marks.add("slow")
    for name, is_wide in (("wide_cases", True), ("wide_except", False)):
        mark = metafunc.definition.get_closest_marker(name)
        for case in cases if mark else ():
            if any(fnmatchcase(case.id, each) for each in mark.args) is is_wide:
                case.marks.append(pytest.mark.wide.mark)
    fast = [case for case in cases if not marks.union(mark.name for mark in case.marks) & set(SLOW)]
    quick = {(len(fast) - 1) * place // (QUICK_CASES - 1) for place in range(QUICK_CASES)}
    for place, case in enumerate(fast):
        if place not in quick:
            case.marks.append(pytest.mark.slow.mark)
    wanted = metafunc.config.option.markexpr
    if wanted in SELECTIONS and not any("[" in name for name in metafunc.config.args):
        # A test without any case would be one without parameters.
        cases[:] = [
            case for case in cases if is_selected(wanted, frozenset(marks.union(mark.name for mark in case.marks)))
        ] or cases[:1]


@cache
def is_selected(selection: str, marks: frozenset[str]) -> bool:
    """Whether a selection has a test with these marks, of which what is wide or long is slow as well."""
    all_marks = marks | ({"slow"} if marks & set(SLOW) else set())
    return Expression.compile(selection).evaluate(lambda name, **_: name in all_marks)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark as slow what is for a wider or longer run."""
    if item.get_closest_marker("wide") or item.get_closest_marker("long"):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send two short messages of a test that passes, not six long ones, which take two milliseconds.

    Whoever asks for durations or for a report in XML needs the set-up's and the end's reports as well.
    """
    prepare_run(item.config)
    option = item.config.option
    if (
        not hasattr(item.config, "workerinput")
        or option.markexpr not in SELECTIONS
        or option.durations
        or option.xmlpath
    ):
        return None
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    has_passed = all(report.passed for report in reports)
    for report in reports:
        if report.when == "call" or not report.passed:
            if has_passed:
                report.keywords = {PASSED: item.nodeid}
            item.ihook.pytest_runtest_logreport(report=report)
    if not has_passed:  # of a test that has passed, the receiver knows it by its report
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report: pytest.CollectReport | pytest.TestReport) -> dict[str, object] | None:
    """The message of a test that has passed: its name."""
    return {PASSED: report.nodeid} if PASSED in getattr(report, "keywords", ()) else None


@pytest.hookimpl(tryfirst=True)
def pytest_report_from_serializable(config: pytest.Config, data: dict[str, str]) -> pytest.TestReport | None:
    """The report of a test that has passed, and the end of its protocol, by which the terminal shows the progress."""
    if PASSED not in data:
        return None
    nodeid = data[PASSED]
    location = (nodeid.partition("::")[0], None, nodeid)
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
    return pytest.TestReport(nodeid, location, keywords={}, outcome="passed", longrepr=None, when="call")


@pytest.hookimpl(trylast=True)  # what is deselected is gone by then
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the runs of the engine out to the workers: of the items in their order, each begins with an equal part.

    The runs of a module follow one another in one worker, which deploys once what they share.
    """
    here = f"{WHOLE_ENGINE}{os.sep}"
    long = [item for item in items if str(item.path).startswith(here)]
    short = [item for item in items if not str(item.path).startswith(here)]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

    def part(of: list[pytest.Item], worker: int) -> list[pytest.Item]:
        return of[len(of) * worker // workers : len(of) * (worker + 1) // workers]

    items[:] = [item for worker in range(workers) for item in (*part(long, worker), *part(short, worker))]


def pytest_collection_finish() -> None:
    """Leave out of every search for garbage what stays to the end of the run."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()
