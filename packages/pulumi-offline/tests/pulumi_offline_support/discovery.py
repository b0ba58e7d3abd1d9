"""Google's discovery documents: the schema of each resource type, and the schemas of a document."""

import functools
import json
from importlib.resources import files
from typing import Any

SCHEMAS = {
    "gcp:artifactregistry/repository:Repository": ("artifactregistry.v1", "Repository"),
    "gcp:billing/budget:Budget": ("billingbudgets.v1", "GoogleCloudBillingBudgetsV1Budget"),
    "gcp:cloudrunv2/service:Service": ("run.v2", "GoogleCloudRunV2Service"),
    "gcp:compute/firewall:Firewall": ("compute.v1", "Firewall"),
    "gcp:compute/network:Network": ("compute.v1", "Network"),
    "gcp:compute/router:Router": ("compute.v1", "Router"),
    "gcp:compute/routerNat:RouterNat": ("compute.v1", "RouterNat"),
    "gcp:compute/subnetwork:Subnetwork": ("compute.v1", "Subnetwork"),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": ("iam.v1", "WorkloadIdentityPool"),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": ("iam.v1", "WorkloadIdentityPoolProvider"),
    "gcp:kms/cryptoKey:CryptoKey": ("cloudkms.v1", "CryptoKey"),
    "gcp:kms/keyRing:KeyRing": ("cloudkms.v1", "KeyRing"),
    "gcp:projects/iAMCustomRole:IAMCustomRole": ("iam.v1", "Role"),
    "gcp:logging/metric:Metric": ("logging.v2", "LogMetric"),
    "gcp:monitoring/notificationChannel:NotificationChannel": ("monitoring.v3", "NotificationChannel"),
    "gcp:monitoring/alertPolicy:AlertPolicy": ("monitoring.v3", "AlertPolicy"),
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": ("monitoring.v3", "UptimeCheckConfig"),
    "gcp:monitoring/dashboard:Dashboard": ("monitoring.v1", "Dashboard"),
    "gcp:cloudscheduler/job:Job": ("cloudscheduler.v1", "Job"),
    "gcp:compute/globalAddress:GlobalAddress": ("compute.beta", "Address"),
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": ("compute.beta", "ForwardingRule"),
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": ("compute.beta", "NetworkEndpointGroup"),
    "gcp:compute/backendService:BackendService": ("compute.beta", "BackendService"),
    "gcp:compute/uRLMap:URLMap": ("compute.beta", "UrlMap"),
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": ("compute.beta", "TargetHttpsProxy"),
    "gcp:compute/targetHttpProxy:TargetHttpProxy": ("compute.beta", "TargetHttpProxy"),
    "gcp:compute/managedSslCertificate:ManagedSslCertificate": ("compute.beta", "SslCertificate"),
    "gcp:compute/sSLPolicy:SSLPolicy": ("compute.beta", "SslPolicy"),
    "gcp:compute/securityPolicy:SecurityPolicy": ("compute.beta", "SecurityPolicy"),
    "gcp:certificatemanager/certificate:Certificate": ("certificatemanager.v1", "Certificate"),
    "gcp:certificatemanager/certificateMap:CertificateMap": ("certificatemanager.v1", "CertificateMap"),
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry": (
        "certificatemanager.v1",
        "CertificateMapEntry",
    ),
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": ("certificatemanager.v1", "DnsAuthorization"),
    "gcp:dns/managedZone:ManagedZone": ("dns.v1beta2", "ManagedZone"),
    "gcp:dns/recordSet:RecordSet": ("dns.v1beta2", "ResourceRecordSet"),
    "gcp:secretmanager/secret:Secret": ("secretmanager.v1", "Secret"),
    "gcp:secretmanager/secretVersion:SecretVersion": ("secretmanager.v1", "SecretVersion"),
    "gcp:serviceaccount/account:Account": ("iam.v1", "ServiceAccount"),
    "gcp:storage/bucket:Bucket": ("storage.v1", "Bucket"),
    "gcp:storage/bucketObject:BucketObject": ("storage.v1", "Object"),
}


@functools.cache
def discovery(name: str) -> dict[str, Any]:
    """The schemas of a document by their names."""
    text = files("googleapiclient").joinpath("discovery_cache", "documents", f"{name}.json").read_text("utf-8")
    return dict(json.loads(text)["schemas"])
