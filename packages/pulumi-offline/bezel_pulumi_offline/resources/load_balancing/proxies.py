"""Operations of target proxies, each part of which has a verb of its own."""

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from bezel_pulumi_offline.lifecycle.comparisons import relative
from bezel_pulumi_offline.lifecycle.resource import fill
from bezel_pulumi_offline.lifecycle.values import Properties
from bezel_pulumi_offline.resources.load_balancing.compute import BalancerOperations


class TargetProxy(BalancerOperations):
    """Operations of a target HTTP proxy."""

    setters: ClassVar[Mapping[str, str]] = {"urlMap": "projects/{project}/targetHttpProxies/{name}/setUrlMap"}
    links: ClassVar[Mapping[str, str]] = {"urlMap": "urlMaps"}

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the proxy, with relative links."""
        sent = super().body(planned, updating=updating)
        for name, collection in self.links.items():
            place = fill("projects/{project}/global/", planned) + f"{collection}/"
            if isinstance(sent.get(name), list):
                sent[name] = [relative(link, place) if ".googleapis.com/" not in link else link for link in sent[name]]
            elif name in sent:
                sent[name] = relative(sent[name], place)
        return sent


class TargetHttpsProxy(TargetProxy):
    """Operations of a target HTTPS proxy: each part has a verb, and every body names the client's TLS policy."""

    always: ClassVar[Mapping[str, Any]] = {"serverTlsPolicy": None}
    setters: ClassVar[Mapping[str, str]] = {
        "quicOverride": "projects/{project}/global/targetHttpsProxies/{name}/setQuicOverride",
        "sslCertificates": "projects/{project}/targetHttpsProxies/{name}/setSslCertificates",
        "certificateMap": "projects/{project}/global/targetHttpsProxies/{name}/setCertificateMap",
        "sslPolicy": "projects/{project}/global/targetHttpsProxies/{name}/setSslPolicy",
        "urlMap": "projects/{project}/targetHttpsProxies/{name}/setUrlMap",
    }
    links: ClassVar[Mapping[str, str]] = {
        "urlMap": "urlMaps",
        "sslPolicy": "sslPolicies",
        "sslCertificates": "sslCertificates",
    }

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the proxy; certificates of Certificate Manager are among the others."""
        sent = {**self.always, **super().body(planned, updating=updating)}
        managed = [_manager_link(str(name)) for name in planned.get("certificateManagerCertificates") or []]
        policy = sent["serverTlsPolicy"]
        return (
            sent
            | ({"sslCertificates": managed} if managed else {})
            | ({"serverTlsPolicy": relative(policy, "")} if policy else {})
        )

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Change the parts; those of Certificate Manager are set as the other certificates are."""
        if "certificateManagerCertificates" in changed:
            changed = {*changed, "sslCertificates"} - {"certificateManagerCertificates"}
        return super().update(resource_id, planned, prior, changed)

    def set_body(self, name: str, planned: Mapping[str, Any]) -> Properties:
        """Return the body of a verb, with the client's TLS policy."""
        return super().set_body(name, planned) | {"serverTlsPolicy": self.body(planned)["serverTlsPolicy"]}

    def change_whole(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> None:
        """Set the client's TLS policy, with the fingerprint as it is now."""
        del prior, changed
        present = self.call("GET", resource_id, self.kind.query) or {}
        content = {"fingerprint": present.get("fingerprint"), "serverTlsPolicy": self.body(planned)["serverTlsPolicy"]}
        self.change(resource_id, "PATCH", resource_id, content)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the proxy, with the certificates of Certificate Manager apart from the others."""
        answer = super().read(resource_id, values)
        links = (answer or {}).get("sslCertificates", [])
        if answer is not None:
            answer["sslCertificates"] = [link for link in links if "certificatemanager" not in link]
            answer["certificateManagerCertificates"] = [link for link in links if "certificatemanager" in link]
        return answer


def _manager_link(name: str) -> str:
    if name.startswith("//") or re.match("https?://", name):
        return name
    return f"https://certificatemanager.googleapis.com/v1/{name}"
