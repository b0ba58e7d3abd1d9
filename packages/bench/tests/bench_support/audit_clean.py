"""Clean results in every format that the audit reads: simulated, with realistic noise, and nothing wrong with them.

A case is what an author would hand in together: one sweep, several systems, repeats, a pair with and without drafts, a
study of the prefix cache, claims. Files are kept as data until they are written, so that a fault can be put into them.
"""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import yaml

from bench_support.audit_documents import DOCUMENTS, claims
from bench_support.audit_server import Load, Served, measure, noisy, some_server
from bench_support.writers.formats import FORMATS
from bench_support.writers.requests import closed_load, open_load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTEXTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
Cells = list[dict[str, str]]


@dataclass
class File:
    """One file: rows of a CSV, or a JSON document."""

    name: str
    rows: Cells = field(default_factory=list)
    document: Any = None
    yaml: bool = False

    def text(self) -> str:
        """What is written."""
        if self.yaml:
            return yaml.safe_dump(self.document, sort_keys=False)
        if self.document is not None:
            return json.dumps(self.document)
        out = io.StringIO()
        writer = csv.DictWriter(out, list(self.rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()


@dataclass
class Case:
    """What is audited together, and of which system it is."""

    kind: str
    files: list[File]
    served: Served

    def write(self, folder: Path) -> list[Path]:
        """The files, written."""
        paths = []
        for file in self.files:
            paths.append(folder / file.name)
            paths[-1].write_text(file.text(), encoding="utf-8")
        return paths


def clean_case(seed: int, kind: str | None = None) -> Case:
    """A clean case; the same seed gives the same."""
    dice = random.Random(seed)  # noqa: S311 - simulated
    name = kind or dice.choice(list(KINDS))
    return KINDS[name](dice)


def label_of(served: Served, dice: random.Random) -> str:
    """A file's name for a system, as people name them."""
    encoding = {"w4a16": "qat", "fp8": "fp8", "bf16": "bf16"}[served.model.encoding]
    drafts = "-mtp" if served.draft_tokens else ""
    platform = "tpu" if served.tpu else "gce" if served.chips > 1 else dice.choice(("cloud-run", "gce"))
    date = dice.choice(("", f"_2026-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"))
    return f"{served.label}-{served.size}-{encoding}{drafts}_{platform}{date}"


def axes(dice: random.Random) -> tuple[list[int], list[int]]:
    """Contexts and users of a sweep."""
    contexts = sorted(dice.sample(CONTEXTS, dice.randint(4, 9)))
    users = sorted({1, *dice.sample(USERS, dice.randint(4, 8))})
    return contexts, users


def sweep(served: Served, contexts: list[int], users: list[int], output: int, dice: random.Random) -> list[Load]:
    """Every cell, with this run's noise."""
    spread = dice.choice((0.002, 0.01, 0.03))
    return [noisy(measure(served, context, user, output), dice, spread) for context in contexts for user in users]


def grid_rows(loads: list[Load], dice: random.Random, *, tokens: bool = False) -> Cells:
    """A plain grid: a value, its unit, the success and the state; what took too long timed out and says so."""
    digits, limit = dice.choice((1, 2, 2, 3)), dice.choice((120.0, 600.0, 3600.0))
    longest = dice.choice((8192, 16384 + 4096, 32768))
    rows = []
    for load in loads:
        state = "skipped" if load.context + load.output > longest else "timeout" if load.e2e > limit else "ok"
        value = load.rate * load.output if tokens else load.rate
        success = "100" if dice.random() < 0.97 else "99"
        rows.append(
            {
                "context_tokens": str(load.context),
                "users": str(load.users),
                "value": f"{value:.{digits}f}" if state == "ok" else "",
                "unit": "generated tok/s" if tokens else "req/s",
                "success_pct": success if state == "ok" else "",
                "status": state,
            }
        )
    return rows


def _grid(dice: random.Random) -> Case:
    served = some_server(dice)
    output = dice.choice((16, 64, 100, 128, 256))
    loads = sweep(served, *axes(dice), output, dice)
    rows = grid_rows(loads, dice, tokens=dice.random() < 0.3)
    return Case("grid", [File(f"{label_of(served, dice)}.csv", rows)], served)


def _systems(dice: random.Random) -> Case:
    """Several systems over one grid, of one output length."""
    contexts, users = axes(dice)
    servers = [some_server(dice) for _ in range(dice.randint(2, 4))]
    files = []
    for number, served in enumerate(servers):
        name = label_of(served, dice)
        files.append(File(f"{name}_{number}.csv", grid_rows(sweep(served, contexts, users, 128, dice), dice)))
    return Case("systems", files, servers[0])


def _repeats(dice: random.Random) -> Case:
    """One system measured several times, each in a file, or as repeats in one."""
    served = some_server(dice)
    contexts, users = axes(dice)
    times = dice.randint(2, 4)
    label = label_of(served, dice)
    runs = [grid_rows(sweep(served, contexts, users, 128, dice), dice) for _ in range(times)]
    if dice.random() < 0.5:
        return Case("repeats", [File(f"{label}_run{number}.csv", rows) for number, rows in enumerate(runs)], served)
    together = [row | {"repeat": str(number)} for number, rows in enumerate(runs) for row in rows]
    return Case("repeats", [File(f"{label}.csv", together)], served)


def rich_rows(loads: list[Load], served: Served, dice: random.Random, prompts: str = "unique") -> Cells:
    """A table with everything: lengths, rates of tokens, latencies, the system in columns of its own."""
    rows = []
    for load in loads:
        cached = round(load.context * served.cached)
        rows.append(
            {
                "hardware": served.label,
                "model": served.model.hub_id or served.model.id,
                "context_tokens": str(load.context),
                "users": str(load.users),
                "output_tokens": str(load.output),
                "requests_per_second": f"{load.rate:.4g}",
                "output_tokens_per_second": f"{load.rate * load.output:.5g}",
                "ttft_ms": f"{load.ttft * 1e3:.5g}",
                "tpot_ms": f"{load.tpot * 1e3:.4g}",
                "e2e_ms": f"{load.e2e * 1e3:.6g}",
                "prompts": prompts,
                "cached_tokens": str(cached),
                "completed": str(max(100, 10 * load.users)),
                "speculation": f"mtp {served.draft_tokens}" if served.draft_tokens else "none",
                "status": "ok",
            }
        )
    del dice
    return rows


def _rich(dice: random.Random) -> Case:
    served = some_server(dice)
    loads = sweep(served, *axes(dice), dice.choice((32, 128, 256)), dice)
    return Case("rich", [File(f"{label_of(served, dice)}.csv", rich_rows(loads, served, dice))], served)


def _prefix(dice: random.Random) -> Case:
    """A study of the prefix cache that says so and tells what was cached."""
    served = replace(some_server(dice), cached=dice.uniform(0.5, 0.97))
    loads = sweep(served, *axes(dice), 128, dice)
    rows = rich_rows(loads, served, dice, "shared_prefix")
    return Case("prefix", [File("prefix-cache-study.csv", [row | {"study": "prefix cache"} for row in rows])], served)


def with_drafts(served: Served, dice: random.Random) -> Served:
    """The same system with drafts."""
    return replace(served, draft_tokens=dice.choice((2, 3, 4)), acceptance=dice.uniform(0.4, 0.85))


def _pair(dice: random.Random) -> Case:
    """With and without drafts, long answers, the length declared or visible."""
    served = some_server(dice)
    contexts, users = axes(dice)
    files = []
    for one in (served, with_drafts(served, dice)):
        loads = sweep(one, contexts, users, dice.choice((128, 256)), dice)
        files.append(File(f"{label_of(one, dice)}-{one.draft_tokens}.csv", rich_rows(loads, one, dice)))
    return Case("pair", files, served)


def _claims(dice: random.Random) -> Case:
    served, other = some_server(dice), some_server(dice)
    return Case("claims", [File("claims.json", document=claims(served, other, dice))], served)


def _document(kind: str) -> Callable[[random.Random], Case]:
    def make_case(dice: random.Random) -> Case:
        served = some_server(dice)
        if dice.random() < 0.5:
            served = with_drafts(served, dice)
        return Case(kind, [File("run.json", document=DOCUMENTS[kind](served, dice))], served)

    return make_case


def _client_file(kind: str) -> Callable[[random.Random], Case]:
    """A file as that client's own source writes it, of simulated requests of one server."""

    def make_case(dice: random.Random) -> Case:
        form, seed, varied = FORMATS[kind], dice.randint(0, 10**9), dice.random() < 0.5
        if form.closed_only or dice.random() < 0.5:
            load = closed_load(seed, users=dice.choice((1, 4, 16)), rounds=dice.randint(8, 30), varied=varied)
        else:
            load = open_load(seed, rate=dice.uniform(0.5, 20), count=dice.randint(50, 500), varied=varied)
        return Case(f"{kind} file", [File("run.txt", document=form.write(load), yaml=form.yaml)], some_server(dice))

    return make_case


KINDS: dict[str, Callable[[random.Random], Case]] = {
    "grid": _grid,
    "systems": _systems,
    "repeats": _repeats,
    "rich": _rich,
    "prefix": _prefix,
    "pair": _pair,
    "claims": _claims,
    **{kind: _document(kind) for kind in DOCUMENTS},
    **{f"{kind} file": _client_file(kind) for kind in FORMATS},
}
