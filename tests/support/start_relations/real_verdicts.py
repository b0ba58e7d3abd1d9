"""Verdicts of a real vLLM's classes on cases, as recorded, beside those of the plan and of the simulated server.

Cases are those of the table of relations, and further ones in tests/fixtures/further_starts.toml: of the same form,
under relations that need no row of the table. What differs is explained in tools/vllm/starts/explanations.toml:

    [[difference]]
    relation = "connector"        # of the cases
    who = ["plan"]                # plan, simulated
    says = "refused"              # what they say, and the real one does not
    reason = "stricter: ..."
"""

from __future__ import annotations

import collections
import functools
import json
import tomllib
from typing import TYPE_CHECKING, Any

from tests.support.start_relations.cases import ROOT, Case, cases, plan_case, start_case

if TYPE_CHECKING:
    from pathlib import Path

FURTHER = ROOT / "tests" / "fixtures" / "further_starts.toml"
RECORDED = ROOT / "tests" / "start_relations" / "data" / "real-0.32.0.json"
EXPLAINED = ROOT / "tools" / "vllm" / "starts" / "explanations.toml"
TABLE = ROOT / "tests" / "results" / "starts-compared.json"
JUDGES = ("plan", "simulated")


@functools.cache
def further_cases() -> tuple[Case, ...]:
    """Return the cases that are in no row of the table; `refused` is the real vLLM's verdict."""
    rows = tomllib.loads(FURTHER.read_text(encoding="utf-8"))
    return tuple(Case(relation, **row) for relation, case_rows in rows.items() for row in case_rows)


def all_cases() -> tuple[Case, ...]:
    """Return the further cases, then those of the table."""
    return (*further_cases(), *cases())


@functools.cache
def recorded_verdicts() -> dict[str, dict[str, str]]:
    """Return what the real vLLM's classes said, by the id of the case."""
    rows = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {row["case"]: row for row in rows}


def judge_cases(chosen: tuple[Case, ...], folder: Path) -> dict[str, dict[str, bool]]:
    """Return for each case whether the plan, and the simulated server, refuses it.

    Args:
        chosen: the cases.
        folder: where `seed_models` wrote the models.
    """
    return {
        case.id: {"plan": bool(plan_case(case)[1]), "simulated": start_case(case, folder) is not None}
        for case in chosen
    }


@functools.cache
def explanations() -> tuple[dict[str, Any], ...]:
    """Return the rows of the file of explanations."""
    return tuple(tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))["difference"])


def explanation(case: Case, who: str, verdict: dict[str, str], *, refuses: bool) -> str | None:
    """Return why a judge and the real vLLM differ, "" where they do not, and None where nobody explained it.

    Args:
        case: what was judged.
        who: plan or simulated.
        verdict: the real one's.
        refuses: what that judge says.
    """
    if verdict["verdict"] == "not judged" or refuses == (verdict["verdict"] == "refused"):
        return ""
    says = "refused" if refuses else "taken"
    for row in explanations():
        if row["relation"] == case.relation and who in row["who"] and row["says"] == says:
            return str(row["reason"])
    return None


def table(
    compared_cases: tuple[Case, ...], verdicts: dict[str, dict[str, bool]], stamp: dict[str, str]
) -> dict[str, Any]:
    """Return the comparison as a table of the documents.

    Args:
        compared_cases: recorded cases.
        verdicts: what plan and simulated server say of them.
        stamp: of the real one's run.
    """
    recorded_rows = recorded_verdicts()
    reasons = {
        who: collections.Counter(
            explanation(case, who, recorded_rows[case.id], refuses=verdicts[case.id][who]) for case in compared_cases
        )
        for who in JUDGES
    }
    count = collections.Counter(recorded_rows[case.id]["verdict"] for case in compared_cases)
    return {
        "title": "vLLM: starts on a GPU and a TPU",
        "document": "fidelity",
        "order": 32,
        "about": f"{len(compared_cases)} cases of {len({case.relation for case in compared_cases})} relations between "
        "arguments, model, processor, tokenizer, device and host, taken through a real vLLM 0.32.0's own classes "
        "with the published configurations of Gemma 4 and no weights: parser, configuration, tokenizer and processor, "
        "the model's layers "
        "with their attention and quantisation, layout of the cache, scheduler, routes. GPUs of capability 8.9, 12.0 "
        f"are stood in for, TPUs up to the processor. The real classes refuse {count['refused']}, accept "
        f"{count['accepted']} and cannot judge {count['not judged']} for want of a kernel or a package.",
        "command": ".venv/bin/python -m tools.vllm.starts.compare PYTHON MODEL --record",
        "stamp": stamp,
        "columns": ["judge", "compared", "equal", "explained"],
        "rows": [
            [who, len(compared_cases), found_of[""], sum(number for reason, number in found_of.items() if reason)]
            for who, found_of in reasons.items()
        ],
        "notes": [
            {
                "what": f"{who}, {number} of {len(compared_cases)}",
                "why": reason,
                "evidence": EXPLAINED.relative_to(ROOT).as_posix(),
            }
            for who, found_of in reasons.items()
            for reason, number in sorted((reason, number) for reason, number in found_of.items() if reason)
        ],
    }
