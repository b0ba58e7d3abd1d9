"""Resource types of IAM members: one member of one role, by reading, changing and writing back a resource's policy.

The policy's etag guards against two writers; after a conflict it is read again, as the provider does. A row declares
the path of the policy and the name of its parent; everything else is the same for all of them.
"""

import contextlib
import itertools
import random
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bezel_pulumi_offline.google.cloud import Cloud
from bezel_pulumi_offline.google.errors import ProviderError, RequestError, failing, prefix_error
from bezel_pulumi_offline.google.retries import POLICY_SECONDS
from bezel_pulumi_offline.lifecycle.comparisons import case_matters
from bezel_pulumi_offline.lifecycle.comparisons import member as same_member
from bezel_pulumi_offline.lifecycle.resource import Operations, ResourceType, fill, go_quote, parse
from bezel_pulumi_offline.lifecycle.values import Properties

_ATTEMPTS = 10
# The engine creates two members of one resource at the same time: the lock serialises them, and the etag's retry is
# left to writers elsewhere.
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemberType(ResourceType):
    """The row of an IAM member.

    Attributes:
        parent: The property that names the resource of the policy.
        described: That resource in the provider's messages, a template over its id.
        get: HTTP method that reads the policy.
        get_query: Query of the read.
        get_body: Body of the read, where that is a POST.
        put: HTTP method that writes it.
        suffixes: The suffixes of the resource's path to read and to write its policy.
        mask: The `updateMask` of a write.
        batched: The provider collects the changes of one policy, and names each in its errors.
    """

    parent: str = ""
    described: str = ""
    get: str = "GET"
    get_query: Mapping[str, str] = field(default_factory=dict)
    get_body: Mapping[str, Any] | None = None
    put: str = "POST"
    suffixes: Sequence[str] = (":getIamPolicy", ":setIamPolicy")
    mask: str = ""
    batched: bool = False


class Member(Operations):
    """The operations of an IAM member."""

    kind: MemberType

    def __init__(self, kind: ResourceType, cloud: Cloud, until: float) -> None:
        super().__init__(kind, cloud, until)
        self._imported: Properties = {}  # what the id of an import says, which the state does not have yet

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Add the member to the policy."""
        values = self._with_parent(planned)
        path = fill(self.kind.id, values)
        with self._in_batch("Create", planned, self._describe(path)):
            self._change(path, planned, add=True)
        return self.read_created(self._id(path, planned), planned)

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """Return the id for an import, where it is written `<resource> <role> <member> [<title of the condition>]`.

        Raises:
            ProviderError: It is not written so, or the policy has no such member.
        """
        del values
        if " " not in resource_id:  # an id as the state has it: a state that is repaired after a kill
            self._imported = self._parse_id(resource_id)
            return resource_id
        parts = resource_id.split(maxsplit=3)
        if len(parts) < 3:
            form = "expected 'resource_name role member [condition_title]'"
            raise ProviderError(f"Wrong number of parts to Member id [{resource_id}]; {form}.")
        parent, role, member, title = *parts[:3], parts[3] if len(parts) > 3 else ""
        self._imported = {self.kind.parent: parent, "role": role, "member": member}
        path = fill(self.kind.id, self._with_parent(self._imported))
        bindings = self._policy(path, POLICY_SECONDS).get("bindings", [])
        for binding in bindings:
            condition = binding.get("condition") or {}
            if (binding.get("role"), condition.get("title", "")) == (role, title) and any(
                same_member(item, member) for item in binding["members"]
            ):
                self._imported["condition"] = condition or None
                return self._id(path, self._imported)
        where = go_quote(self._describe(path))
        raise ProviderError(
            f"Cannot find binding for {where} with role {go_quote(role)}, member {go_quote(member)}, "
            f"and condition title {go_quote(title)}"
        )

    def _parse_id(self, resource_id: str) -> Properties:
        path, _, rest = resource_id.partition("/roles/")
        role, member, *condition = rest.split("/", 4)
        values = {self.kind.parent: path, "role": f"roles/{role}", "member": member}
        names = ("title", "description", "expression")
        return {**values, "condition": dict(zip(names, condition, strict=False))} if condition else values

    def _id(self, path: str, values: Mapping[str, Any]) -> str:
        condition = values.get("condition")
        parts = [condition.get(name) or "" for name in ("title", "description", "expression")] if condition else []
        return "/".join([self._whole(path), values["role"], lower_name(values["member"]), *parts])

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the member from the policy; None where it is not in it."""
        del resource_id
        own_names = {item.name for item in self.kind.fields}  # an import's id may look like an id of another form
        values = {**{name: value for name, value in values.items() if name in own_names}, **self._imported}
        named = self._with_parent(values)
        path = fill(self.kind.id, named)
        policy: Properties = {}
        own_name = f"Role {go_quote(str(values.get('role')))} Member {go_quote(str(values.get('member')))}"
        where = f"Resource {go_quote(self._describe(path))} with IAM Member: {own_name}"
        with failing(f"Error when reading or editing {where}", unless_absent=True):
            policy = self._policy(path, POLICY_SECONDS)
        binding = next((item for item in policy.get("bindings", []) if _is(item, values)), None)
        members = binding.get("members", []) if binding else []
        written = next((item for item in members if same_member(item, values.get("member"))), None)
        if binding is None or written is None:
            return None
        row = {"role": values.get("role"), "member": written}
        answer = {**row, "etag": policy.get("etag"), "condition": binding.get("condition")}
        for item in self.kind.fields:
            answer.setdefault(item.name, named.get(item.name))
        return {**answer, self.kind.parent: self._whole(path)}

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Remove the member from the policy."""
        del resource_id
        path = fill(self.kind.id, self._with_parent(prior))
        own_name = f"role {go_quote(str(prior['member']))}, {go_quote(str(prior['role']))}"  # in this order, as there
        where = f"Resource {self._whole(path)} for IAM Member ({own_name})"
        with failing(f"Error when reading or editing {where}", unless_absent=True):
            with self._in_batch("Delete", prior, go_quote(self._describe(path))):
                self._change(path, prior, add=False)
            self._policy(path)  # as the provider does, which reads until the change shows

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Read the member: no property of it changes in place, and a repeated update only reads."""
        del prior, changed
        return self.expect(resource_id, planned)

    @contextlib.contextmanager
    def _in_batch(self, verb: str, values: Mapping[str, Any], described: str) -> Iterator[None]:
        """Put the request of a batch before its error, where the provider makes batches of changes."""
        request = f"`{verb} IAM Members {values['role']} {values['member']} for {described}`"
        with failing(f"Request {request} returned error") if self.kind.batched else contextlib.nullcontext():
            yield

    def _change(self, path: str, values: Mapping[str, Any], *, add: bool) -> None:
        kind, described = self.kind, self._describe(path)
        with _LOCK:
            for attempt in range(_ATTEMPTS):
                policy = self._policy(path)
                # Only adding a member raises the version; a policy without one has version 0, which is left out.
                content: Properties = {
                    "bindings": _bindings(policy.get("bindings", []), values, add=add),
                    "etag": policy.get("etag"),
                    "version": 3 if add else policy.get("version"),
                }
                content = {name: value for name, value in content.items() if value}
                if kind.put == "POST":
                    content = {"policy": content, **({"updateMask": kind.mask} if kind.mask else {})}
                try:
                    with failing(f"Error setting IAM policy for {described}"):
                        self.call(kind.put, path + kind.suffixes[1], kind.query, content)
                except RequestError as error:
                    if error.code not in (409, 412) or attempt == _ATTEMPTS - 1:
                        raise prefix_error(f"Error applying IAM policy for {described}", error) from None
                    self.cloud.pause(random.uniform(0.02, 0.2) * (attempt + 1))  # noqa: S311 - spreads writers
                else:
                    return

    def _policy(self, path: str, limit: float | None = None) -> Properties:
        kind = self.kind
        query = {**kind.query, **kind.get_query}
        with failing(f"Error retrieving IAM policy for {self._describe(path)}"):
            return dict(self.call(kind.get, path + kind.suffixes[0], query, kind.get_body, limit) or {})

    def _describe(self, path: str) -> str:
        """Return the policy's resource as the provider describes it."""
        return self.kind.described.format(id=self._whole(path))

    def _with_parent(self, values: Mapping[str, Any]) -> Properties:
        """Return the values with the parent's bare name, and project and location from a full path of the parent."""
        whole = str(values.get(self.kind.parent, ""))
        parts = whole.split("/")
        kinds = {"projects": "project", "locations": "location"}
        from_path = {kinds[key]: value for key, value in itertools.pairwise(parts) if key in kinds}
        base = {"project": self.cloud.project, "location": self.cloud.region}
        inner = parse(self.kind, whole) if "/" in whole else {}  # further parents, such as the ring of a key
        present = {name: value for name, value in values.items() if value is not None}
        return {**base, **present, **inner, **from_path, self.kind.parent: parts[-1]}

    def _whole(self, path: str) -> str:
        """Return the parent's name in the state: its path, but the id for a project."""
        return path.rsplit("/", 1)[-1] if self.kind.parent == "project" else path


def lower_name(member: str) -> str:
    """Return a member as the provider writes it: its name in lower case, unless its case has a meaning."""
    kind, mark, name = member.partition(":")
    return member if case_matters(member) else f"{kind}{mark}{name.lower()}"


def _is(binding: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    ours, theirs = values.get("condition") or {}, binding.get("condition") or {}
    same = all((ours.get(name) or "") == (theirs.get(name) or "") for name in ("title", "description", "expression"))
    return same and binding.get("role") == values.get("role")


def _bindings(bindings: list[Properties], values: Mapping[str, Any], *, add: bool) -> list[Properties]:
    """Return the bindings with the member added or removed, in the provider's order: by role, members sorted."""
    result = [{**item, "members": list(item.get("members", []))} for item in bindings]
    target = next((item for item in result if _is(item, values)), None)
    if target is None:
        target = {"role": values["role"], "members": []}
        if values.get("condition"):
            target["condition"] = {name: value for name, value in values["condition"].items() if value}
        result.append(target)
    target_member = lower_name(values["member"])
    for item in result:
        item["members"] = sorted({lower_name(member) for member in item["members"]})
    target["members"] = sorted({*target["members"], target_member} if add else {*target["members"]} - {target_member})
    return sorted((item for item in result if item["members"]), key=lambda item: str(item["role"]))
