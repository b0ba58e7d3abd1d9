"""Findings of an expiry run: stacks, leases and leftovers that are over, with price, cause and what is done about each.

Owns the rules for stacks. Pure; leaves out reading them (`expiry_plan`) and destroying them (bezel.gitops.upkeep).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from bezel.engine.project.pipeline_file import FILE
from bezel.planner.base.expiry import EXPIRY, has_expired
from bezel.planner.team.series_labels import SECRETS_OF_STACKS
from bezel.resource_cost.stack_cost import plain, resources_in, stack_cost
from bezel_base.errors import format_value
from bezel_base.text.shell import shell_word

Kind = Literal["stack", "lease", "service", "account", "bucket", "secret", "repository"]
DEV = "dev"
_PROJECT = re.compile(r"^projects/[^/]+/(?:locations/)?")
ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Finding:
    """A thing that is over.

    Attributes:
        kind: Kind of the thing.
        name: Its name.
        place: Its zone or region, "" where it has none.
        why: Why it is over.
        kept_because: Why this run does not destroy it, "" if it may.
        repair: Command that a person runs.
        hourly_usd: Price of an hour with everything running, as decimal text; None if unknown.
        outcome: What became of it: "" before, "destroyed", or the failure.
    """

    kind: Kind
    name: str
    why: str
    repair: str
    place: str = ""
    kept_because: str = ""
    hourly_usd: str | None = None
    outcome: str = ""

    @property
    def may_destroy(self) -> bool:
        """Whether this run may destroy it."""
        return not self.kept_because

    @property
    def is_left(self) -> bool:
        """Whether it is still there."""
        return self.outcome != "destroyed"

    def with_outcome(self, outcome: str) -> "Finding":
        """The finding with what became of it."""
        return replace(self, outcome=outcome)


@dataclass(frozen=True)
class StackState:
    """A stack of the backend, as an expiry run reads it.

    Attributes:
        name: The stack.
        settings: The values of its file; None if the file is gone.
        resources: The resources of its state.
    """

    name: str
    settings: Mapping[str, Any] | None
    resources: Sequence[Mapping[str, Any]]

    @property
    def environments(self) -> frozenset[str]:
        """The environments that its file and its resources name."""
        environment = None if self.settings is None else self.settings.get(ENVIRONMENT)
        return frozenset({*self._label_values(ENVIRONMENT), *([str(environment)] if environment else [])})

    @property
    def expires_at(self) -> tuple[str, ...]:
        """The `expires-at` of its file and of its resources: either may be newer, by a deploy of another commit."""
        labels = (self.settings or {}).get("labels")
        expiry = labels.get(EXPIRY) if isinstance(labels, Mapping) else None
        return tuple(sorted({*self._label_values(EXPIRY), *([str(expiry)] if expiry else [])}))

    @property
    def protected_resources(self) -> list[str]:
        """Names of the resources that Pulumi or Google protects from deletion."""
        names = []
        for entry in self.resources:
            inputs = plain(entry.get("inputs") or {})
            is_protected = entry.get("protect") or inputs.get("deletionProtection") is True
            if is_protected and not entry.get("delete"):
                names.append(str(entry["urn"]).rpartition("::")[2])
        return sorted(names)

    @property
    def hourly_usd(self) -> str | None:
        """Price of an hour with everything running."""
        price = stack_cost(resources_in(self.resources)).as_json()["hourly_usd"]
        return None if price is None else str(price)

    @property
    def ids(self) -> frozenset[str]:
        """Ids of its resources in the cloud."""
        return frozenset(place_of(str(entry["id"])) for entry in self.resources if entry.get("id"))

    def _label_values(self, key: str) -> Iterator[str]:
        for entry in self.resources:
            labels = plain(entry.get("inputs") or {}).get("labels")
            value = labels.get(key) if isinstance(labels, Mapping) else None
            if isinstance(value, str) and value:
                yield value


_FOREIGN = "it may belong to a stack in another backend"


def place_of(id_: str) -> str:
    """An id without its project, which is a name or a number: `us-east4/services/llm`, `secrets/hf-token`."""
    return _PROJECT.sub("", id_)


def why_kept(environments: Collection[str], protected: Collection[str]) -> str:
    """Why nothing with these environments is destroyed because it has expired; "" where it may be.

    Args:
        environments: What a stack's file and its resources name.
        protected: Environments that the pipeline protects.
    """
    if set(environments) != {DEV}:
        return f"its environment is {', '.join(sorted(environments)) or 'unknown'}"
    return f"its environment is {DEV}, which {FILE} protects" if DEV in protected else ""


def stack_finding(stack: StackState, today: date, protected: Collection[str] = ()) -> Finding | None:
    """The finding of a stack that is over, or whose file is gone; None if it is needed.

    Args:
        stack: The stack.
        today: The day in UTC.
        protected: Environments that the pipeline protects.

    Raises:
        ValueError: An `expires-at` is neither a date nor `never`.
    """
    name = format_value(stack.name)
    destroy = f"pulumi destroy --stack {shell_word(stack.name)}"
    if stack.settings is None:
        why = f"its state is in the backend, and there is no Pulumi.{name}.yaml"
        repair = f"restore the file, or `{destroy}` and `pulumi stack rm {shell_word(stack.name)}`"
        return Finding("stack", stack.name, why, repair, kept_because="its file is gone", hourly_usd=stack.hourly_usd)
    days = stack.expires_at
    over = [has_expired(day, today) for day in days]  # each is read, so that none is malformed
    if not days or not all(over):
        return None
    why = f"{EXPIRY} {days[-1]} is over: today is {today} in UTC"
    repair = f"`{destroy}`, or a later {EXPIRY} in Pulumi.{name}.yaml and a deploy"
    kept = why_kept(stack.environments, protected)
    if not kept and stack.protected_resources:
        kept = f"protected from deletion: {', '.join(stack.protected_resources)}"
    return Finding("stack", stack.name, why, repair, kept_because=kept, hourly_usd=stack.hourly_usd)


def labelled_finding(
    kind: Kind, name: str, place: str, labels: Mapping[str, str], id_: str, stacks: Mapping[str, Collection[str]]
) -> Finding | None:
    """The finding of a resource with Bezel's labels that no stack holds; None for any other.

    It is reported only: labels name a stack and not its backend, so it may belong to another one's. Of secrets only
    those that stacks make for themselves are meant: any other holds a user's value.

    Args:
        kind: Its kind.
        name: Its name.
        place: Its region.
        labels: Its labels.
        id_: Its id as a state has it.
        stacks: Label of each stack of this backend -> ids of its resources.
    """
    if labels.get("managed-by") != "bezel" or not labels.get("stack"):
        return None
    if kind == "secret" and not name.startswith(SECRETS_OF_STACKS):
        return None
    stack = labels["stack"]
    if place_of(id_) in stacks.get(stack, ()):
        return None
    reason = "does not hold it" if stack in stacks else "is not in this backend"
    return Finding(kind, name, f"its stack {format_value(stack)} {reason}", _delete(kind, name, place), place, _FOREIGN)


def account_finding(
    service: Finding, email: str, project: str, stacks: Mapping[str, Collection[str]]
) -> Finding | None:
    """The finding of the account that a leftover service runs as: accounts have no labels, so this one tells of it.

    None for an account that a stack holds, or that is none of the project's own, such as Compute Engine's default one.

    Args:
        service: The service's finding.
        email: The account.
        project: The Google Cloud project.
        stacks: Label of each stack of this backend -> ids of its resources.
    """
    is_own = email.endswith(f"@{project}.iam.gserviceaccount.com")
    if not is_own or any(f"serviceAccounts/{email}" in ids for ids in stacks.values()):
        return None
    why = f"the service {format_value(service.name)} runs as it, and {service.why}"
    return Finding("account", email, why, _delete("account", email, ""), "", _FOREIGN, "0")


def _delete(kind: Kind, name: str, place: str) -> str:
    command = {
        "account": f"gcloud iam service-accounts delete {shell_word(name)}",
        "secret": f"gcloud secrets delete {shell_word(name)}",
        "service": f"gcloud run services delete {shell_word(name)} --region={shell_word(place)}",
        "bucket": f"gcloud storage rm --recursive gs://{shell_word(name)}",
        "repository": f"gcloud artifacts repositories delete {shell_word(name)} --location={shell_word(place)}",
    }
    return f"look at it, then `{command[kind]}`"
