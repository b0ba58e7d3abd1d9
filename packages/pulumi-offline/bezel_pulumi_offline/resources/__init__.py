"""Table of every resource type that the stand-in supports, by Pulumi's token.

The rows are data (data/*.json): properties and the form of the calls; so are the values that Check refuses
(validations/*.json). The modules here are the classes of those types whose API differs from most.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import read_fields
from bezel_pulumi_offline.lifecycle.resource import Operations, ResourceType
from bezel_pulumi_offline.lifecycle.validations import Validations
from bezel_pulumi_offline.resources.accounts import Account
from bezel_pulumi_offline.resources.billing import Budget
from bezel_pulumi_offline.resources.buckets import Bucket
from bezel_pulumi_offline.resources.compute import ComputeOperations
from bezel_pulumi_offline.resources.iam_members import Member, MemberType
from bezel_pulumi_offline.resources.identity import CustomRole, Pool, PoolProvider
from bezel_pulumi_offline.resources.kms import CryptoKey, KeyRing
from bezel_pulumi_offline.resources.load_balancing import compute as balancers
from bezel_pulumi_offline.resources.load_balancing.certificates import ManagerOperations
from bezel_pulumi_offline.resources.load_balancing.dns import RecordSet, Zone
from bezel_pulumi_offline.resources.load_balancing.proxies import TargetHttpsProxy, TargetProxy
from bezel_pulumi_offline.resources.load_balancing.security_policies import SecurityPolicy
from bezel_pulumi_offline.resources.logging import Metric
from bezel_pulumi_offline.resources.monitoring import Channel, Dashboard, MonitoringResource, UptimeCheck
from bezel_pulumi_offline.resources.networks import Firewall, Subnetwork
from bezel_pulumi_offline.resources.objects import Object
from bezel_pulumi_offline.resources.routers import Nat, Router
from bezel_pulumi_offline.resources.scheduler import Job
from bezel_pulumi_offline.resources.secrets import Version
from bezel_pulumi_offline.resources.services import Enabled

_DATA = Path(__file__).parent / "data"
_VALIDATIONS = Path(__file__).parent / "validations"
_GROUPS = json.loads((_DATA / "groups.json").read_bytes())
_OPERATIONS = {
    "gcp:billing/budget:Budget": Budget,
    "gcp:certificatemanager/certificate:Certificate": ManagerOperations,
    "gcp:certificatemanager/certificateMap:CertificateMap": ManagerOperations,
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry": ManagerOperations,
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": ManagerOperations,
    "gcp:cloudscheduler/job:Job": Job,
    "gcp:compute/backendService:BackendService": balancers.BackendService,
    "gcp:compute/globalAddress:GlobalAddress": balancers.Address,
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": balancers.ForwardingRule,
    "gcp:compute/managedSslCertificate:ManagedSslCertificate": balancers.SslCertificate,
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": balancers.EndpointGroup,
    "gcp:compute/sSLPolicy:SSLPolicy": balancers.SslPolicy,
    "gcp:compute/securityPolicy:SecurityPolicy": SecurityPolicy,
    "gcp:compute/targetHttpProxy:TargetHttpProxy": TargetProxy,
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": TargetHttpsProxy,
    "gcp:compute/uRLMap:URLMap": balancers.UrlMap,
    "gcp:dns/managedZone:ManagedZone": Zone,
    "gcp:dns/recordSet:RecordSet": RecordSet,
    "gcp:compute/firewall:Firewall": Firewall,
    "gcp:compute/network:Network": ComputeOperations,
    "gcp:compute/router:Router": Router,
    "gcp:compute/routerNat:RouterNat": Nat,
    "gcp:compute/subnetwork:Subnetwork": Subnetwork,
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": Pool,
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": PoolProvider,
    "gcp:kms/cryptoKey:CryptoKey": CryptoKey,
    "gcp:kms/keyRing:KeyRing": KeyRing,
    "gcp:logging/metric:Metric": Metric,
    "gcp:projects/iAMCustomRole:IAMCustomRole": CustomRole,
    "gcp:monitoring/alertPolicy:AlertPolicy": MonitoringResource,
    "gcp:monitoring/dashboard:Dashboard": Dashboard,
    "gcp:monitoring/notificationChannel:NotificationChannel": Channel,
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": UptimeCheck,
    "gcp:projects/service:Service": Enabled,
    "gcp:secretmanager/secretVersion:SecretVersion": Version,
    "gcp:serviceaccount/account:Account": Account,
    "gcp:storage/bucket:Bucket": Bucket,
    "gcp:storage/bucketObject:BucketObject": Object,
}


def read_type(token: str, row: Mapping[str, Any], operations: type[Operations] | None = None) -> ResourceType:
    """Return the resource type of a row.

    Args:
        token: Pulumi's token of the type.
        row: Attributes of `ResourceType`, or, with a `parent`, of `MemberType`; its fields as in `read_fields`.
        operations: The class that makes the calls, where the API differs from most.
    """
    values = {
        **row,
        "fields": read_fields(row["fields"], _GROUPS),
        "imports": tuple(row.get("imports", ())),
        "waits": frozenset(row.get("waits", ())),
        "timeouts": frozenset(row.get("timeouts", ("create", "update", "delete"))),
        "validations": _validations(token),
    }
    if "parent" in row:
        return MemberType(pulumi_type=token, operations=Member, **values)
    return ResourceType(pulumi_type=token, operations=operations, **values)


def _validations(token: str) -> Validations:
    rules = _RULES.get(token, {})
    rules = _RULES[rules["like"]] if "like" in rules else rules
    return Validations({**_ENUMS.get(token, {}), **rules.get("values", {})}, tuple(rules.get("together", ())))


_ENUMS, _RULES, _BALANCER_RULES = (
    json.loads((_VALIDATIONS / f"{name}.json").read_bytes()) for name in ("enums", "rules", "balancers")
)
_RULES |= _BALANCER_RULES
TYPES = {
    token: read_type(token, row, _OPERATIONS.get(token))
    for file in sorted(_DATA.glob("*.json"))
    if file.name != "groups.json"
    for token, row in json.loads(file.read_bytes()).items()
}
