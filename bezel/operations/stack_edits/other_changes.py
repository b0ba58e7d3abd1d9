"""Changes of a deploy besides the setting that was asked for: file or program differ from the last deploy. Pure."""

from collections.abc import Iterable

from bezel.operations.changes.plan import PlannedChange
from bezel.outside_changes.rollback import ANNOTATION as ROLLBACK

# These run again whenever the service has a new revision.
_FOLLOWING = ("AddressCheck", "HealthCheck", "ShortBenchmark", "TrafficSwitch")
# The provider names them with every change of a template that has an annotation or a label.
_WITH_ANY = ("template.annotations", "template.labels")
_RECORD = f'annotations["{ROLLBACK}"]'
# Any deploy ends a rollback, which its preview says.
_OF_ROLLBACK = ("annotations", "effectiveAnnotations", "traffics")


def other_changes(changes: Iterable[PlannedChange], *paths: str) -> tuple[str, ...]:
    """A warning that names the resources which change otherwise; () where there is none.

    Args:
        changes: Planned changes.
        paths: Paths of the properties that are meant to change, with all below them.
    """
    others = [
        change.name
        for change in changes
        if not change.type.endswith(_FOLLOWING)
        and not (
            change.op == "update" and all(_is_within(path, _meant_paths(change, paths)) for path in change.properties)
        )
    ]
    if not others:
        return ()
    return (f"file or program have changed since the last deploy: it changes {', '.join(others)} otherwise too",)


def _meant_paths(change: PlannedChange, paths: Iterable[str]) -> tuple[str, ...]:
    """Paths of what is meant to change with a resource."""
    return (*paths, *_WITH_ANY, *(_OF_ROLLBACK if _RECORD in change.properties else ()))


def _is_within(path: str, parents: Iterable[str]) -> bool:
    """Whether a property is one of these or below one: `labels.team` or `labels["team"]`."""
    return any(path == parent or path.startswith((f"{parent}.", f"{parent}[")) for parent in parents)
