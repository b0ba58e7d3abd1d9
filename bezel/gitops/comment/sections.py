"""Section of a comment: one document, short enough for a phone, with its detail folded.

Owns the order (what judges, price, verdict, changes, refusals, the next step), the words, and the bound of what is
visible. Every text of a document is shown through `bezel_base.text.markdown`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bezel.gitops.comment.documents import Document, entries, mapping, texts
from bezel.gitops.comment.judge_lines import judge_detail, judge_lines
from bezel.gitops.judge.document import FIRST_DEPLOY
from bezel.planner.base.repairs import lowest_numbers
from bezel.resource_cost.price_line import (
    ARROW,
    beside_note,
    cost_of_json,
    missing_of,
    price_parts,
    region_parts,
    unpriced_problem,
)
from bezel_base.text.markdown import code, link, prose
from bezel_base.text.shell import shell_word

VISIBLE = {"preview": 1000, "rehearsal": 500, "deployment": 1000}
"""Most characters of a section that are visible without unfolding it."""
FOLDED = 8000
"""Most characters of a section's folded detail."""
ADVISORY = "advisory"
TRACEBACK = "Traceback (most recent call last):"
OPS = ("replace", "delete", "create", "update")  # what cannot be undone comes first
# Names for each operation and refusals that are shown: the first pair whose text is short enough.
_SHOWN = ((4, 3), (4, 2), (2, 2), (2, 1), (1, 1), (0, 1))
# Types that serve a model, and types that only prepare something.
_MAJOR = re.compile(r"cloudrunv2|cloudrun/|compute/instance|gcp:tpu|:Tpu|container/|vertex/", re.IGNORECASE)
_MINOR = re.compile(r"iam|projects/service|bucketObject|pulumi:providers|secretVersion|random:|docker:", re.IGNORECASE)
_REPAIR = re.compile(r"\bRepair:\s*(.+)", re.DOTALL)
_COUNT = re.compile(r"\b\d+ problems?\.$")
_NUMBER = re.compile(r"\n\n\d+\. ")
# One problem in its usual layout (bezel_base.errors): a key with its value, the consequence, the repair.
_PROBLEM = re.compile(r"(?P<head>[^\n]+ = [^\n]*)\n(?P<consequence>.+)\n\s*Repair: (?P<repair>[^\n]+)", re.DOTALL)


Changes = Mapping[str, Sequence[Mapping[str, Any]]]
"""Changed resources by operation."""


def section(document: Document, run_url: str = "") -> str:
    """The section of a document as Markdown, with a link to the run that wrote it."""
    kind = str(document["kind"])
    changes, refusals, judge = _changes(document), _refusals(document), judge_lines(document)
    for names, first in _SHOWN:
        refused = refusals[:first]
        refused += [f"- and {len(refusals) - first} more below"] if len(refusals) > first else []
        if kind == "rehearsal":
            lines = _rehearsal(document, run_url, refused)
        else:
            named = [*_settings(document, names), *_named_changes(changes, names)]
            lines = _change(document, run_url, changes, named, refused)
        visible = _text([*judge, *lines])
        if len(visible) <= VISIBLE[kind] + len(run_url) + len(_text(judge)):
            break
    detail = _detail(document, changes)
    return f"{visible}\n\n{detail}" if detail else visible


def _change(
    document: Document, run_url: str, changes: Changes, named: Sequence[str], refused: Sequence[str]
) -> list[str]:
    """A preview's or a deployment's lines."""
    price = mapping(document, "price")
    before, after = cost_of_json(price.get("before")), cost_of_json(price.get("after"))
    hourly, monthly, idle = (part.replace(ARROW, "→") for part in price_parts(before, after))
    regions, missing = region_parts(before, after), missing_of(before, after)
    unknown = (
        [f"Price unknown: {'; '.join(prose(item, 90) for item in missing[:2])}{_more(len(missing), 2)}"]
        if missing
        else []
    )
    return [
        f"**{hourly}**",
        f"{monthly}, {idle}{beside_note(after or before)}",
        *([", ".join(prose(part.replace(ARROW, "→"), 90) for part in regions)] if regions else []),
        *unknown,
        f"{_heading(document, run_url)}{_uncommitted_note(document)}; {_counts(document, changes)}",
        *([f"Address: {code(document['url'], 120)}"] if isinstance(document.get("url"), str) else []),
        *named,
        *refused,
        _next_step(document, changes, unpriced=bool(after and after.missing)),
    ]


def _rehearsal(document: Document, run_url: str, refused: Sequence[str]) -> list[str]:
    seconds = document.get("seconds")
    after = f" after {seconds:.0f} s" if isinstance(seconds, int | float) else ""
    lines = [f"{_heading(document, run_url)} on the embedded cloud{after}, without credentials"]
    lines += refused
    if document["verdict"] != "passed":
        command = f"bezel ci rehearse {shell_word(document['stack'])}"
        lines.append(f"**To repair:** run {code(command, 1000)} yourself, mend the cause and push.")
    return lines


def _heading(document: Document, run_url: str) -> str:
    log = f" ({link('log', run_url)})" if run_url else ""
    return f"{str(document['kind']).capitalize()}: **{prose(document['verdict'], 30)}**{log}"


def _uncommitted_note(document: Document) -> str:
    """What a verdict is about, where that is not the tree of a commit."""
    files = texts(document, "uncommitted")
    named = "".join(code(file, 30) for file in files[:1]) + _more(len(files), 1)
    return f" of a checkout with uncommitted changes ({named})" if files else ""


def _more(count: int, most: int) -> str:
    """How many are not shown."""
    return f" and {count - most} more" if count > most else ""


def _settings(document: Document, most: int) -> list[str]:
    """The changed keys of the stack's file, old and new, as one line."""
    changes = list(entries(document, "settings"))
    if not changes:
        return []
    named = ", ".join(_setting(row, 30) for row in changes[:most]) + _more(len(changes), most)
    return [f"- settings: {named if most else f'{len(changes)} changed'}"]


def _setting(row: Mapping[str, Any], longest: int) -> str:
    old, new = (prose(row.get(name, ""), longest) for name in ("old", "new"))
    return f"{code(row.get('key', ''), 40)} {old} → {new}"


def _changes(document: Document) -> Changes:
    """The changes of each operation, those of what serves a model first."""
    listed = mapping(document, "changes")
    return {op: sorted(entries(listed, op), key=lambda row: (_weight(row), str(row.get("name")))) for op in OPS}


def _weight(row: Mapping[str, Any]) -> int:
    token = str(row.get("type"))
    return 2 if _MINOR.search(token) else 0 if _MAJOR.search(token) else 1


def _counts(document: Document, changes: Changes) -> str:
    done = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
    deployed = document["verdict"] == "deployed"  # a deploy that stopped has planned them only
    counts = [f"{len(rows)} {done[op] if deployed else f'to {op}'}" for op, rows in changes.items() if rows]
    # A preview that failed may not have reached what changes.
    none = "changes unknown" if document["verdict"] == "failed" else "no changes"
    return ", ".join(counts) or none


def _named_changes(changes: Changes, names: int) -> list[str]:
    lines = []
    for op, rows in changes.items():
        if rows and names:
            named = [_format_name(row, paths=2 if op in ("update", "replace") else 0) for row in rows[:names]]
            lines.append(f"- {op} {', '.join(named)}{_more(len(rows), names)}")
    return lines


def _format_name(row: Mapping[str, Any], *, paths: int, longest: int = 40) -> str:
    name = code(row.get("name", ""), longest)
    listed = texts(row, "properties")
    if not paths or not listed:
        return name
    return f"{name} ({', '.join(code(path, longest) for path in listed[:paths])}{_more(len(listed), paths)})"


def _refusals(document: Document) -> list[str]:
    """What refuses or failed, each with its repair: a value once, however many resources have it or policies refuse."""
    values: dict[str, list[Mapping[str, Any]]] = {}
    for item in entries(document, "violations"):
        if item.get("level") != ADVISORY:
            message = str(item.get("message", ""))
            problem = _PROBLEM.fullmatch(message)
            values.setdefault(problem["head"] if problem else message, []).append(item)
    # What has no price is named beside the price.
    after = cost_of_json(mapping(document, "price").get("after"))
    beside = set(map(unpriced_problem, after.missing if after else ()))
    problems = [text for text in texts(document, "problems") if text not in beside]
    return [
        *map(_refusal, values.values()),
        *(f"- problem: {_with_repair(each)}" for text in problems for each in _single_problems(text)),
    ]


def _refusal(refused: Sequence[Mapping[str, Any]]) -> str:
    """The policies that refuse a value, the resources that have it, what each policy says, and the repair."""
    policies, resources = (_few(str(item.get(name, "")) for item in refused) for name in ("policy", "resource"))
    first, *others = dict.fromkeys(str(item.get("message", "")) for item in refused)
    sentences = [_parts(first)[0], *map(_consequence, others)]
    text = "; ".join(part.removesuffix(".") for part in sentences) + "."
    repairs = list(dict.fromkeys(repair for _, repair in map(_parts, (first, *others)) if repair))
    # Repairs that set the same number need one of them only: the one without alternatives.
    numbers = sorted((text for text in repairs if lowest_numbers([text])), key=len)
    repair = " ".join([text for text in repairs if text not in numbers] + numbers[:1])
    return f"- refused by {policies} ({resources}): {_shorten(text, repair)}"


def _single_problems(text: str) -> list[str]:
    """The problems that an error of several lists (bezel_base.errors), without its title; any other text alone."""
    title, *problems = _NUMBER.split(text)
    return problems if problems and _COUNT.search(title) else [text]


def _few(names: Iterable[str], most: int = 3) -> str:
    """Names as code, each once, and how many more there are."""
    once = list(dict.fromkeys(names))
    return ", ".join(code(name, 40) for name in once[:most]) + _more(len(once), most)


def _consequence(message: str) -> str:
    """The consequence of a problem in its usual layout, as one line."""
    problem = _PROBLEM.fullmatch(message)
    return " ".join(problem["consequence"].split()) if problem else message


def _with_repair(message: str) -> str:
    """A problem's text, with its repair set apart; both shortened."""
    return _shorten(*_parts(message))


def _parts(message: str) -> tuple[str, str]:
    """A problem's text as one line, and its repair, "" without one."""
    repair = _REPAIR.search(message)
    statement = message[: repair.start()] if repair else message
    lines = [line.strip() for line in statement.splitlines() if line.strip()]
    if TRACEBACK in lines:  # its last line says what happened
        lines = [*lines[: lines.index(TRACEBACK)], lines[-1]]
    # A message's lines are a value, then its consequence.
    joined = " ".join(line if line[-1] in ".:;," else f"{line}:" for line in lines[:-1])
    return " ".join([joined, *lines[-1:]]), repair[1] if repair else ""


def _shorten(text: str, repair: str) -> str:
    return prose(text, 180) + (f" **Repair:** {prose(repair, 130)}" if repair else "")


def _next_step(document: Document, changes: Changes, *, unpriced: bool) -> str:
    verdict = document["verdict"]
    if document["kind"] == "deployment":
        deployed = verdict in ("deployed", "unchanged")
        return "**Done.**" if deployed else "**To repair:** see the run's log, mend the cause, run the deploy again."
    if verdict == "allowed":
        if texts(document, "uncommitted"):
            return "**To deploy:** commit the changes; this verdict was not saved."
        judge = mapping(document, "judge")
        if texts(judge, "changes") and judge.get(FIRST_DEPLOY) is not True:
            return "**To deploy:** approve and merge. The deploy stops until its owner has approved what judges, too."
        if not any(changes.values()):
            return "**Nothing to deploy.**"
        return "**To deploy:** approve and merge. The deploy previews again and stops at any difference."
    if verdict == "refused" and unpriced:
        return (
            "**To repair:** choose hardware with a price, or add the row with its source to the price list; then push."
        )
    if verdict == "refused":
        return "**To repair:** change what is named above and push. Limits are raised by their owner."
    return "**To repair:** mend the cause and push. The run's log has the rest."


def _text(lines: Iterable[str]) -> str:
    """Paragraphs and lists: Markdown needs an empty line before and after a list, and a break inside a paragraph."""
    text, previous = "", ""
    for line in lines:
        is_item, was_item = line.startswith("- "), previous.startswith("- ")
        if previous:
            text += "\n" if is_item and was_item else "\n\n"
        text += line
        previous = line
    return text


def _detail(document: Document, changes: Changes) -> str:
    """The folded part: all changes, advice, fit, quota, remaining messages; empty without any of these."""
    kept: list[str] = []
    length = 0
    for line in _detail_lines(document, changes):
        length += len(line) + 1
        if length > FOLDED:
            kept.append("- and more: see the run's log")
            break
        kept.append(line)
    if not kept:
        return ""
    return "\n".join(["<details><summary>All changes and messages</summary>", "", *kept, "", "</details>"])


def _detail_lines(document: Document, changes: Changes) -> Iterator[str]:
    yield from judge_detail(document)
    for row in entries(document, "settings"):
        yield f"- setting {_setting(row, 80)}"
    for op, rows in changes.items():
        for row in rows:
            yield f"- {op} {_format_name(row, paths=8, longest=80)} {code(row.get('type', ''), 80)}"
    for item in entries(document, "violations"):
        word = "advice of" if item.get("level") == ADVISORY else "refused by"
        policy, resource = code(item.get("policy", ""), 40), code(item.get("resource", ""), 60)
        yield f"- {word} {policy} ({resource}): {prose(item.get('message', ''), 600)}"
    if isinstance(document.get("fit"), str):
        yield f"- fit: {prose(document['fit'], 300)}"
    for name, heading, longest in (("quota", "quota", 200), ("problems", "problem", 600), ("notes", "note", 300)):
        for text in texts(document, name):
            yield f"- {heading}: {prose(text, longest)}"
