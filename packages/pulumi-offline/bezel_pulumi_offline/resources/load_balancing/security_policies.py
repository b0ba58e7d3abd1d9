"""Operations of a security policy of Cloud Armor: rules are added, changed and removed one by one."""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import PlanError
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.lifecycle.values import Properties, unknown
from bezel_pulumi_offline.resources.load_balancing.compute import BalancerOperations

_OWN_VERBS = frozenset({"rules"})


class SecurityPolicy(BalancerOperations):
    """Operations of a security policy."""

    marked = True

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Refuse two rules of one priority."""
        del prior
        rules = planned.get("rules")
        priorities = [rule.get("priority") for rule in rules if not unknown(rule)] if isinstance(rules, list) else []
        if len({*priorities}) < len(priorities):
            text = "Two rules have the same priority, please update one of the priorities to be different."
            raise PlanError(text)

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the policy, whose labels are set apart."""
        sent = super().body(planned, updating=updating)
        sent.pop("labels", None)
        rules = [_rule_body(rule) for rule in sent.get("rules", [])]
        return {"description": "", **sent, **({"rules": rules} if rules else {})}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change the policy, then its rules, then its labels."""
        others = set(changed) - _OWN_VERBS
        if others - {"labels", "pulumiLabels", "effectiveLabels", "deletionPolicy"}:
            self.change_whole(resource_id, planned, prior, others)
        if "rules" in changed:
            self._change_rules(resource_id, planned, prior)
        return super().update(resource_id, planned, prior, others & {"labels", "pulumiLabels", "effectiveLabels"})

    def _change_rules(self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any]) -> None:
        (rules,) = (item for item in self.kind.fields if item.name == "rules")
        bodies = [
            {rule["priority"]: _rule_body(body(rules.fields, rule)) for rule in values.get("rules") or []}
            for values in (prior, planned)
        ]
        before, after = bodies
        for priority, rule in after.items():
            if priority not in before:
                self.change(resource_id, "POST", f"{resource_id}/addRule", rule)
            elif rule != before[priority]:
                differing = [
                    key for key in rule.keys() | before[priority].keys() if rule.get(key) != before[priority].get(key)
                ]
                named = [_snake(key) for key in sorted(differing) if key in _MASKED]
                query = {"priority": str(priority), **({"updateMask": ",".join(named)} if named else {})}
                self.change(resource_id, "POST", f"{resource_id}/patchRule", rule, query)
        for priority in before.keys() - after.keys():
            query = {"priority": str(priority)}
            self.change(resource_id, "POST", f"{resource_id}/removeRule", {}, query)


_MASKED = frozenset({"rateLimitOptions", "headerAction", "preconfiguredWafConfig", "redirectOptions"})


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _rule_body(rule: Mapping[str, Any]) -> Properties:
    """Return a rule's JSON with the texts and lists that the provider sends although they are empty."""
    sent = {"description": "", "preview": False, **rule}
    sent["match"] = {"versionedExpr": "", **sent.get("match", {})}
    if "rateLimitOptions" in sent:
        defaults = {"enforceOnKey": "", "enforceOnKeyConfigs": [], "enforceOnKeyName": ""}
        sent["rateLimitOptions"] = {**defaults, **sent["rateLimitOptions"]}
    return sent
