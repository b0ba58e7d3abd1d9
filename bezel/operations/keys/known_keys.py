"""Refusals of ids and teams that no key of a door has, with those that there are. Pure."""

from collections.abc import Mapping
from typing import NoReturn

from bezel_base.errors import Problem, UserError
from bezel_catalog import closest
from bezel_door.key_file import Key

_MOST = 20


def no_key(keys: Mapping[str, Key], identifier: str, otherwise: str = "") -> NoReturn:
    """Refuse an id; `otherwise` is what may be named in its place.

    Raises:
        UserError: Always.
    """
    raise UserError(Problem("ID", identifier, "the door has no such key.", _choose(keys, identifier, otherwise)))


def no_team(keys: Mapping[str, Key], team: str) -> NoReturn:
    """Refuse a team.

    Raises:
        UserError: Always.
    """
    teams = {key.team for key in keys.values() if key.team}
    raise UserError(
        Problem("--team", team, "the door has no key of this team.", _choose(teams, team, "the ID of a key"))
    )


def _choose(names: Mapping[str, Key] | set[str], name: str, otherwise: str) -> str:
    if not names:
        return "`bezel keys create STACK` makes one."
    near = closest(name, names)
    listed = sorted(names)[:_MOST]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    instead = f", or name {otherwise}" if otherwise else ""
    return (f"did you mean {near}? " if near else "") + f"choose one of {', '.join(listed)}{more}{instead}."
