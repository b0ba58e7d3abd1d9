"""A change made outside of the program, a setting that could not be read, and both together."""

from dataclasses import dataclass
from typing import Literal

from bezel_base.errors import format_value

Kind = Literal["access", "cost", "rollback"]
NOT_SET = "not set"
_MEANING: dict[Kind, str] = {"access": "changes who has access", "cost": "costs money", "rollback": "a rollback"}


@dataclass(frozen=True)
class OutsideChange:
    """A live setting that differs from its declaration, or that nothing declares.

    Attributes:
        resource: What has it, e.g. `service llm`.
        setting: Its name in Google's API, e.g. `scaling.minInstanceCount`.
        cloud: Its live value.
        program: Its declared value, `not set` without one.
        kind: Whether it changes who has access, costs money, or is a rollback, which the next deploy ends.
        repair: What to do.
    """

    resource: str
    setting: str
    cloud: str
    program: str
    kind: Kind
    repair: str

    def line(self) -> str:
        """The change as a sentence, without its repair."""
        cloud, program = format_value(self.cloud), format_value(self.program)
        what = f"{format_value(self.resource)}: {format_value(self.setting)}: cloud {cloud}, program {program}"
        return f"{what} ({_MEANING[self.kind]})"


@dataclass(frozen=True)
class NotJudged:
    """Settings that could not be read: nothing says whether they were changed.

    Attributes:
        what: The settings.
        permission: Permission that reads them.
        why: Google's words, or what was missing.
        denied: Whether the permission is missing.
    """

    what: str
    permission: str
    why: str
    denied: bool = False

    def line(self) -> str:
        """The settings and the reason as a sentence."""
        if self.denied:
            return f"{format_value(self.what)}: not judged, the permission {self.permission} is missing"
        return f"{format_value(self.what)}: not judged, {format_value(self.why)}"


@dataclass(frozen=True)
class Findings:
    """What was found; with neither a change nor an unread setting, live and declared settings are the same."""

    changes: tuple[OutsideChange, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()
