"""Resource types, one row each, and the operations that most types share.

A type whose API differs has a class of its own beside its row (resources/) that overrides an operation; everything
else is declared by the row. Owns the calls. Leaves out planning (plan.py) and mapping (mapping.py) of the values.
"""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel_pulumi_offline.google.cloud import Cloud
from bezel_pulumi_offline.google.errors import (
    GoneError,
    PartlyDoneError,
    ProviderError,
    RequestError,
    failing,
    not_created,
    prefix_error,
)
from bezel_pulumi_offline.lifecycle.fields import Field, Fields
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.lifecycle.validations import Validations
from bezel_pulumi_offline.lifecycle.values import Properties

GO_CLIENT = {"prettyPrint": "false"}  # added by the provider where it uses Google's generated Go client
LOCAL = frozenset({"deletionPolicy"})
"""Properties that concern the provider only: where nothing else has changed, an update only reads."""


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A resource type: Pulumi's token, Google's API, the properties, and the form of its calls.

    Attributes:
        pulumi_type: Pulumi's token of the type.
        title: The resource's name in the provider's messages.
        label: Its name in the messages about a read.
        api: The endpoint's name in capitals.
        id: The id as a template over the properties; also the path of the resource unless `path` is set.
        fields: The properties.
        collection: The path that a create is posted to.
        create_query: Query of a create, templates over the properties.
        query: Query of every call.
        autoname: The property that gets a generated name when the program sets none.
        longest: The greatest length of a generated name; a resource whose own name leaves no room for it is refused.
        lowercase: A generated name is in lower case.
        delete_first: A replacement deletes the old resource first, even if it has another name.
        validations: The values that Check refuses.
        imports: Further forms of the id that an import may have, templates like `id`.
        waits: The operations (create, update, delete) for which Google returns a long-running operation.
        timeouts: The operations whose limit a program can set; the provider ignores one of another, with a warning.
        masked: Updates name the changed properties (`updateMask`).
        keeps_failed: A create whose operation fails leaves the resource in the state, as with the published provider.
        partial: A failed update leaves the formerly known properties in the state, not the requested ones: the provider
            marks updates as partial where it makes them in several calls.
        attributed: Whether it gets the provider's attribution label.
        protected: The provider's word for the resource in its refusal of a deletion under deletionProtection.
        operations: The class that makes the calls.
    """

    pulumi_type: str
    title: str
    api: str
    id: str
    fields: Fields
    label: str = ""
    collection: str = ""
    path: str = ""
    create_query: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    autoname: str = ""
    longest: int = 63
    lowercase: bool = False
    delete_first: bool = False
    validations: Validations = field(default_factory=Validations)
    imports: tuple[str, ...] = ()
    waits: frozenset[str] = frozenset()
    timeouts: frozenset[str] = frozenset({"create", "update", "delete"})
    masked: bool = False
    keeps_failed: bool = False
    partial: bool = False
    attributed: bool = True
    protected: str = ""
    operations: "type[Operations] | None" = None


class Operations:
    """Create, read, update and delete as most Google APIs have them."""

    version = ""
    """The beginning of every path, e.g. `v3/`, for an API whose endpoint has no version."""

    def __init__(self, kind: ResourceType, cloud: Cloud, until: float) -> None:
        """Prepare the calls of one operation.

        Args:
            kind: The row.
            cloud: The APIs.
            until: The deadline, on time.monotonic's clock.
        """
        self.kind, self.cloud, self.until = kind, cloud, until

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Complete planned properties, in place, with those that follow from the others without a request."""

    @staticmethod
    def look(inputs: Mapping[str, Any]) -> None:
        """Look at checked inputs, which are whole: in later calls the engine leaves out the contents of assets.

        Raises:
            ProviderError: They cannot be used.
        """

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the resource; returns its id and Google's response to a read.

        Raises:
            ProviderError: It was refused or failed, and the state gets no resource.
            PartlyDoneError: It failed, and the state gets the resource, which exists.
        """
        kind = self.kind
        query = {**kind.query, **{name: fill(value, planned) for name, value in kind.create_query.items()}}
        resource_id = fill(kind.id, planned)
        answer = self.post(planned, self.body(planned), query)
        if "create" in kind.waits:
            try:
                self.wait_for_operation(answer, f"Creating {kind.title}")
            except ProviderError as error:
                failed = prefix_error(f"Error waiting to create {kind.title}", error)
                if kind.keeps_failed:
                    failed = PartlyDoneError(str(failed), resource_id, advice=failed.advice)
                raise failed from None
        return self.read_created(resource_id, planned)

    def post(self, planned: Mapping[str, Any], content: object, query: Mapping[str, str] | None = None) -> Any:
        """Post a new resource to its collection; returns Google's response.

        Args:
            planned: The properties, of which the collection's path is made.
            content: The JSON of the resource.
            query: The query; None for that of every call.

        Raises:
            ProviderError: It was refused.
        """
        kind = self.kind
        try:
            return self.call("POST", fill(kind.collection, planned), kind.query if query is None else query, content)
        except RequestError as error:
            raise not_created(f"Error creating {kind.title}", error) from None

    def read_created(self, resource_id: str, values: Mapping[str, Any]) -> tuple[str, Properties]:
        """Return the id of a resource that was just created, and Google's response to a read.

        Raises:
            PartlyDoneError: It cannot be read, and the state gets the planned properties.
            GoneError: It does not exist.
        """
        try:
            return resource_id, self.expect(resource_id, values)
        except GoneError:
            raise
        except ProviderError as error:
            raise PartlyDoneError(str(error), resource_id, advice=error.advice) from None

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """Return the whole id for one that an import has shortened."""
        return fill(self.kind.id, values) if parse(self.kind, resource_id) else resource_id

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Return Google's JSON of the resource, or None when it is gone."""
        path = fill(self.kind.path, values) if self.kind.path else resource_id
        answer: Mapping[str, Any] | None = None
        with failing(f"Error when reading or editing {self.name_in_messages(resource_id)}", unless_absent=True):
            answer = self.call("GET", path, self.kind.query) or {}
        return None if answer is None else dict(answer)

    def name_in_messages(self, resource_id: str) -> str:
        """Return the resource's name in messages about a read of it."""
        return f"{self.kind.label or self.kind.title} {go_quote(resource_id)}"

    def expect(self, resource_id: str, values: Mapping[str, Any]) -> Properties:
        """Read a resource that was just created or changed.

        Raises:
            GoneError: It does not exist.
        """
        answer = self.read(resource_id, values)
        if answer is None:
            raise GoneError(f"{self.kind.title} {resource_id!r} does not exist after its creation. Was it deleted?")
        return answer

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change the resource in place; returns Google's response to a read.

        Args:
            resource_id: The resource's id.
            planned: All planned properties.
            prior: All properties before the update.
            changed: The names of those that differ.

        Raises:
            ProviderError: It failed, and may have taken effect or not.
            GoneError: The resource does not exist.
        """
        del prior
        kind = self.kind
        sent = [item for item in kind.fields if item.name in changed and item.changeable]
        # Without a mask the provider sends the resource whatever has changed, its own properties included.
        if sent if kind.masked else set(changed) - LOCAL:
            sent.sort(key=lambda item: item.name.startswith("effective"))  # labels and annotations stand last
            paths = dict.fromkeys(path for item in sent for path in self.mask(item))
            mask = {"updateMask": ",".join(paths)} if kind.masked else {}
            with failing(f"Error updating {kind.title} {go_quote(resource_id)}"):
                answer = self.call("PATCH", resource_id, {**kind.query, **mask}, self.body(planned, updating=True))
            if "update" in kind.waits:
                self.wait_for_operation(answer, f"Updating {kind.title}")
        return self.expect(resource_id, planned)

    def mask(self, field: Field) -> Collection[str]:
        """Return the paths of a changed property in the `updateMask` of an update."""
        return (field.path[0],)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the resource; it is no error if it does not exist."""
        kind = self.kind
        if kind.protected and prior.get("deletionProtection"):
            advice = "setting deletion_protection=false and running `terraform apply`"
            raise ProviderError(f"cannot destroy {kind.protected} without {advice}")
        self._delete("DELETE", resource_id, kind.query)

    def _delete(self, method: str, path: str, query: Mapping[str, str] | None = None, content: object = None) -> None:
        answer: Mapping[str, Any] | None = None
        with failing(f"Error when reading or editing {self.kind.title}", unless_absent=True):
            answer = self.call(method, path, query, content) or {}
        if answer is not None and "delete" in self.kind.waits:
            self.wait_for_operation(answer, f"Deleting {self.kind.title}")

    def wait_for_operation(self, operation: Mapping[str, Any], activity: str) -> None:
        """Wait for an operation; a cancellation ends the wait only where the state keeps the resource in any case."""
        leave = self.kind.keeps_failed
        self.cloud.wait_for_operation(self.kind.api, operation, activity, until=self.until, leave=leave)

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the resource."""
        return body(self.kind.fields, planned, updating=updating)

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        content: object = None,
        limit: float | None = None,
    ) -> Any:
        """Call the row's API."""
        path = f"{self.version}{path}"
        return self.cloud.call(method, self.kind.api, path, query, content, until=self.until, limit=limit)


class Numbered(Operations):
    """Operations of a resource whose id Google chooses."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the resource; its name is in the response."""
        return self.read_created(str(self.post(planned, self.body(planned))["name"]), planned)

    def identify(self, resource_id: str, values: Mapping[str, Any]) -> str:
        """Return the id unchanged: the resource is imported by its full name."""
        del values
        return resource_id


def go_quote(text: str) -> str:
    """Return a text as Go quotes it."""
    return json.dumps(text, ensure_ascii=False)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a template such as projects/{project}/secrets/{secretId} with the values filled in.

    Raises:
        ProviderError: A value is missing, such as a project that is not set.
    """

    def value(match: re.Match[str]) -> str:
        if values.get(match[1]) in (None, ""):
            raise ProviderError(f"{match[1]}: required field is not set")
        return str(values[match[1]])

    return re.sub(r"{(\w+)}", value, template)


def parse(kind: ResourceType, resource_id: str) -> Properties:
    """Return the properties that an id contains; none where it has another form.

    A shorter id, as users write it for an import, is matched from its end: `us-central1/llm` for
    projects/{project}/locations/{location}/services/{name}.
    """
    for template in (kind.id, *kind.imports):
        pattern = re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", template)
        if match := re.fullmatch(pattern, resource_id):
            return match.groupdict()
    names = re.findall(r"{(\w+)}", kind.id)
    parts = resource_id.split("/")
    return dict(zip(names[-len(parts) :], parts, strict=True)) if len(parts) <= len(names) else {}
