"""One resource of each type of the provider's table as a program declares it, and a change of it."""

import copy
from pathlib import Path
from typing import Any

from pulumi_offline_support.google_compute import STANDING

# What goes over the wire in a whole life of each of them; test_requests.py writes and holds it.
GOLDEN = Path(__file__).parents[1] / "goldens" / "requests.json"

ROBOT = "serviceAccount:runtime@bezel-local.iam.gserviceaccount.com"

LATENCY = 'metric.type="run.googleapis.com/request_latencies" AND resource.type="cloud_run_revision"'
PROGRAMS: dict[str, dict[str, Any]] = {
    "gcp:cloudrunv2/service:Service": {
        "name": "llm",
        "location": "us-central1",
        "deletionProtection": False,
        "labels": {"app": "vllm"},
        "scaling": {"minInstanceCount": 0},
        "template": {
            "containers": [
                {
                    "image": "docker.io/vllm/vllm-openai:v1",
                    "args": ["--model=/mnt/models", "--max-model-len=4096"],
                    "envs": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
                    "ports": {"containerPort": 8080},
                    "resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}, "cpuIdle": False},
                    "startupProbe": {"httpGet": {"path": "/health"}, "periodSeconds": 10},
                }
            ],
            "scaling": {"minInstanceCount": 0, "maxInstanceCount": 1},
            "volumes": [{"name": "models", "gcs": {"bucket": "models", "readOnly": True}}],
        },
    },
    "gcp:cloudrunv2/serviceIamMember:ServiceIamMember": {
        "name": "llm",
        "location": "us-central1",
        "role": "roles/run.invoker",
        "member": "allUsers",
    },
    "gcp:serviceaccount/account:Account": {"accountId": "runtime", "displayName": "Runtime"},
    "gcp:serviceaccount/iAMMember:IAMMember": {
        "serviceAccountId": "projects/bezel-local/serviceAccounts/runtime@bezel-local.iam.gserviceaccount.com",
        "role": "roles/iam.serviceAccountUser",
        "member": ROBOT,
    },
    "gcp:storage/bucket:Bucket": {
        "name": "models",
        "location": "us-central1",
        "uniformBucketLevelAccess": True,
        "publicAccessPrevention": "enforced",
        "versioning": {"enabled": False},
        "lifecycleRules": [{"action": {"type": "Delete"}, "condition": {"age": 30}}],
    },
    "gcp:storage/bucketObject:BucketObject": {"bucket": "models", "name": "a/readme.txt", "content": "hello"},
    "gcp:storage/bucketIAMMember:BucketIAMMember": {
        "bucket": "models",
        "role": "roles/storage.objectViewer",
        "member": ROBOT,
    },
    "gcp:secretmanager/secret:Secret": {"secretId": "hf", "replication": {"auto": {}}},
    "gcp:secretmanager/secretVersion:SecretVersion": {
        "secret": "projects/bezel-local/secrets/hf",
        "secretData": "not-a-real-token",
    },
    "gcp:secretmanager/secretIamMember:SecretIamMember": {
        "secretId": "projects/bezel-local/secrets/hf",
        "role": "roles/secretmanager.secretAccessor",
        "member": ROBOT,
    },
    "gcp:artifactregistry/repository:Repository": {
        "repositoryId": "hub",
        "location": "us-central1",
        "format": "DOCKER",
        "mode": "REMOTE_REPOSITORY",
        "remoteRepositoryConfig": {"dockerRepository": {"publicRepository": "DOCKER_HUB"}},
    },
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": {
        "repository": "hub",
        "location": "us-central1",
        "role": "roles/artifactregistry.reader",
        "member": ROBOT,
    },
    "gcp:compute/network:Network": {"name": "nodes", "autoCreateSubnetworks": False},
    "gcp:compute/subnetwork:Subnetwork": {
        "name": "nodes-us-east5",
        "network": "projects/bezel-local/global/networks/nodes",
        "region": "us-east5",
        "ipCidrRange": "10.64.0.0/20",
        "privateIpGoogleAccess": True,
    },
    "gcp:compute/firewall:Firewall": {
        "name": "nodes-from-gateway",
        "network": "projects/bezel-local/global/networks/nodes",
        "allows": [{"protocol": "tcp", "ports": ["8000"]}],
        "sourceRanges": ["10.79.0.0/24", "10.80.0.0/24"],
        "targetTags": ["bezel-node"],
    },
    "gcp:compute/router:Router": {
        "name": "nodes-us-east5",
        "network": "projects/bezel-local/global/networks/nodes",
        "region": "us-east5",
    },
    "gcp:compute/routerNat:RouterNat": {
        "name": "nodes-us-east5",
        "router": STANDING,
        "region": "us-east5",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    },
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": {"workloadIdentityPoolId": "pipeline", "displayName": "CI"},
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": {
        "workloadIdentityPoolId": "pipeline",
        "workloadIdentityPoolProviderId": "forge",
        "displayName": "Forge",
        "attributeMapping": {"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"},
        "attributeCondition": "assertion.repository == 'example/repo'",
        "oidc": {"issuerUri": "https://token.actions.githubusercontent.com"},
    },
    "gcp:kms/keyRing:KeyRing": {"name": "states", "location": "us-central1"},
    "gcp:kms/cryptoKey:CryptoKey": {
        "name": "stack",
        "keyRing": "projects/bezel-local/locations/us-central1/keyRings/states",
    },
    "gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember": {
        "cryptoKeyId": "projects/bezel-local/locations/us-central1/keyRings/states/cryptoKeys/stack",
        "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
        "member": ROBOT,
    },
    "gcp:projects/iAMCustomRole:IAMCustomRole": {
        "roleId": "pipelineReader",
        "title": "Reads what a preview needs",
        "permissions": ["run.services.get", "compute.networks.get"],
    },
    "gcp:billing/budget:Budget": {
        "billingAccount": "BE2E10-10CA1C-10D000",
        "displayName": "stacks",
        "amount": {"specifiedAmount": {"currencyCode": "USD", "units": "100"}},
        "budgetFilter": {"projects": ["projects/123456789012"]},
        "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 1, "spendBasis": "FORECASTED_SPEND"}],
        "ownershipScope": "ALL_USERS",
    },
    "gcp:monitoring/notificationChannel:NotificationChannel": {
        "type": "email",
        "displayName": "Owners",
        "labels": {"email_address": "team@example.com"},
    },
    "gcp:monitoring/alertPolicy:AlertPolicy": {
        "displayName": "latency",
        "combiner": "OR",
        "conditions": [
            {
                "displayName": "p95",
                "conditionThreshold": {
                    "filter": LATENCY,
                    "comparison": "COMPARISON_GT",
                    "thresholdValue": 5000,
                    "duration": "300s",
                    "trigger": {"count": 1},
                    "aggregations": [{"alignmentPeriod": "60s", "perSeriesAligner": "ALIGN_PERCENTILE_95"}],
                },
            }
        ],
        "documentation": {"content": "Look at the queue."},
        "alertStrategy": {"autoClose": "1800s"},
        "userLabels": {"stack": "dev"},
    },
    "gcp:logging/metric:Metric": {
        "name": "tokens",
        "filter": 'resource.type="cloud_run_revision"',
        "metricDescriptor": {
            "metricKind": "DELTA",
            "valueType": "DISTRIBUTION",
            "labels": [{"key": "team", "valueType": "STRING"}],
        },
        "labelExtractors": {"team": "EXTRACT(jsonPayload.team)"},
        "valueExtractor": "EXTRACT(jsonPayload.tokens)",
        "bucketOptions": {"exponentialBuckets": {"numFiniteBuckets": 8, "growthFactor": 4, "scale": 1}},
    },
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": {
        "displayName": "health",
        "timeout": "10s",
        "period": "60s",
        "httpCheck": {"path": "/health", "port": 443, "useSsl": True, "validateSsl": True},
        "monitoredResource": {"type": "uptime_url", "labels": {"host": "llm.run.app", "project_id": "bezel-local"}},
    },
    "gcp:monitoring/dashboard:Dashboard": {
        "dashboardJson": '{"gridLayout": {"columns": "2"}, "displayName": "llm"}',
    },
    "gcp:cloudscheduler/job:Job": {
        "name": "weekdays",
        "region": "us-east4",
        "schedule": "0 8 * * 1-5",
        "timeZone": "Europe/Berlin",
        "retryConfig": {"retryCount": 3},
        "httpTarget": {
            "uri": "https://run.googleapis.com/v2/projects/bezel-local/locations/us-east4/services/llm",
            "httpMethod": "PATCH",
            "body": "e30=",
            "headers": {"Content-Type": "application/json"},
        },
    },
    "gcp:projects/service:Service": {"service": "run.googleapis.com", "disableOnDestroy": True},
    "gcp:compute/globalAddress:GlobalAddress": {"name": "ip"},
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": {
        "name": "group",
        "region": "us-central1",
        "networkEndpointType": "SERVERLESS",
        "cloudRun": {"service": "llm"},
    },
    "gcp:compute/securityPolicy:SecurityPolicy": {
        "name": "armor",
        "rules": [
            {
                "action": action,
                "priority": priority,
                "match": {"versionedExpr": "SRC_IPS_V1", "config": {"srcIpRanges": [ranges]}},
            }
            for action, priority, ranges in (("allow", 2147483647, "*"), ("deny(403)", 1000, "198.51.100.0/24"))
        ],
    },
    "gcp:compute/sSLPolicy:SSLPolicy": {"name": "tls", "profile": "MODERN", "minTlsVersion": "TLS_1_2"},
    "gcp:compute/backendService:BackendService": {
        "name": "backend",
        "loadBalancingScheme": "EXTERNAL_MANAGED",
        "protocol": "HTTPS",
        "backends": [{"group": "projects/bezel-local/regions/us-central1/networkEndpointGroups/group"}],
        "outlierDetection": {"consecutiveErrors": 5, "interval": {"seconds": 1}},
        "securityPolicy": "projects/bezel-local/global/securityPolicies/armor",
    },
    "gcp:compute/uRLMap:URLMap": {
        "name": "map",
        "defaultService": "projects/bezel-local/global/backendServices/backend",
        "hostRules": [{"hosts": ["llm.acme.example"], "pathMatcher": "llm"}],
        "pathMatchers": [
            {"name": "llm", "defaultService": "projects/bezel-local/global/backendServices/backend"},
        ],
    },
    "gcp:compute/managedSslCertificate:ManagedSslCertificate": {
        "name": "certificate",
        "managed": {"domains": ["llm.acme.example"]},
    },
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": {
        "name": "https",
        "urlMap": "projects/bezel-local/global/urlMaps/map",
        "sslCertificates": ["projects/bezel-local/global/sslCertificates/certificate"],
        "sslPolicy": "projects/bezel-local/global/sslPolicies/tls",
    },
    "gcp:compute/targetHttpProxy:TargetHttpProxy": {
        "name": "http",
        "urlMap": "projects/bezel-local/global/urlMaps/map",
    },
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": {
        "name": "rule",
        "ipAddress": "projects/bezel-local/global/addresses/ip",
        "loadBalancingScheme": "EXTERNAL_MANAGED",
        "portRange": "443",
        "target": "projects/bezel-local/global/targetHttpsProxies/https",
    },
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": {"name": "auth", "domain": "llm.acme.example"},
    "gcp:certificatemanager/certificate:Certificate": {
        "name": "certificate",
        "managed": {
            "domains": ["llm.acme.example"],
            "dnsAuthorizations": ["projects/bezel-local/locations/global/dnsAuthorizations/auth"],
        },
    },
    "gcp:certificatemanager/certificateMap:CertificateMap": {"name": "map", "description": "of the address"},
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry": {
        "name": "entry",
        "map": "map",
        "hostname": "llm.acme.example",
        "certificates": ["projects/bezel-local/locations/global/certificates/certificate"],
    },
    "gcp:dns/managedZone:ManagedZone": {"name": "zone", "dnsName": "acme.example."},
    "gcp:dns/recordSet:RecordSet": {
        "name": "llm.acme.example.",
        "managedZone": "zone",
        "type": "A",
        "ttl": 300,
        "rrdatas": ["203.0.113.10"],
    },
    "gcp:projects/iAMMember:IAMMember": {
        "project": "bezel-local",
        "role": "roles/logging.logWriter",
        "member": ROBOT,
    },
}

# As the published provider says of them: they cannot be deleted at Google, and a delete removes them from the state.
STAYS = {"gcp:kms/keyRing:KeyRing", "gcp:kms/cryptoKey:CryptoKey"}

UPDATES: dict[str, tuple[str, Any]] = {
    "gcp:cloudrunv2/service:Service": ("template.containers.0.args.1", "--max-model-len=8192"),
    "gcp:serviceaccount/account:Account": ("displayName", "Other"),
    "gcp:storage/bucket:Bucket": ("lifecycleRules.0.condition.age", 60),
    "gcp:storage/bucketObject:BucketObject": ("content", "bye"),
    "gcp:secretmanager/secret:Secret": ("labels", {"tier": "b"}),
    "gcp:secretmanager/secretVersion:SecretVersion": ("enabled", False),
    "gcp:artifactregistry/repository:Repository": ("description", "mirror"),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": ("description", "pipelines"),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": ("oidc.allowedAudiences", ["bezel"]),
    "gcp:kms/cryptoKey:CryptoKey": ("labels", {"tier": "b"}),
    "gcp:projects/iAMCustomRole:IAMCustomRole": ("permissions", ["run.services.get", "run.services.list"]),
    "gcp:billing/budget:Budget": ("amount.specifiedAmount.units", "200"),
    "gcp:monitoring/notificationChannel:NotificationChannel": ("enabled", False),
    "gcp:monitoring/alertPolicy:AlertPolicy": ("conditions.0.conditionThreshold.thresholdValue", 6000),
    "gcp:monitoring/uptimeCheckConfig:UptimeCheckConfig": ("period", "300s"),
    "gcp:monitoring/dashboard:Dashboard": ("dashboardJson", '{"displayName": "other"}'),
    "gcp:logging/metric:Metric": ("filter", "severity>=ERROR"),
    "gcp:cloudscheduler/job:Job": ("schedule", "0 9 * * 1-5"),
    "gcp:compute/subnetwork:Subnetwork": ("privateIpGoogleAccess", False),
    "gcp:compute/firewall:Firewall": ("allows.0.ports", ["9000"]),
    "gcp:compute/router:Router": ("description", "for updates"),
    "gcp:compute/globalAddress:GlobalAddress": ("labels", {"tier": "b"}),
    "gcp:compute/securityPolicy:SecurityPolicy": ("rules.1.action", "deny(404)"),
    "gcp:compute/sSLPolicy:SSLPolicy": ("profile", "RESTRICTED"),
    "gcp:compute/backendService:BackendService": ("outlierDetection.consecutiveErrors", 3),
    "gcp:compute/uRLMap:URLMap": ("description", "for updates"),
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": ("quicOverride", "ENABLE"),
    "gcp:compute/targetHttpProxy:TargetHttpProxy": ("urlMap", "projects/bezel-local/global/urlMaps/other"),
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": (
        "target",
        "projects/bezel-local/global/targetHttpsProxies/other",
    ),
    "gcp:certificatemanager/dnsAuthorization:DnsAuthorization": ("description", "of a name"),
    "gcp:certificatemanager/certificate:Certificate": ("labels", {"tier": "b"}),
    "gcp:certificatemanager/certificateMap:CertificateMap": ("description", "another"),
    "gcp:certificatemanager/certificateMapEntry:CertificateMapEntry": ("description", "another"),
    "gcp:dns/managedZone:ManagedZone": ("labels", {"tier": "b"}),
    "gcp:dns/recordSet:RecordSet": ("ttl", 60),
    "gcp:compute/routerNat:RouterNat": ("sourceSubnetworkIpRangesToNat", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES"),
}


def with_change(program: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    result = copy.deepcopy(program)
    *parents, last = path.split(".")
    into: Any = result
    for part in parents:
        into = into[int(part)] if part.isdigit() else into.setdefault(part, {})
    if value is None:
        del into[int(last) if last.isdigit() else last]
    else:
        into[int(last) if last.isdigit() else last] = value
    return result
