"""Google's discovery documents, as the installed google-api-python-client has them, and what localcloud serves of them.

Owns the list of the served methods, from which `tools/traffic/discovery_data.py` makes localcloud's data.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import googleapiclient

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
# Documents of APIs that the client has none of, written by hand after the APIs' proto files.
OWN_DOCUMENTS = Path(__file__).parent / "documents"


@dataclass(frozen=True)
class Source:
    """One document.

    Attributes:
        api: Name of the API's messages here.
        document: File name without its ending.
        prefix: Prefix of Google's own path here.
        serves: Ids of the methods that localcloud serves.
    """

    api: str
    document: str
    prefix: str
    serves: tuple[str, ...]


def _under(parent: str, names: str) -> tuple[str, ...]:
    return tuple(f"{parent}.{name}" for name in names.split())


_POLICIES = "getIamPolicy setIamPolicy testIamPermissions"
_TPU = (
    *_under("tpu.projects.locations", "get list"),
    *_under("tpu.projects.locations.queuedResources", "create get list delete reset"),
    *_under("tpu.projects.locations.nodes", "get list patch delete getGuestAttributes"),
    *_under("tpu.projects.locations.operations", "cancel delete get list"),
    "tpu.projects.locations.acceleratorTypes.list",
    "tpu.projects.locations.runtimeVersions.list",
)
_MANAGER = "certificatemanager.projects.locations"
_DNS = (
    "dns.projects.get",
    *_under("dns.managedZones", "create get list patch update delete"),
    *_under("dns.resourceRecordSets", "create get list patch delete"),
    *_under("dns.changes", "create get list"),
)
_POOLS = "iam.projects.locations.workloadIdentityPools"
SOURCES = (
    Source("run", "run.v2", "/run/", (
        *_under("run.projects.locations.services", f"create get list patch delete {_POLICIES}"),
        *_under("run.projects.locations.services.revisions", "get list"),
        *_under("run.projects.locations.jobs", f"create get list patch delete run {_POLICIES}"),
        *_under("run.projects.locations.jobs.executions", "get list cancel delete"),
        *_under("run.projects.locations.jobs.executions.tasks", "get list"),
        *_under("run.projects.locations.operations", "delete get list wait"),
    )),
    Source("storage", "storage.v1", "/storage/v1/", (
        *_under("storage.buckets", "insert get list patch update delete getIamPolicy setIamPolicy testIamPermissions"),
        *_under("storage.buckets", "lockRetentionPolicy getStorageLayout restore"),
        *_under("storage.objects", "insert get list patch update delete copy rewrite compose move restore"),
        *_under("storage.objects", _POLICIES),
        "storage.projects.serviceAccount.get",
        "storage.anywhereCaches.list",
        "storage.folders.list",
        "storage.managedFolders.list",
    )),
    Source("iam", "iam.v1", "/iam/", (
        *_under("iam.projects.serviceAccounts", f"create get list patch delete enable disable {_POLICIES}"),
        *_under("iam.projects.serviceAccounts.keys", "create get list delete enable disable"),
        *_under("iam.projects.roles", "create get list patch delete undelete"),
        *_under(_POOLS, "create get list patch delete undelete listAttestationRules operations.get"),
        *_under(f"{_POOLS}.providers", "create get list patch delete undelete operations.get"),
    )),
    Source("sts", "sts.v1", "/sts/", ("sts.token",)),
    Source("iamcredentials", "iamcredentials.v1", "/iamcredentials/", _under(
        "iamcredentials.projects.serviceAccounts", "generateAccessToken generateIdToken"
    )),
    Source("crm", "cloudresourcemanager.v1", "/crm/", _under(
        "cloudresourcemanager.projects", f"get list {_POLICIES}"
    )),
    Source("crm3", "cloudresourcemanager.v3", "/crm/", _under(
        "cloudresourcemanager.projects", f"get search {_POLICIES}"
    )),
    Source("secretmanager", "secretmanager.v1", "/secretmanager/", (
        *_under("secretmanager.projects.secrets", f"create get list patch delete addVersion {_POLICIES}"),
        *_under("secretmanager.projects.secrets.versions", "get list access enable disable destroy"),
    )),
    Source("cloudkms", "cloudkms.v1", "/cloudkms/", (
        *_under("cloudkms.projects.locations.keyRings", f"create get list {_POLICIES}"),
        *_under("cloudkms.projects.locations.keyRings.cryptoKeys", f"create get list patch {_POLICIES}"),
        *_under("cloudkms.projects.locations.keyRings.cryptoKeys", "encrypt decrypt updatePrimaryVersion"),
        *_under(
            "cloudkms.projects.locations.keyRings.cryptoKeys.cryptoKeyVersions",
            "create get list patch destroy restore",
        ),
    )),
    Source("artifactregistry", "artifactregistry.v1", "/artifactregistry/", (
        *_under("artifactregistry.projects.locations.repositories", f"create get list patch delete {_POLICIES}"),
        *_under("artifactregistry.projects.locations.operations", "cancel get"),
        *_under("artifactregistry.projects.locations.repositories.dockerImages", "get list"),
        *_under("artifactregistry.projects.locations.repositories.files", "get list"),
        *_under("artifactregistry.projects.locations.repositories.packages", "get list delete"),
        *_under("artifactregistry.projects.locations.repositories.packages.tags", "create get list patch delete"),
        *_under("artifactregistry.projects.locations.repositories.packages.versions", "get list delete batchDelete"),
    )),
    Source("serviceusage", "serviceusage.v1", "/serviceusage/", (
        *_under("serviceusage.services", "get list enable disable batchEnable"),
        "serviceusage.services.batchGet",
        *_under("serviceusage.operations", "get list"),
    )),
    Source("serviceusage", "serviceusage.v1beta1", "/serviceusage/", ("serviceusage.operations.get",)),
    Source("logging", "logging.v2", "/logging/", (
        *_under("logging.entries", "list write"),
        *_under("logging.projects.metrics", "create get list update delete"),
    )),
    Source("monitoring", "monitoring.v3", "/monitoring/", (
        *_under("monitoring.projects.timeSeries", "create list"),
        "monitoring.projects.metricDescriptors.list",
        *_under("monitoring.projects.notificationChannels", "create get list patch delete"),
        *_under("monitoring.projects.alertPolicies", "create get list patch delete"),
        *_under("monitoring.projects.uptimeCheckConfigs", "create get list patch delete"),
    )),
    Source("dashboards", "monitoring.v1", "/monitoring/", (
        *_under("monitoring.projects.dashboards", "create get list patch delete"),
        *_under("monitoring.projects.location.prometheus.api.v1", "query query_range series labels"),
        *_under("monitoring.projects.location.prometheus.api.v1", "label.values metadata.list"),
    )),
    Source("cloudquotas", "cloudquotas.v1", "/cloudquotas/", (
        *_under("cloudquotas.projects.locations.services.quotaInfos", "get list"),
        *_under("cloudquotas.projects.locations.quotaPreferences", "create get list patch"),
    )),
    Source("cloudscheduler", "cloudscheduler.v1", "/cloudscheduler/", (
        *_under("cloudscheduler.projects.locations", "get list"),
        *_under("cloudscheduler.projects.locations.jobs", "create get list patch delete pause resume run"),
    )),
    Source("aiplatform", "aiplatform.v1", "/aiplatform/", (
        *_under("aiplatform.projects.locations.models", "upload get list delete"),
        "aiplatform.projects.locations.operations.get",
        "aiplatform.publishers.models.get",
    )),
    Source("cloudbilling", "cloudbilling.v1", "/cloudbilling/", (
        *_under("cloudbilling.billingAccounts", f"get list {_POLICIES}"),
        "cloudbilling.billingAccounts.projects.list",
        "cloudbilling.projects.getBillingInfo",
        "cloudbilling.services.list",
        "cloudbilling.services.skus.list",
    )),
    Source("billingbudgets", "billingbudgets.v1", "/billingbudgets/", _under(
        "billingbudgets.billingAccounts.budgets", "create get list patch delete"
    )),
    Source("tpu", "tpu.v2alpha1", "/tpu/", _TPU),
    Source("tpu2", "tpu.v2", "/tpu/", _TPU),
    # The beta's document, which the provider uses, serves for v1 too: it has every served method and message of v1.
    Source("compute", "compute.beta", "/compute/v1/", (
        "compute.projects.get",
        *_under("compute.regions", "get list"),
        *_under("compute.zones", "get list"),
        *_under("compute.globalOperations", "get wait"),
        *_under("compute.regionOperations", "get wait"),
        "compute.zoneOperations.get",
        "compute.zoneOperations.wait",
        *_under("compute.machineTypes", "get list"),
        *_under("compute.instances", "insert get list aggregatedList delete setMetadata"),
        *_under("compute.instances", "getGuestAttributes getSerialPortOutput"),
        *_under("compute.instances", f"addAccessConfig deleteAccessConfig setTags {_POLICIES}"),
        *_under("compute.networks", "insert get list patch delete getEffectiveFirewalls"),
        *_under("compute.subnetworks", "insert get list patch delete setPrivateIpGoogleAccess expandIpCidrRange"),
        *_under("compute.subnetworks", _POLICIES),
        *_under("compute.firewalls", "insert get list patch update delete"),
        *_under("compute.routers", "insert get list patch update delete"),
        *_under("compute.globalAddresses", "insert get list delete setLabels"),
        *_under("compute.globalForwardingRules", "insert get list patch delete setLabels setTarget"),
        *_under("compute.regionNetworkEndpointGroups", "insert get list delete"),
        *_under("compute.backendServices", "insert get list patch update delete setSecurityPolicy"),
        *_under("compute.urlMaps", "insert get list patch update delete"),
        *_under("compute.targetHttpsProxies", "insert get list patch delete setUrlMap setSslCertificates"),
        *_under("compute.targetHttpsProxies", "setSslPolicy setCertificateMap setQuicOverride"),
        *_under("compute.targetHttpProxies", "insert get list patch delete setUrlMap"),
        *_under("compute.sslCertificates", "insert get list delete"),
        *_under("compute.sslPolicies", "insert get list patch delete"),
        *_under("compute.securityPolicies", "insert get list patch delete setLabels"),
        *_under("compute.securityPolicies", "addRule patchRule removeRule getRule"),
    )),
    Source("certificatemanager", "certificatemanager.v1", "/certificatemanager/", (
        *_under(_MANAGER, "get list"),
        *_under(f"{_MANAGER}.certificates", "create get list patch delete"),
        *_under(f"{_MANAGER}.certificateMaps", "create get list patch delete"),
        *_under(f"{_MANAGER}.certificateMaps.certificateMapEntries", "create get list patch delete"),
        *_under(f"{_MANAGER}.dnsAuthorizations", "create get list patch delete"),
        *_under(f"{_MANAGER}.operations", "cancel delete get list"),
    )),
    Source("dns", "dns.v1", "/dns/", _DNS),
    Source("dns2", "dns.v1beta2", "/dns/", _DNS),
)  # fmt: skip


@cache
def document(name: str) -> Json:
    """A discovery document by its file name without the ending."""
    own_document = OWN_DOCUMENTS / f"{name}.json"
    definitions: Json = json.loads((own_document if own_document.exists() else DOCUMENTS / f"{name}.json").read_text())
    return definitions


def methods_of(part: Json) -> Iterator[Json]:
    """Every method of a document, in its order."""
    yield from part.get("methods", {}).values()
    for resource in part.get("resources", {}).values():
        yield from methods_of(resource)


@cache
def all_versions() -> tuple[Source, ...]:
    """Every document of the served APIs: first those of `SOURCES`, then their other versions, which serve nothing."""
    used = {source.document for source in SOURCES}
    newest = {source.api: source for source in SOURCES}
    others = []
    for source in {source.document.partition(".")[0]: source for source in newest.values()}.values():
        name = source.document.partition(".")[0]
        files = sorted(path.stem for path in DOCUMENTS.glob(f"{name}.*.json"))
        others += [Source(source.api, file, source.prefix, ()) for file in files if file not in used]
    return (*SOURCES, *others)


def path_of(source: Source, method: Json) -> str:
    """The path here with every parameter as {}: the API's prefix and Google's own path, which may begin with it."""
    parts = method.get("flatPath", method["path"]).removeprefix(source.prefix.lstrip("/")).split("{")
    return source.prefix + parts[0] + "".join("{}" + part.partition("}")[2] for part in parts[1:])


def upload_paths(method: Json) -> list[str]:
    """Google's own paths of a method that takes a media body, with every parameter as {}; none for other methods."""
    protocols = method.get("mediaUpload", {}).get("protocols", {})
    flat = method.get("flatPath", method["path"])
    paths = {protocol["path"].removesuffix(method["path"]) + flat for protocol in protocols.values()}
    return sorted(re.sub(r"\{[^}]*\}", "{}", path) for path in paths)
