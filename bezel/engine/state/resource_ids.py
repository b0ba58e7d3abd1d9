"""Ids of resources, derived from their inputs alone, for resources whose creation a killed run did not record.

A row is a type of the Google provider (its import formats, https://www.pulumi.com/registry/packages/gcp/) or one of
this program's own. Leaves out types whose id the platform generates, such as a secret's version.
"""

import re
from collections.abc import Mapping
from typing import Any

from bezel.planner.team.series_labels import SECRETS_OF_STACKS

_SERVICE = "projects/{project}/locations/{location}/services/{name}"
_REPOSITORY = "projects/{project}/locations/{location}/repositories/"
_VERSION = "gcp:secretmanager/secretVersion:SecretVersion"
_SECRET = "projects/{project}/secrets/{secretId}"  # noqa: S105 - a name
_ACCOUNT = "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com"
_POOL = "projects/{project}/locations/global/workloadIdentityPools/{workloadIdentityPoolId}"
_MEMBER = "/{role}/{member}"

_GLOBAL = "projects/{project}/global"
_MANAGER = "projects/{project}/locations"

IDS: Mapping[str, str] = {
    "gcp:artifactregistry/repository:Repository": f"{_REPOSITORY}{{repositoryId}}",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": f"{_REPOSITORY}{{repository}}{_MEMBER}",
    "gcp:certificatemanager/certificate:Certificate": f"{_MANAGER}/{{location}}/certificates/{{name}}",
    "gcp:certificatemanager/certificateMap:CertificateMap": f"{_MANAGER}/global/certificateMaps/{{name}}",
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry": (
        f"{_MANAGER}/global/certificateMaps/{{map}}/certificateMapEntries/{{name}}"
    ),
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": f"{_MANAGER}/{{location}}/dnsAuthorizations/{{name}}",
    "gcp:cloudrunv2/service:Service": _SERVICE,
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember": f"{_SERVICE}{_MEMBER}",
    "gcp:cloudscheduler/job:Job": "projects/{project}/locations/{region}/jobs/{name}",
    "gcp:compute/backendService:BackendService": f"{_GLOBAL}/backendServices/{{name}}",
    "gcp:compute/firewall:Firewall": f"{_GLOBAL}/firewalls/{{name}}",
    "gcp:compute/globalAddress:GlobalAddress": f"{_GLOBAL}/addresses/{{name}}",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": f"{_GLOBAL}/forwardingRules/{{name}}",
    "gcp:compute/managedSslCertificate:ManagedSslCertificate": f"{_GLOBAL}/sslCertificates/{{name}}",
    "gcp:compute/network:Network": f"{_GLOBAL}/networks/{{name}}",
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": (
        "projects/{project}/regions/{region}/networkEndpointGroups/{name}"
    ),
    "gcp:compute/router:Router": "projects/{project}/regions/{region}/routers/{name}",
    "gcp:compute/routerNat:RouterNat": "{project}/{region}/{router}/{name}",
    "gcp:compute/sSLPolicy:SSLPolicy": f"{_GLOBAL}/sslPolicies/{{name}}",
    "gcp:compute/securityPolicy:SecurityPolicy": f"{_GLOBAL}/securityPolicies/{{name}}",
    "gcp:compute/subnetwork:Subnetwork": "projects/{project}/regions/{region}/subnetworks/{name}",
    "gcp:compute/targetHttpProxy:TargetHttpProxy": f"{_GLOBAL}/targetHttpProxies/{{name}}",
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": f"{_GLOBAL}/targetHttpsProxies/{{name}}",
    "gcp:compute/uRLMap:URLMap": f"{_GLOBAL}/urlMaps/{{name}}",
    "gcp:dns/managedZone:ManagedZone": "projects/{project}/managedZones/{name}",
    "gcp:dns/recordSet:RecordSet": "projects/{project}/managedZones/{managedZone}/rrsets/{name}/{type}",
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": _POOL,
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": (
        f"{_POOL}/providers/{{workloadIdentityPoolProviderId}}"
    ),
    "gcp:kms/cryptoKey:CryptoKey": "{keyRing}/cryptoKeys/{name}",
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": f"{{cryptoKeyId}}{_MEMBER}",
    "gcp:kms/keyRing:KeyRing": "projects/{project}/locations/{location}/keyRings/{name}",
    "gcp:logging/metric:Metric": "{name}",
    "gcp:projects/iAMCustomRole:IAMCustomRole": "projects/{project}/roles/{roleId}",
    "gcp:projects/iAMMember:IAMMember": f"{{project}}{_MEMBER}",
    "gcp:projects/service:Service": "{project}/{service}",
    "gcp:secretmanager/secret:Secret": _SECRET,
    "gcp:secretmanager/secretIamMember:SecretIamMember": f"{_SECRET}{_MEMBER}",
    "gcp:serviceaccount/account:Account": _ACCOUNT,
    "gcp:serviceaccount/iAMMember:IAMMember": f"{{serviceAccountId}}{_MEMBER}",
    "gcp:storage/bucket:Bucket": "{name}",
    "gcp:storage/bucketIAMMember:BucketIAMMember": f"b/{{bucket}}{_MEMBER}",
    "gcp:storage/bucketObject:BucketObject": "{bucket}-{name}",
    "pulumi-python:dynamic/components:TpuRequest": "projects/{project}/leases/{name}",
}
# Types that look up, wait, measure, move traffic or set what another resource has: a killed run cannot leave anything
# of them, and the next `up` repeats them. A request that a wait for a lease sends in another zone belongs to the
# lease's request, and is found and deleted with it.
MAKES_NOTHING = frozenset(
    {
        # Of the Pulumi package, in programs of other languages.
        "bezel:components:ModelFiles",
        "bezel:components:ScheduledMinimum",
        "bezel:components:ServiceDrain",
        "bezel:components:TrafficSwitch",
        "bezel:smoke:AddressCheck",
        "bezel:smoke:DoorCheck",
        "bezel:smoke:HealthCheck",
        "bezel:smoke:ShortBenchmark",
        "pulumi-python:dynamic/bootstrap:StackGuard",
        "pulumi-python:dynamic/components:LeaseAfterChecks",
        "pulumi-python:dynamic/components:ModelFiles",
        "pulumi-python:dynamic/components:ScheduledMinimum",
        "pulumi-python:dynamic/components:ServiceDrain",
        "pulumi-python:dynamic/components:TpuNode",
        "pulumi-python:dynamic/components:TrafficSwitch",
        "pulumi-python:dynamic/smoke:AddressCheck",
        "pulumi-python:dynamic/smoke:DoorCheck",
        "pulumi-python:dynamic/smoke:HealthCheck",
        "pulumi-python:dynamic/smoke:ShortBenchmark",
    }
)


def is_harmless(kind: str, inputs: Mapping[str, Any]) -> bool:
    """Whether a resource that a killed run may have made can stay: the next `up` makes another one.

    So a version of a secret that a stack makes for itself: what names a version names the one in the state, and all go
    with the secret. A version of any other secret holds a user's value.
    """
    name = str(inputs.get("secret") or "").rpartition("/")[2]
    return kind == _VERSION and name.startswith(SECRETS_OF_STACKS)


def derived_id(kind: str, inputs: Mapping[str, Any], project: str | None) -> str | None:
    """The id that the provider gives such a resource, or None where it does not follow from the inputs.

    Args:
        kind: The type's token.
        inputs: The resource's inputs after the provider's check, so with generated names.
        project: The provider's own project, for resources that name none.
    """
    template = IDS.get(kind)
    values = {"project": project} | {key: value for key, value in inputs.items() if value not in (None, "")}
    if template is None or not all(isinstance(values.get(key), str) for key in re.findall(r"{(\w+)}", template)):
        return None
    path, member, rest = template.partition(_MEMBER)
    whole = path.format_map(values)
    if member:
        # A parent may be named by its full path, which already contains project and location.
        parent = str(values[re.findall(r"{(\w+)}", path)[-1]])
        whole = parent if parent.startswith("projects/") else whole
        condition = values.get("condition")
        named = dict(condition) if isinstance(condition, Mapping) else {}
        parts = [named.get(name) or "" for name in ("title", "description", "expression")] if named else []
        return "/".join([f"{whole}{member.format_map(values)}{rest}", *parts])
    return whole
