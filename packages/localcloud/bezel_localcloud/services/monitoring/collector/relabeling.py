"""Relabelling of scraped series, with the actions that Google's sidecar accepts. Pure.

Source: prometheus/prometheus, model/relabel/relabel.go, and `convertRelabelingRule` of run-gmp-sidecar (read
2026-11-29). Patterns are RE2's and match whole texts, as Prometheus has them.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bezel_localcloud.core.patterns import Capturing, PatternError, capturing_expression
from bezel_localcloud.core.work import TooMuchWorkError, Work

_INSTANCE = "instanceId"
_PROTECTED = ("location", "cluster", "namespace", "job", "instance", _INSTANCE, "__address__")
_ACTIONS = ("replace", "hashmod", "labeldrop", "labelkeep", "keep", "drop")
_FIELDS = frozenset({"sourceLabels", "separator", "targetLabel", "regex", "modulus", "replacement", "action"})
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_REFERENCE = re.compile(r"\$(\$|\{\w+\}|\w+)")
_STEPS = 1_000_000  # of a rule on one series


class RuleError(ValueError):
    """A rule that the collector refuses; the text says why."""


@dataclass(frozen=True)
class RelabelRule:
    """One rule; `pattern` is anchored at both ends."""

    action: str
    sources: tuple[str, ...]
    separator: str
    target: str
    pattern: Capturing
    modulus: int
    replacement: str


def relabel_rule(body: object, *, protects: bool = True) -> RelabelRule:
    """Read one rule.

    Args:
        body: Its fields as the sidecar names them.
        protects: Whether a rule that changes a protected label is refused, as the sidecar does and Prometheus does not.

    Raises:
        RuleError: It would change a protected label, or is none.
    """
    if not isinstance(body, dict):
        raise RuleError("a rule is a mapping")
    for key in body:
        if key not in _FIELDS:
            raise RuleError(f'unknown field "{key}"')
    action, regex = str(body.get("action") or "").lower(), str(body.get("regex") or "")
    sources = tuple(str(label) for label in body.get("sourceLabels") or ())
    if protects and _INSTANCE in sources:
        raise RuleError(f'cannot relabel with action "{body.get("action", "")}" using source label "{_INSTANCE}"')
    try:
        pattern = capturing_expression(regex or "(.*)", Work(_STEPS))
    except (PatternError, TooMuchWorkError) as error:
        raise RuleError(f'invalid regex "{regex}": {error}') from None
    rule = RelabelRule(
        action=action or "replace",
        sources=sources,
        separator=str(body.get("separator") or ";"),
        target=str(body.get("targetLabel") or ""),
        pattern=pattern,
        modulus=int(body.get("modulus") or 0),
        replacement=str(body.get("replacement") or "$1"),
    )
    protected = _PROTECTED if protects else ()
    _check(rule, regex, str(body.get("action") or ""), body, protected)
    return rule


def _check(rule: RelabelRule, regex: str, shown: str, body: Mapping[str, object], protected: tuple[str, ...]) -> None:
    """Refuse a rule that changes a protected label, or lacks what its action needs."""
    if rule.action == "labelmap":
        raise RuleError(f'relabeling with action "{shown}" not allowed')
    if rule.action not in _ACTIONS:
        raise RuleError(f'unknown relabeling action "{shown}"')
    if rule.action in {"replace", "hashmod"}:
        if rule.target in protected:
            raise RuleError(f'cannot relabel with action "{shown}" onto protected label "{rule.target}"')
        if not rule.target:
            raise RuleError(f"relabel configuration for {rule.action} action requires 'target_label' value")
        if rule.action == "hashmod" and not rule.modulus:
            raise RuleError("relabel configuration for hashmod requires non-zero modulus")
    if rule.action in {"labeldrop", "labelkeep"}:
        match = [rule.pattern.groups(label, Work(_STEPS)) is not None for label in protected]
        if any(match) if rule.action == "labeldrop" else not all(match):
            text = f"regex {regex} would drop at least one of the protected labels {', '.join(protected)}"
            raise RuleError(text)
        if any(body.get(key) for key in ("sourceLabels", "targetLabel", "modulus", "separator", "replacement")):
            raise RuleError(f"{rule.action} action requires only 'regex', and no other fields")


def relabel(labels: Mapping[str, str], rules: Sequence[RelabelRule]) -> dict[str, str] | None:
    """The labels of a series, its name among them as `__name__`, after all rules; None where one drops it.

    Raises:
        TooMuchWorkError: A pattern takes too long.
    """
    current = dict(labels)
    for rule in rules:
        value = rule.separator.join(current.get(source, "") for source in rule.sources)
        groups = rule.pattern.groups(value, Work(_STEPS)) if rule.action in {"keep", "drop", "replace"} else None
        if (rule.action == "drop" and groups is not None) or (rule.action == "keep" and groups is None):
            return None
        if rule.action == "hashmod":
            digest = hashlib.md5(value.encode(), usedforsecurity=False).digest()
            current[rule.target] = str(int.from_bytes(digest[8:]) % rule.modulus)
        elif rule.action in {"labeldrop", "labelkeep"}:
            drops = rule.action == "labeldrop"
            current = {
                name: text
                for name, text in current.items()
                if (rule.pattern.groups(name, Work(_STEPS)) is not None) != drops
            }
        elif rule.action == "replace" and groups is not None:
            _replace(current, _expand(rule.target, groups), _expand(rule.replacement, groups))
    return current


def _replace(labels: dict[str, str], target: str, value: str) -> None:
    if not _LABEL.fullmatch(target):
        return
    if value:
        labels[target] = value
    else:
        labels.pop(target, None)


def _expand(template: str, groups: Mapping[str, str]) -> str:
    """A template of Go's regexp: $1, ${1} and $name are groups, an unknown one is empty, $$ is a dollar sign."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else groups.get(match[1].strip("{}"), "")

    return _REFERENCE.sub(value, template)
