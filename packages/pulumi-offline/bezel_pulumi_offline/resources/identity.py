"""Resource types of outside identities (workload identity federation), and of a project's own roles."""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import ExistsError, RequestError, failing, not_created
from bezel_pulumi_offline.lifecycle.fields import Field
from bezel_pulumi_offline.lifecycle.mapping import body
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, LOCAL, Operations, fill
from bezel_pulumi_offline.lifecycle.values import Properties

_OIDC = ("oidc.allowed_audiences", "oidc.issuer_uri", "oidc.jwks_json")
_SENT = frozenset({"title", "description", "stage", "permissions"})


class Pool(Operations):
    """Operations of a pool: a deleted one counts as gone, and its attestation rules are read with it."""

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the pool with its attestation rules."""
        answer = super().read(resource_id, values)
        if answer is None or answer.get("state") == "DELETED":
            return None
        rules: Mapping[str, Any] = {}
        with failing(f"Error when reading or editing {self.name_in_messages(resource_id)}"):
            rules = self.call("GET", f"{resource_id}:listAttestationRules") or {}
        return {**answer, "attestationRules": rules.get("attestationRules", [])}


class PoolProvider(Operations):
    """Operations of a pool's provider: a deleted one counts as gone."""

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the provider."""
        answer = super().read(resource_id, values)
        return None if answer is None or answer.get("state") == "DELETED" else answer

    def mask(self, field: Field) -> Collection[str]:
        """Return the paths of a changed property in the `updateMask`: an issuer's are named one by one."""
        return _OIDC if field.name == "oidc" else super().mask(field)


class CustomRole(Operations):
    """Operations of a role of the project: a deleted one keeps its name, and a create restores it."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the role, or restore the deleted one of its name."""
        name = fill(self.kind.id, planned)
        current: Mapping[str, Any] | None = None
        verify = f"Unable to verify whether custom project role {name} already exists and must be undeleted"
        with failing(verify, unless_absent=True):
            current = self.call("GET", name, GO_CLIENT)
        if current is None:
            content = {"roleId": planned["roleId"], "role": self.body(planned)}
            try:
                self.call("POST", fill("projects/{project}/roles", planned), GO_CLIENT, content)
            except RequestError as error:
                raise not_created(f"Error creating the custom project role {name}", error) from None
        elif current.get("deleted"):
            self.update(name, planned, {}, _SENT)
        else:
            raise ExistsError(f"Custom project role {name} already exists and must be imported")
        return self.read_created(name, planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the role; a deleted one is shown as such, as by the published provider."""
        answer = super().read(resource_id, values)
        return None if answer is None else {**answer, "roleId": resource_id.rsplit("/", 1)[-1]}

    def name_in_messages(self, resource_id: str) -> str:
        """Return the role's name in messages."""
        return resource_id

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Restore the role if it is deleted, and send all of it if something of it has changed."""
        del prior
        if not set(changed) - LOCAL:
            return self.expect(resource_id, planned)
        current: Mapping[str, Any] = {}
        with failing(f"unable to find custom project role {resource_id} to update"):
            current = self.call("GET", resource_id, GO_CLIENT)
        if current.get("deleted"):
            with failing(f"Error undeleting the custom project role {planned['title']}"):
                current = self.call("POST", f"{resource_id}:undelete", GO_CLIENT, {})
        if _SENT & set(changed):
            with failing(f"Error updating the custom project role {planned['title']}"):
                current = self.call("PATCH", resource_id, GO_CLIENT, self.body(planned))
        return {**current, "roleId": planned["roleId"]}

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the role."""
        with failing(f"Error deleting the custom project role {prior.get('title')}", unless_absent=True):
            self.call("DELETE", resource_id, GO_CLIENT)

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the role, with its permissions sorted."""
        content = body(self.kind.fields, planned, updating=updating)
        return {**content, "includedPermissions": sorted(content.get("includedPermissions", []))}
