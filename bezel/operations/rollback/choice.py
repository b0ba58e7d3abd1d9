"""Choice of the revision that a rollback moves the traffic to. Pure.

A check is known to have passed by the stack's state, which keeps every revision that passed (bezel_smoke.health); Cloud
Run itself knows only whether a revision once became ready. The last one is the newest that is older than what serves,
and that no earlier rollback has left, since that was for a fault.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezel.diagnosis.revision_traffic import shares
from bezel.leases.clock import unix
from bezel.outside_changes.rollback import Rollback, left_by
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.text.shell import shell_word

_MOST_NAMED = 8


@dataclass(frozen=True)
class Choice:
    """What a rollback does.

    Attributes:
        target: Short name of the revision that gets the traffic; "" where there is nothing to do.
        summary: What is done, or why nothing is.
        warnings: What is not known of the revision.
    """

    target: str
    summary: str
    warnings: tuple[str, ...] = ()


def choose(
    stack: str,
    service: Mapping[str, Any],
    revisions: Sequence[Mapping[str, Any]],
    passed: Sequence[str],
    pin: Rollback | None,
    to: str | None,
    region: str | None = None,
) -> Choice:
    """The revision that a rollback moves the traffic to.

    Args:
        stack: Name of the stack, for repairs.
        service: The service in run v2's description.
        revisions: Its revisions.
        passed: Short names of the revisions that are known to have passed their check.
        pin: The rollback in force; None without one.
        to: Short name of the revision that the caller names; None for the last one that passed.
        region: Region that the caller names, for repairs.

    Raises:
        UserError: No revision can be chosen.
    """
    by_name = {short(each.get("name")): each for each in revisions}
    serving = shares(service)
    if not serving:
        raise UserError(
            Problem(f"stack {stack}", None, "no revision serves, so there is none to roll back from.", _deploy(stack))
        )
    if to is not None:
        return _choice_by_name(stack, by_name, serving, passed, to)
    if pin is not None:
        further = f"`{rollback_command(stack, region)} --to REVISION` moves it to another one"
        return Choice("", f"nothing to do, the traffic is {pin.sentence()} already; {further}")
    newest = short(service.get("latestCreatedRevision"))
    if len(serving) == 1 and newest not in serving:
        (one,) = serving
        further = f"to leave {one} too: `{rollback_command(stack, region)} --to REVISION`"
        return Choice("", f"nothing to roll back, {one} serves and the newest, {newest}, gets no traffic; {further}")
    last = max(serving, key=lambda name: _age(by_name.get(name, {}), name))
    older = sorted(
        (name for name in by_name if _age(by_name[name], name) < _age(by_name.get(last, {}), last)),
        key=lambda name: _age(by_name[name], name),
    )
    left = left_by(service)
    able = [name for name in older if name in passed and name not in left and is_ready(by_name[name])]
    if not able:
        raise UserError(_none_known(stack, by_name, older, passed, left, last, region))
    skipped = older[older.index(able[-1]) + 1 :]
    again = [name for name in skipped if name in left]
    unknown = [name for name in skipped if name not in left]
    notes = [f"passed over, as an earlier rollback has left them: {_some(again)}"] if again else []
    notes += [f"passed over, as no check that they passed is known: {_some(unknown)}"] if unknown else []
    return Choice(able[-1], f"{_moves(serving)} to {able[-1]}, the last revision that passed its check", tuple(notes))


def is_ready(revision: Mapping[str, Any]) -> bool:
    """Whether a revision became ready, so that it can get traffic."""
    return any(
        each.get("type") == "Ready" and each.get("state") == "CONDITION_SUCCEEDED"
        for each in revision.get("conditions") or ()
    )


def short(name: object) -> str:
    """The last part of a resource's name."""
    return str(name or "").rpartition("/")[2]


def _choice_by_name(
    stack: str, by_name: Mapping[str, Mapping[str, Any]], serving: Mapping[str, int], passed: Sequence[str], to: str
) -> Choice:
    able = [name for name in by_name if is_ready(by_name[name]) and serving.get(name) != 100]
    others = f"choose one of {', '.join(able[:_MOST_NAMED])}." if able else _deploy(stack)
    if to not in by_name:
        raise UserError(Problem("--to", to, "the service has no such revision.", others))
    if serving == {to: 100}:
        return Choice("", f"nothing to do, {to} has all traffic already")
    if not is_ready(by_name[to]):
        raise UserError(Problem("--to", to, "it never became ready, so it cannot serve.", others))
    unknown = (f"{to}: no check that it passed is known",) if to not in passed else ()
    return Choice(to, f"{_moves(serving)} to {to}", unknown)


def _moves(serving: Mapping[str, int]) -> str:
    return "move the traffic from " + " and ".join(
        name if percent == 100 else f"{name} ({percent} %)" for name, percent in serving.items()
    )


def _none_known(
    stack: str,
    by_name: Mapping[str, Mapping[str, Any]],
    older: Sequence[str],
    passed: Sequence[str],
    left: Sequence[str],
    last: str,
    region: str | None,
) -> Problem:
    able = [name for name in older if is_ready(by_name[name]) and name not in left]
    again = [name for name in older if is_ready(by_name[name]) and name in left]
    gone = [name for name in passed if name not in by_name]
    parts = [f"{last} serves, and no earlier revision is known to have passed its check"]
    if not older and not gone:
        parts = [f"{last} serves, and the service has no earlier revision"]
    never = [name for name in older if not is_ready(by_name[name])]
    rows = {
        "deleted since": gone,
        "of no known check": able,
        "left by an earlier rollback": again,
        "not ready": never,
    }
    parts += [f"{what}: {_some(names)}" for what, names in rows.items() if names]
    repair = _deploy(stack)
    if able or again:
        one = shell_word((able or again)[-1])
        repair = f"name one yourself: `{rollback_command(stack, region)} --to {one}`, or {_deploy(stack)}"
    return Problem(f"stack {stack}", NOT_SET, f"{'; '.join(parts)}.", repair)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[-_MOST_NAMED:])


def rollback_command(stack: str, region: str | None) -> str:
    """The command of a rollback of the same service, without the revision."""
    return f"bezel rollback {shell_word(stack)}" + (f" --region {shell_word(region)}" if region else "")


def _deploy(stack: str) -> str:
    file = f"Pulumi.{stack}.yaml"
    return f"restore an earlier {file} (`git log -- {shell_word(file)}`), then `bezel deploy {shell_word(stack)}`."


def _age(revision: Mapping[str, Any], name: str) -> tuple[float, str]:
    return unix(revision.get("createTime")) or float("inf"), name
