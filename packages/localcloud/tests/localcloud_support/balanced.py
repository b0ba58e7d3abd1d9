"""A service in two regions behind a load balancer of a running localcloud, and clients of its address."""

import contextlib
import ssl

import httpx

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control_client
from localcloud_support.balancer_programs import BALANCER, DNS, DOMAIN, GLOBAL
from localcloud_support.client import PARENT, until

COMPUTE = f"/compute/v1/{PARENT}"
AUDIENCE = f"https://{DOMAIN}"
NEAR, FAR = "us-east4", "europe-west4"
PLAIN_RULE = {
    "name": "plain", "portRange": "80", "loadBalancingScheme": "EXTERNAL_MANAGED",
    "target": f"{GLOBAL}/targetHttpProxies/http",
}  # fmt: skip


class Balanced:
    """The load balancer and its services.

    Attributes:
        client: The deployer's client.
        token: An identity token for the address.
    """

    def __init__(self, client, outliers, probe=None):
        self.client = client
        client.prepare()
        client.enable("dns", "certificatemanager")
        for region in (NEAR, FAR):
            env = [{"name": "REGION_NAME", "value": region}]
            template = client.template(scaling={"minInstanceCount": 1, "maxInstanceCount": 1}, env=env)
            template["maxInstanceRequestConcurrency"] = 1000
            if probe:
                template["containers"][0]["readinessProbe"] = probe
            body = {"template": template, "customAudiences": [AUDIENCE]}
            client.finish("run/v2", client.post(self.services(region), body, serviceId="llm"))
        for path, body in BALANCER.items():
            self._make(path, body | ({"outlierDetection": outliers} if path.endswith("backendServices") else {}))
        self._make("global/forwardingRules", PLAIN_RULE)
        until(lambda: len(self.listeners()) == 2)
        self.token = client.identity(AUDIENCE)

    def services(self, region):
        return f"/run/v2/{PARENT}/locations/{region}/services"

    def _make(self, path, body):
        answer = self.client.post(f"{COMPUTE}/{path}", body)
        assert answer.status_code == 200, answer.text

    def listeners(self):
        """Scheme -> what localcloud says of the listener."""
        shown = self.client.get("/localcloud/balancers").json()
        return {each["scheme"]: each for each in shown["balancers"]}

    def shares(self):
        return self.listeners()["http"]["regions"]["be"]

    def add_record(self):
        """The zone with the address record of the domain."""
        self.client.post(DNS, {"name": "acme", "dnsName": "acme.example.", "description": "d"})
        record = {"name": f"{DOMAIN}.", "type": "A", "ttl": 60, "rrdatas": [self.listeners()["https"]["address"]]}
        answer = self.client.post(f"{DNS}/acme/rrsets", record)
        assert answer.status_code == 200, answer.text

    def open(self, scheme="http", token=None, context=None, **headers):
        """A client of the address over http or https."""
        at = self.listeners()[scheme]["at"]
        if scheme == "https":
            authority = self.client.get("/localcloud/balancers").json()["authority"]
            context = context or ssl.create_default_context(cafile=authority)
        sent = {"host": DOMAIN, "authorization": f"Bearer {token or self.token}"} | headers
        return httpx.Client(
            base_url=f"{scheme}://{at}", headers=sent, timeout=30, trust_env=False, verify=context or NO_TLS
        )

    def region_of(self, client, path="/x", **arguments):
        """Status and region of the instance that answers."""
        answer = client.get(path, extensions={"sni_hostname": DOMAIN}, **arguments)
        if answer.status_code != 200:
            return answer.status_code, ""
        return 200, answer.json()["environment"]["REGION_NAME"]

    def front(self, region):
        """A client of the service's own address in a region."""
        uri = self.client.get(f"{self.services(region)}/llm").json()["uri"]
        headers = {"authorization": f"Bearer {self.client.identity(uri)}"}
        return httpx.Client(base_url=uri, headers=headers, timeout=30, trust_env=False, verify=NO_TLS)

    def move(self, place):
        """Put the clients into a place, from which the nearest region answers."""
        assert self.client.put("/localcloud/balancers", {"place": place}).status_code == 200

    @contextlib.contextmanager
    def fault(self, kind, **parameters):
        """A fault, as long as the context lasts."""
        control_client.add_fault(self.client.endpoint, kind, parameters)
        try:
            yield
        finally:
            control_client.clear_faults(self.client.endpoint, kind)
