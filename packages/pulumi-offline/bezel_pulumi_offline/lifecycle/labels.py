"""Labels and annotations: the program's own, the provider's, and those of other writers.

`labels` are the program's own, `pulumiLabels` those with the provider's defaults and its attribution,
`effectiveLabels` all that Google has; only the last is sent. Annotations are the same without an attribution. The
properties are those of the groups `labels` and `annotations` (resources/data/groups.json).
"""

from collections.abc import Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.values import UNKNOWN, Properties, unknown


def add_labels(
    planned: Properties, prior: Mapping[str, Any] | None, defaults: Mapping[str, str], attribution: Mapping[str, str]
) -> None:
    """Complete the planned labels and annotations in place.

    Args:
        planned: The planned properties, with the program's own labels.
        prior: The outputs so far, or None on a create.
        defaults: The provider's default labels.
        attribution: The provider's attribution label; added at creation and then retained, never added later.
    """
    if "effectiveLabels" in planned:
        marked = (
            attribution if prior is None or attribution.items() <= (prior.get("pulumiLabels") or {}).items() else {}
        )
        own_entries = planned.get("labels")
        if unknown(own_entries):
            planned["pulumiLabels"] = planned["effectiveLabels"] = UNKNOWN
        else:
            labels = {**defaults, **(own_entries or {}), **marked}
            planned["pulumiLabels"] = labels or ({} if prior else UNKNOWN)
            planned["effectiveLabels"] = _with_others(labels, prior, "effectiveLabels", "pulumiLabels")
    if "effectiveAnnotations" in planned and not unknown(planned.get("annotations")):
        own_entries = planned.get("annotations") or {}
        planned["effectiveAnnotations"] = _with_others(own_entries, prior, "effectiveAnnotations", "annotations")


def _with_others(entries: Mapping[str, str], prior: Mapping[str, Any] | None, every: str, own_part: str) -> Any:
    """Return the stack's own entries and those of other writers; unknown before the resource exists."""
    if prior is None:
        return dict(entries) if entries else UNKNOWN
    others = {key: value for key, value in (prior.get(every) or {}).items() if key not in (prior.get(own_part) or {})}
    return {**others, **entries}


def show_labels(outputs: Properties, prior: Mapping[str, Any], *, fresh: bool) -> None:
    """Complete the outputs in place: the program's and the provider's own parts of the labels that Google has."""
    for every, parts in (("effectiveLabels", ("labels", "pulumiLabels")), ("effectiveAnnotations", ("annotations",))):
        for part in parts if every in outputs else ():
            before = prior.get(part)
            keys = before if isinstance(before, Mapping) else {}
            # A key that was deleted at Google stays with an empty value, unless no label is left there.
            shown = {key: outputs[every].get(key, "") for key in keys} if outputs[every] else {}
            outputs[part] = None if fresh and not shown and before is None and part != "pulumiLabels" else shown
