"""Operations of Compute Engine's load-balancing types: setters beside a change, labels by a request of their own."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from bezel_pulumi_offline.google.errors import PartlyDoneError, PlanError, ProviderError, failing
from bezel_pulumi_offline.lifecycle.comparisons import relative
from bezel_pulumi_offline.lifecycle.resource import GO_CLIENT, LOCAL, Operations, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties, unknown
from bezel_pulumi_offline.resources.compute import ComputeOperations, version_one

_LABELS = frozenset({"labels", "pulumiLabels", "effectiveLabels"})


class BalancerOperations(ComputeOperations):
    """Create, read, update and delete of a load-balancing type.

    Attributes:
        always: Fields of every create's body, where the program says nothing else.
        whole: Method of a change that sends the whole resource, or what `changing` names.
        setters: Property -> path of the verb that sets it alone, below the project.
        changing: Fields of a PATCH that is sent for any change; empty for the whole resource.
        marked: Whether a change sends the known fingerprint.
        as_read: Fields whose links keep the version of the API that Google shows them in.
    """

    always: ClassVar[Mapping[str, Any]] = {}
    whole = "PATCH"
    setters: ClassVar[Mapping[str, str]] = {}
    changing: Collection[str] = ()
    marked = False
    as_read: Collection[str] = ()

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the resource, with what the provider always sends."""
        sent = super().body(planned, updating=updating)
        return sent if updating else {**self.always, **sent}

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the resource, with links of any version, at any depth, as v1 links."""
        answer = Operations.read(self, resource_id, values)
        if answer is None:
            return None
        return {key: value if key in self.as_read else _with_v1_links(value) for key, value in answer.items()}

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the resource, and set its labels once more: the provider does so."""
        resource_id, answer = super().create(planned)
        labels = planned.get("effectiveLabels")
        if labels:
            try:
                answer = self._set_labels(resource_id, planned, answer.get("labelFingerprint"))
            except ProviderError as error:
                raise PartlyDoneError(str(error), resource_id, advice=error.advice) from None
        return resource_id, answer

    def _set_labels(self, resource_id: str, planned: Mapping[str, Any], fingerprint: object) -> Properties:
        content = {"labelFingerprint": fingerprint, "labels": planned.get("effectiveLabels")}
        content = {key: value for key, value in content.items() if value}
        with failing(f"Error adding labels to {self.name_in_messages(resource_id)}"):
            answer = self.call("POST", f"{resource_id}/setLabels", self.kind.query, content)
        self.wait_for_operation(answer, f"Updating {self.kind.label} Labels")
        return self.expect(resource_id, planned)

    def change(
        self, resource_id: str, method: str, path: str, content: object, query: Mapping[str, str] | None = None
    ) -> None:
        """Send one change and wait for it."""
        with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
            answer = self.call(method, path, query or self.kind.query, content)
        self.wait_for_operation(answer, f"Updating {self.kind.title}")

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change the resource: as a whole, then by the verbs of single properties, then its labels."""
        sent = set(changed) - LOCAL - _LABELS
        if sent - self.setters.keys():
            self.change_whole(resource_id, planned, prior, sent - self.setters.keys())
        for name, verb in self.setters.items():
            if name in sent:
                self.change(resource_id, "POST", fill(verb, planned), self.set_body(name, planned))
        if set(changed) & _LABELS:
            return self._set_labels(resource_id, planned, prior.get("labelFingerprint"))
        return self.expect(resource_id, planned)

    def change_whole(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> None:
        """Send the properties that have no verb of their own."""
        body = self.body(planned, updating=True)
        if self.changing or self.whole == "PATCH":
            named = set(self.changing) or {item.path[0] for item in self.kind.fields if item.name in changed}
            body = {key: value for key, value in body.items() if key in named}
        if self.marked:
            body["fingerprint"] = prior.get("fingerprint")
        self.change(resource_id, self.whole, resource_id, body)

    def set_body(self, name: str, planned: Mapping[str, Any]) -> Properties:
        """Return the body of the verb that sets a property."""
        (item,) = (item for item in self.kind.fields if item.name == name)
        body = self.body(planned, updating=True)
        return {key: value for key, value in body.items() if key == item.path[0]}


def _with_v1_links(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_v1_links(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_v1_links(item) for key, item in value.items()}
    return version_one(value)


class Address(BalancerOperations):
    """Operations of a global address, of which only the labels change."""

    always: ClassVar[Mapping[str, Any]] = {"networkTier": "PREMIUM"}


class ForwardingRule(BalancerOperations):
    """Operations of a global forwarding rule."""

    setters: ClassVar[Mapping[str, str]] = {"target": "projects/{project}/global/forwardingRules/{name}/setTarget"}
    as_read = frozenset({"target"})


class EndpointGroup(BalancerOperations):
    """Operations of a serverless network endpoint group, of which nothing changes."""

    always: ClassVar[Mapping[str, Any]] = {"appEngine": None, "serverlessDeployment": None}


class BackendService(BalancerOperations):
    """Operations of a backend service: a change sends all of it, a security policy has a verb of its own."""

    always: ClassVar[Mapping[str, Any]] = {"iap": None}
    whole = "PUT"
    as_read = frozenset({"securityPolicy"})
    marked = True

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the service: a change has the lists that are empty, too."""
        sent = super().body(planned, updating=updating)
        for backend in sent.get("backends", []):
            backend.setdefault("maxUtilization", None)
        if "iap" in sent and sent["iap"] is not None:
            sent["iap"] = {"oauth2ClientId": "", "oauth2ClientSecret": "", **sent["iap"]}
        empty = ("customRequestHeaders", "customResponseHeaders", "healthChecks")
        return {**self.always, **{name: [] for name in empty if updating}, **sent}

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Create the service, and then set its security policy."""
        if not planned.get("securityPolicy"):
            return super().create(planned)
        resource_id = fill(self.kind.id, planned)
        answer = self.post(planned, self.body(planned))
        self.wait_for_operation(answer, f"Creating {self.kind.title}")
        try:
            self._set_policy(resource_id, planned)
        except ProviderError as error:
            raise PartlyDoneError(str(error), resource_id, advice=error.advice) from None
        return self.read_created(resource_id, planned)

    def change_whole(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> None:
        """Send the whole service, and its security policy where that has changed."""
        super().change_whole(resource_id, planned, prior, changed)
        if "securityPolicy" in changed:
            self._set_policy(resource_id, planned)

    def _set_policy(self, resource_id: str, planned: Mapping[str, Any]) -> None:
        policy = str(planned.get("securityPolicy") or "")
        content = {"securityPolicy": relative(policy, "")} if policy else {}
        with failing("Error setting Backend Service security policy"):
            answer = self.call("POST", f"{resource_id}/setSecurityPolicy", GO_CLIENT, content)
        self.wait_for_operation(answer, "Setting Backend Service Security Policy")


class UrlMap(BalancerOperations):
    """Operations of a URL map: references to backend services are whole links of the endpoint that is called."""

    whole = "PUT"
    marked = True

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the map; a change has its host rules even where there are none."""
        sent = super().body(planned, updating=updating)
        endpoint, services = (
            self.cloud.endpoint(self.kind.api),
            fill("projects/{project}/global/backendServices/", planned),
        )
        linked: Properties = _link_services(sent, endpoint, services)
        return {"hostRules": [], **linked} if updating else linked


def _link_services(value: Any, endpoint: str, services: str) -> Any:
    if isinstance(value, list):
        return [_link_services(item, endpoint, services) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _link(str(item), endpoint, services)
        if key in {"defaultService", "service", "backendService", "errorService"} and isinstance(item, str)
        else _link_services(item, endpoint, services)
        for key, item in value.items()
    }


def _link(reference: str, endpoint: str, services: str) -> str:
    if reference.startswith("https://"):
        return reference
    if reference.startswith("projects/"):
        return endpoint + reference
    return relative(reference, services)


class SslCertificate(BalancerOperations):
    """Operations of a managed certificate, of which nothing changes."""


class SslPolicy(BalancerOperations):
    """Operations of an SSL policy: any change sends the three fields that can change."""

    changing = ("customFeatures", "minTlsVersion", "profile")
    marked = True

    @staticmethod
    def derive(planned: Properties, prior: Mapping[str, Any] | None) -> None:
        """Refuse features without the profile CUSTOM, and CUSTOM without features."""
        del prior
        profile, features = planned.get("profile"), planned.get("customFeatures")
        head = f"Error in SSL Policy {planned.get('name')}: the profile is set to {profile} but"
        if features and not unknown(features) and profile != "CUSTOM" and not unknown(profile):
            raise PlanError(f"{head} using custom_features requires the profile to be CUSTOM.")
        if profile == "CUSTOM" and not features:
            raise PlanError(f"{head} no custom_features are set.")

    def change_whole(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> None:
        """Send the three fields; features that the program leaves out are null."""
        del changed
        body = {"customFeatures": None, **self.body(planned, updating=True)}
        content = {key: body[key] for key in self.changing if key in body}
        self.change(resource_id, "PATCH", resource_id, {**content, "fingerprint": prior.get("fingerprint")})
