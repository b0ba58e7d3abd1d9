"""Resource types of IAM: service accounts, and members of their policies."""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import RequestError, failing, not_created
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties

_ACCOUNT = "projects/{project}/serviceAccounts/{email}"
_CHANGEABLE = {"description": "description", "displayName": "display_name"}  # in the order of an update's mask


class Account(Operations):
    """Operations of a service account: a create sends the id beside the account, and disabling is a verb of its own."""

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Compute the e-mail from id and project, so that it is known in a preview."""
        del prior
        if isinstance(planned.get("accountId"), str) and planned.get("project"):
            planned["email"] = f"{planned['accountId']}@{planned['project']}.iam.gserviceaccount.com"
            planned["member"] = f"serviceAccount:{planned['email']}"

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the account."""
        account = {name: planned[name] for name in _CHANGEABLE if planned.get(name)}
        content = {"accountId": planned["accountId"], "serviceAccount": account}
        try:
            made = self.call("POST", fill("projects/{project}/serviceAccounts", planned), GO_CLIENT, content)
        except RequestError as error:
            if error.code != 409 or not planned.get("createIgnoreAlreadyExists"):
                raise not_created("Error creating service account", error) from None
            made = {"name": fill(_ACCOUNT, planned)}
        # `disabled` has no effect at creation, as the SDK documents it: the next update disables the account.
        return self.read_created(str(made["name"]), planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the account, with its name as a member of policies."""
        answer = super().read(resource_id, values)
        if answer is None:
            return None
        email = str(answer.get("email", ""))
        return {**answer, "accountId": email.split("@", maxsplit=1)[0], "member": f"serviceAccount:{email}"}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change name, description and state (enabled or disabled) of the account."""
        del prior
        account: Mapping[str, Any] = {}
        with failing(f"Error retrieving service account {go_quote(resource_id)}"):
            account = self.call("GET", resource_id, GO_CLIENT)
        if "disabled" in changed:
            verb = "disable" if planned.get("disabled") else "enable"
            self.call("POST", f"{resource_id}:{verb}", GO_CLIENT, {})
        if mask := ",".join(wire for name, wire in _CHANGEABLE.items() if name in changed):
            values = {name: planned[name] for name in _CHANGEABLE if planned.get(name)}
            content = {"serviceAccount": {**values, "etag": account.get("etag")}, "updateMask": mask}
            self.call("PATCH", resource_id, GO_CLIENT, content)
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Delete the account; it is no error if it does not exist."""
        del prior
        with failing("Error deleting service account", unless_absent=True):
            self.call("DELETE", resource_id, GO_CLIENT)
