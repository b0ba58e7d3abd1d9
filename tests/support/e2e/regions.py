"""A stack of several regions behind one address, deployed on a localcloud of its own, and who asks at the address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from bezel_localcloud import control_client
from bezel_localcloud.core.files.locks import using
from localcloud_support.client import until
from tests.support.e2e import warm_localcloud
from tests.support.e2e.fault_harness import without_preview
from tests.support.e2e.rehearsal import BUCKET
from tests.support.e2e.steady_client import SteadyClient
from tests.support.e2e.streaming_callers import StreamingCallers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.e2e.rehearsal import Rehearsal, Run

A, B, C = "us-east4", "europe-west4", "europe-west1"
PROJECT = "projects/bezel-local"
DOMAIN, OTHER_DOMAIN = "llm.acme.example", "chat.acme.example"
ZONE = "acme"
QUOTA = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
SMOKE = {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}


@dataclass
class RegionsStack:
    """A stack with an address.

    Attributes:
        rehearsal: Its checkout and its cloud.
        name: Its name.
    """

    rehearsal: Rehearsal
    name: str = "l4-qat"

    def prepare(self, **settings: Any) -> None:
        """Set a short benchmark and settings (`region=None` removes one), and make the DNS zone of the domains."""
        self._set({"smoke": SMOKE, "cost.max_hourly_usd": 8} | settings)
        self.rehearsal.start_cloud()
        with self.rehearsal.api() as api:
            enable = f"/serviceusage/v1/{PROJECT}/services/dns.googleapis.com:enable"
            assert api.post(enable, json={}).is_success
            body = {"name": ZONE, "dnsName": "acme.example.", "description": "of the tests"}
            assert api.post(f"/dns/v1/{PROJECT}/managedZones", json=body).is_success

    def _set(self, settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            self.rehearsal.set(name, value, self.name)

    def up(self, **settings: Any) -> Run:
        """Change settings, and deploy."""
        self._set(settings)
        return self.rehearsal.local("up", self.name, *without_preview())

    def deploy(self, **settings: Any) -> Run:
        """Deploy, which works; then nothing is left to do."""
        run = self.up(**settings)
        assert run.code == 0, run.text
        self.nothing_left()
        return run

    def nothing_left(self) -> None:
        """A preview has no changes."""
        shown = self.rehearsal.local("preview", self.name, "--", "--expect-no-changes")
        assert shown.code == 0, shown.text

    def services(self) -> set[tuple[str, str]]:
        """Region and name of each service."""
        names = (each.split("/") for each in self.rehearsal.exists().get("services", []))
        return {(parts[3], parts[5]) for parts in names}

    def describe(self, region: str, service: str = "bezel-l4-qat") -> dict[str, Any]:
        """A service as run v2 describes it."""
        with self.rehearsal.api() as api:
            described: dict[str, Any] = api.get(f"/run/v2/{PROJECT}/locations/{region}/services/{service}").json()
            return described

    def client(self, domain: str = DOMAIN) -> SteadyClient:
        """A client of the address with a token for it, once the domain's certificate is active."""
        (listener,) = self.balancers()["balancers"]
        url, authority = f"https://{listener['at']}", str(self.balancers()["authority"])
        client = SteadyClient(url, self.rehearsal.token(f"https://{domain}"), None, domain, authority)
        until(lambda: client.ask_once() == 200)
        return client

    def callers(self) -> StreamingCallers:
        """Callers of the address who stream, once it answers."""
        client = self.client()
        at, model = client.url.removeprefix("https://"), self.rehearsal.outputs(self.name)["model"]
        return StreamingCallers(at, client.domain, client.authority, client.token, model)

    def slow_down(self, speed: float) -> None:
        """Start localcloud again with its waits that many times shorter, and an instance in each region."""
        self.rehearsal.stop_cloud()
        warm_localcloud.start(self.rehearsal.cloud, "--speed", str(speed))
        for url in self.rehearsal.outputs(self.name)["urls"].values():
            headers = {"Authorization": f"Bearer {self.rehearsal.token(url)}"}
            until(lambda at=url, sent=headers: httpx.get(f"{at}/health", headers=sent, timeout=60).is_success, 60)

    def request_count(self, region: str, since: str) -> int:
        """Number of completions that a region's service answered since then, from the request log; 1000 at most."""
        query = f'httpRequest.requestUrl:"/v1/completions" resource.labels.location="{region}" timestamp>="{since}"'
        with self.rehearsal.api() as api:
            body = {"resourceNames": [PROJECT], "filter": query, "pageSize": 1000}
            return len(api.post("/logging/v2/entries:list", json=body).json().get("entries", []))

    def balancers(self) -> dict[str, Any]:
        """What localcloud says of its load balancers."""
        return control_client.balancers(self.rehearsal._endpoint())

    def serving_regions(self) -> set[str]:
        """Regions that the balancer may send requests to."""
        (listener,) = self.balancers()["balancers"]
        return {region for shares in listener["regions"].values() for region, share in shares.items() if share}

    def fault(self, kind: str, **parameters: object) -> None:
        """Add a fault."""
        control_client.add_fault(self.rehearsal._endpoint(), kind, parameters)

    def mend(self) -> None:
        """Take every fault off."""
        control_client.clear_faults(self.rehearsal._endpoint())

    def remove_quota(self, region: str) -> None:
        """Ask for a GPU quota of 0 in a region, which Google grants at once."""
        preference = {
            "service": "run.googleapis.com",
            "quotaId": QUOTA,
            "dimensions": {"region": region},
            "quotaConfig": {"preferredValue": "0"},
            "contactEmail": "me@acme.example",
        }
        checks = ["QUOTA_DECREASE_BELOW_USAGE", "QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"]
        query = {"quotaPreferenceId": region, "ignoreSafetyChecks": checks}
        with self.rehearsal.api() as api:
            path = f"/cloudquotas/v1/{PROJECT}/locations/global/quotaPreferences"
            answer = api.post(path, params=query, json=preference)
            assert answer.is_success, answer.text

    def destroy(self) -> None:
        """Destroy the stack, which leaves what no stack has made: the weights and the zone, with its own records."""
        with using(self.rehearsal.cloud):  # as a run on another stack does: localcloud keeps running
            gone = self.rehearsal.local("down", self.name)
        assert gone.code == 0, gone.text
        left = {
            kind: names for kind, names in self.rehearsal.exists().items() if kind not in {"enabledApis", "objects"}
        }
        assert left == {"buckets": [BUCKET], "managedZones": [f"{PROJECT}/managedZones/{ZONE}"]}


def deploy_two(rehearsal: Rehearsal) -> None:
    """Deploy the stack in two regions with an address."""
    made = RegionsStack(rehearsal)
    made.prepare(region=None, regions=[A, B], address={"domain": DOMAIN, "zone": ZONE})
    made.deploy()


def changes(run: Run) -> set[str]:
    """Verb and short name of what a run has changed: `created vllm-service-us-east4-service`."""
    rows = re.findall(r"^ [-+~]+ +\S+ (\S+) (created|updated|deleted|replaced)\b", run.text, re.MULTILINE)
    return {f"{verb} {name}" for name, verb in rows}
