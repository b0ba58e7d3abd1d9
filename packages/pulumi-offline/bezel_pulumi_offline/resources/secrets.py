"""Resource types of Secret Manager: secrets, their versions, and members of their policies."""

import base64
import re
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import failing
from bezel_pulumi_offline.lifecycle.resource import Numbered, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties


class Version(Numbered):
    """Operations of a secret's version: add, enable or disable, read with its payload, destroy."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Add the version."""
        data = str(planned.get("secretData") or planned.get("secretDataWo") or "")
        payload = data if planned.get("isSecretDataBase64") else base64.b64encode(data.encode()).decode()
        with failing("Error creating SecretVersion"):
            path = f"{planned['secret']}:addVersion"
            name = str(self.call("POST", path, None, {"payload": {"data": payload}})["name"])
            self._switch(name, enabled=bool(planned.get("enabled")))
        return self.read_created(name, planned)

    def _switch(self, name: str, *, enabled: bool) -> None:
        self.call("POST", f"{name}:{'enable' if enabled else 'disable'}")

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the version and, where it is enabled, its payload."""
        answer = super().read(resource_id, values)
        if answer is None or answer.get("state") == "DESTROYED":
            return None
        answer["version"] = resource_id.rsplit("/", 1)[-1]
        answer["enabled"] = answer.get("state") == "ENABLED"
        answer["secret"] = values.get("secret") or re.sub(r"/versions/[^/]+$", "", resource_id)
        answer["secretData"] = values.get("secretData")
        if answer["enabled"] and not values.get("secretDataWo"):
            payload = str(self.call("GET", f"{resource_id}:access")["payload"]["data"])
            plain = values.get("isSecretDataBase64")
            answer["secretData"] = payload if plain else base64.b64decode(payload).decode()
        return answer

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Enable or disable the version; any other change requires a new one."""
        del prior
        if "enabled" in changed:
            with failing(f"Error updating SecretVersion {go_quote(resource_id)}"):
                self._switch(resource_id, enabled=bool(planned.get("enabled")))
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Destroy the version, or only disable it where its deletion policy is DISABLE."""
        verb = "disable" if prior.get("deletionPolicy") == "DISABLE" else "destroy"
        self._delete("POST", f"{resource_id}:{verb}")
