"""Tables of a report: the summary side by side, findings, failed checks, failures, cells, manifests."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from bezel_base.text.counting import format_count
from bezel_bench.load.plan import GENERATING
from bezel_bench.report.charts.html import plain
from bezel_bench.report.figure import Table
from bezel_bench.report.format import STATES, UNKNOWN, number, percent, shorten, span
from bezel_bench.report.load_figures import COST, OFFERED, THROUGHPUT
from bezel_bench.report.series import Spot, Subject
from bezel_bench.result.document import Check, Result

_FIGURES = (THROUGHPUT, "ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "goodput", COST)
_INPUT_RATE = "input_tokens_per_second"
_COMPUTED = ("requests_per_second", _INPUT_RATE, "e2e_p50", "e2e_p99", "goodput")
"""Figures of embeddings, classes and ranks in place of those of generated tokens."""
_UNITS = {
    **dict.fromkeys((THROUGHPUT, _INPUT_RATE), "tokens/s"),
    **dict.fromkeys(("requests_per_second", "goodput"), "requests/s"),
    COST: "USD",
}
_LONG = 300
_FULL = ("saturated", "queueing", "client_limited")


def has_output(spot: Spot) -> bool:
    """Whether a load may have figures of generated tokens; embeddings, classes and ranks have none."""
    return any(not cell.load or cell.load["target"]["endpoint"] in GENERATING for cell in spot.every)


def throughput_of(spot: Spot) -> float | None:
    """Return the tokens a second by which loads are compared: of outputs, or of inputs where none is generated."""
    return spot.value(THROUGHPUT if has_output(spot) else _INPUT_RATE)


def _names(subjects: Sequence[Subject]) -> tuple[str, ...]:
    """Return the figures of a summary: those of generated tokens where any load may have them."""
    return _FIGURES if any(has_output(spot) for subject in subjects for spot in subject.spots) else _COMPUTED


def best(subject: Subject) -> Spot | None:
    """Return the ok load with the highest throughput among the loads found sufficient; None where there is none.

    Sufficient are knees with an observed plateau behind them, and the highest load within limits.
    """
    named = {
        (finding.numbers.get("context_tokens"), finding.numbers.get("users"))
        for finding in subject.result.findings
        if finding.name == "knee"
    }
    within = {finding.numbers.get("highest") for finding in subject.result.findings if finding.name == "highest_load"}
    return _highest(
        spot for spot in _good(subject) if (spot.context, spot.load) in named or spot.load in within - {None}
    )


def representative_load(subject: Subject) -> tuple[Spot | None, str]:
    """Return the load that represents a server, and a note on a best one; no load where none is ok."""
    if spot := best(subject):
        return spot, _where(spot)
    spot = _highest(_good(subject))
    if spot is None:
        return None, "no load is ok"
    single_load = len({other.load for other in subject.spots}) == 1
    return spot, "none named: one load was measured" if single_load else "none named: no plateau was seen"


def measured_load(subject: Subject) -> Spot | None:
    """Return the load that a page shows figures of: the representative one, else the highest throughput of a full load.

    An overloaded server has true figures too, and one behind a limited client; a failed load has none to rely on.
    """
    spot, _ = representative_load(subject)
    full = (spot for spot in subject.spots if spot.state in _FULL and throughput_of(spot) is not None)
    return spot or _highest(full)


def _good(subject: Subject) -> list[Spot]:
    return [spot for spot in subject.spots if spot.state == "ok" and throughput_of(spot) is not None]


def _highest(spots: Iterable[Spot]) -> Spot | None:
    return max(spots, key=lambda spot: throughput_of(spot) or 0.0, default=None)


def summary(subjects: Sequence[Subject]) -> Table:
    """Return each server at one load: a column a server, so that many figures and few servers fit on a page."""
    shown = _names(subjects)
    columns = [_summary_column(subject, shown) for subject in subjects]
    heads = [f"{name}, {_UNITS.get(name, 'ms')}" for name in shown]
    names = ["kind", "model", "hardware", "best load", "figures at", *heads, "failed requests"]
    rows = [[name, *(column[place] for column in columns)] for place, name in enumerate(names)]
    note = (
        "Best load: the ok one of the highest throughput, of the knees behind which a plateau was seen, or the highest "
        "within limits. Without one the figures are at the highest throughput that was measured, which more load may "
        "exceed; of a server without an ok load they are those of a load in the state named. Failed requests are "
        "over all loads of a server."
    )
    return Table("Summary", ["server", *(subject.label for subject in subjects)], rows, note)


def _summary_column(subject: Subject, shown: Sequence[str]) -> list[str]:
    (_, named), spot = representative_load(subject), measured_load(subject)
    about = subject.result.manifest
    chips = f"{about.platform.chips} x " if about.platform.chips and about.platform.chips > 1 else ""
    hardware = f"{chips}{about.platform.accelerator}" if about.platform.accelerator else UNKNOWN
    figures = [UNKNOWN if spot is None else number(spot.value(name)) for name in shown]
    requests, failed = _count_requests(subject.spots)
    share = f"{number(failed)} of {number(requests)} ({percent(failed / requests)})" if requests else "none sent"
    where = "none" if spot is None else _where(spot) + ("" if spot.state == "ok" else f" ({STATES[spot.state]})")
    return [subject.result.nature, about.model, hardware, named, where, *figures, share]


def side_by_side(subjects: Sequence[Subject]) -> Table | None:
    """Return the loads that several servers have in common; None where there are none."""
    loads: dict[tuple[int, int, float, str, str, int], dict[str, Spot]] = {}
    for subject in subjects:
        for spot in subject.spots:
            if spot.load is not None:
                key = (spot.context or 0, spot.output or 0, spot.load, spot.unit, spot.every[0].prompts, spot.stage)
                loads.setdefault(key, {})[subject.label] = spot
    common = {key: spots for key, spots in loads.items() if len(spots) > 1}
    if not common:
        return None
    rows, shown = [], _names(subjects)
    for key in sorted(common):
        for label, spot in common[key].items():
            figures = [number(spot.value(name)) for name in shown]
            rows.append(
                [_where(spot), label, STATES[spot.state], *figures, f"{spot.failed_requests} of {spot.requests}"]
            )
    heads = [f"{name}, {_UNITS.get(name, 'ms')}" for name in shown]
    return Table("Side by side, at equal loads", ["load", "server", "state", *heads, "failed"], rows)


def findings(results: Sequence[Result]) -> list[str]:
    """Return the results' own findings, each with its result's title where there are several."""
    several = len(results) > 1
    return [
        f"{result.manifest.title}: {text}" if several else text for result in results for text in _finding_texts(result)
    ]


def _finding_texts(result: Result) -> list[str]:
    """Order a result's findings, knees last: a sweep has one for each context. A map lists a surface's omissions."""
    of_contexts = ("knee", "no_plateau")
    first = [finding.text for finding in result.findings if finding.name not in (*of_contexts, "excluded")]
    return [*first, *result.notes, *(finding.text for finding in result.findings if finding.name in of_contexts)]


def fired_checks(subjects: Sequence[Subject]) -> Table | None:
    """Return the checks that did not pass, failed ones first; equal ones once, with their loads."""
    groups: dict[tuple[str, str, str, str], list[tuple[Spot, Check]]] = {}
    for subject in subjects:
        for spot in subject.spots:
            for check in (check for cell in spot.every for check in cell.checks if check.state != "passed"):
                # Texts with figures of one cell differ from cell to cell: the first of a kind represents all.
                text = check.text if check.state == "unknown" else ""
                groups.setdefault((check.state, check.name, subject.label, text), []).append((spot, check))
    order = {"failed": 0, "suspect": 1, "unknown": 2}
    rows = []
    for (state, name, label, _), entries in sorted(groups.items(), key=lambda one: (order[one[0][0]], *one[0][1:])):
        # The text has the arithmetic in words; the numbers by their internal names are in the JSON document.
        text = shorten(plain(entries[0][1].text), _LONG)
        rows.append([state, name.replace("_", " "), label, _places([spot for spot, _ in entries]), text])
    note = "A failed check fails its cell. Of several equal ones the first is shown."
    head = ["state", "check", "server", "loads", "result"]
    return _lone(Table("Checks that did not pass", head, rows, note), subjects) if rows else None


def checks_summary(subjects: Sequence[Subject]) -> str:
    """Return how many checks were made, by their state."""
    counts = Counter(check.state for subject in subjects for cell in subject.cells for check in cell.checks)
    if not counts:
        return "No check was made."
    return ", ".join(f"{counts[state]} {state}" for state in ("passed", "failed", "suspect", "unknown")) + "."


def failures(subjects: Sequence[Subject]) -> Table | None:
    """Return the failed requests by kind, with the text of one of each; None where none failed."""
    rows = []
    for subject in subjects:
        kinds: Counter[str] = Counter()
        examples: dict[str, str] = {}
        for cell in subject.cells:
            kinds.update(cell.failures)
            examples = cell.failure_examples | examples
        requests, _ = _count_requests(subject.spots)
        for kind, count in kinds.most_common():
            example = shorten(plain(examples.get(kind, "")), _LONG)
            rows.append([subject.label, kind, number(count), percent(count / requests), example])
    head = ["server", "kind", "requests", "share of all", "example"]
    return _lone(Table("Failed requests by kind", head, rows), subjects) if rows else None


def odd_cells(subjects: Sequence[Subject]) -> Table | None:
    """Return the loads that are not ok, and the reason; loads with the same reason together."""
    groups: dict[tuple[str, str, str], list[Spot]] = {}
    for subject in subjects:
        for spot in subject.spots:
            for cell in (cell for cell in spot.every if cell.state != "ok"):
                groups.setdefault((subject.label, STATES[cell.state], cell.reason), []).append(spot)
    rows = [
        [label, state, _places(spots), shorten(plain(reason), _LONG)]
        for (label, state, reason), spots in groups.items()
    ]
    table = Table("Loads that are not ok", ["server", "state", "loads", "reason"], rows)
    return _lone(table, subjects) if rows else None


def all_cells(subjects: Sequence[Subject]) -> Table:
    """Return every load with its figures and intervals."""
    open_loop = any(spot.value(OFFERED) is not None for subject in subjects for spot in subject.spots)
    offered = [OFFERED] if open_loop else []
    rates = (*offered, "requests_per_second")
    names: tuple[str, ...] = (THROUGHPUT, *rates, "ttft_p50", "ttft_p99", "tpot_p50", "itl_p50", "e2e_p50")
    if _names(subjects) is _COMPUTED:
        names = (*rates, _INPUT_RATE, "e2e_p50", "e2e_p99")
    rows = []
    for subject in subjects:
        for spot in subject.spots:
            row = [subject.label, _where(spot), STATES[spot.state], str(len(spot.every))]
            for name in names:
                figure = spot.figure(name)
                ends = span(figure.low, figure.high) if figure else ""
                row.append(f"{number(figure.value)}{f' ({ends})' if ends else ''}" if figure else UNKNOWN)
            rows.append([*row, f"{spot.failed_requests} of {spot.requests}"])
    units = dict.fromkeys((THROUGHPUT, _INPUT_RATE), "tokens/s") | dict.fromkeys(rates, "requests/s")
    heads = [f"{name}, {units.get(name, 'ms')}" for name in names]
    note = "In brackets the 95 % interval of one run, or the least and the most of several repeats."
    head = ["server", "load", "state", "runs", *heads, "failed"]
    return _lone(Table("Every load", head, rows, note), subjects)


def manifest(result: Result) -> Table:
    """Return the model, engine, hardware, place and price of the run."""
    about = result.manifest
    served, place, client = about.served_by, about.platform, about.client
    tls = "on" if client.tls else "off"
    rows: list[tuple[str, object]] = [
        ("kind", f"{result.kind}, {result.nature}"),
        ("model", about.model),
        ("checkpoint", about.checkpoint),
        ("url", about.url),
        ("image", served.image),
        ("digest", served.digest),
        ("vLLM", served.vllm_version),
        ("arguments", None if served.arguments is None else shlex.join(served.arguments)),
        ("max_model_len", served.max_model_len),
        ("max_num_seqs", served.max_num_seqs),
        ("KV cache", served.kv_cache_dtype),
        *((f"arguments of {name}", None if arm.arguments is None else shlex.join(arm.arguments))
          for name, arm in result.variants.items()),
        ("accelerator", place.accelerator),
        ("chips of one instance", place.chips),
        ("revision or lease", place.revision or place.lease),
        ("instances", place.instances),
        ("concurrency", place.concurrency),
        ("region", place.region),
        ("price", None if about.price.usd_per_hour is None else f"{number(about.price.usd_per_hour)} USD per hour"),
        ("price as of", about.price.as_of),
        ("price by", about.price.source),
        (
            "client",
            f"bezel {client.bezel}, Python {client.python}, {format_count(client.workers, 'workers')}, TLS {tls}",
        ),
        ("client's machine", f"{client.machine.cores} cores, {client.machine.cpu}, {client.machine.kernel}"),
        ("started at", about.started_at.isoformat(timespec="seconds")),
        ("seed", about.seed),
        ("command", shlex.join(about.command) or None),
        ("samples", f"{result.samples.file}, SHA-256 {result.samples.sha256}" if result.samples else "none kept"),
    ]  # fmt: skip
    texts = [[name, UNKNOWN if value is None else str(value)] for name, value in rows]
    return Table(about.title, ["what", "value"], texts)


def _lone(table: Table, subjects: Sequence[Subject]) -> Table:
    """Return the table without the column that names the server, where there is only one."""
    if len(subjects) > 1:
        return table
    place = table.head.index("server")
    rows = [[*row[:place], *row[place + 1 :]] for row in table.rows]
    return replace(table, head=[name for name in table.head if name != "server"], rows=rows)


def _where(spot: Spot) -> str:
    context = "" if spot.context is None else f", context {number(spot.context)}"
    return f"{spot.load_text}{context}{'' if spot.output is None else f', output {number(spot.output)}'}"


def _places(spots: list[Spot]) -> str:
    names = list(dict.fromkeys(_where(spot) for spot in spots))
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _count_requests(spots: Iterable[Spot]) -> tuple[int, int]:
    counted = [(spot.requests, spot.failed_requests) for spot in spots]
    return sum(sent for sent, _ in counted), sum(failed for _, failed in counted)
