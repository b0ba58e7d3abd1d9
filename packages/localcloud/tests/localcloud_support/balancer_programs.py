"""Bodies of a load balancer's resources, as the Google provider sends them, and the order in which they are made."""

from localcloud_support.in_process import COMPUTE, PARENT

MANAGER, DNS = f"/certificatemanager/v1/{PARENT}/locations/global", f"/dns/v1/{PARENT}/managedZones"
GLOBAL = f"{PARENT}/global"
DOMAIN = "llm.acme.example"
# path below the project -> body, in order
BALANCER = {
    "global/addresses": {"name": "ip", "networkTier": "PREMIUM", "labels": {"a": "b"}},
    "regions/us-east4/networkEndpointGroups": {
        "name": "us", "networkEndpointType": "SERVERLESS", "cloudRun": {"service": "llm"}, "appEngine": None,
        "serverlessDeployment": None, "region": f"{PARENT}/global/regions/us-east4",
    },
    "regions/europe-west4/networkEndpointGroups": {
        "name": "eu", "networkEndpointType": "SERVERLESS", "cloudRun": {"service": "llm"},
    },
    "global/securityPolicies": {
        "name": "armor",
        "rules": [{
            "action": "throttle", "priority": 1000,
            "match": {"versionedExpr": "SRC_IPS_V1", "config": {"srcIpRanges": ["*"]}},
        }],
    },
    "global/sslPolicies": {"name": "tls", "profile": "MODERN", "minTlsVersion": "TLS_1_2"},
    "global/backendServices": {
        "name": "be", "loadBalancingScheme": "EXTERNAL_MANAGED", "protocol": "HTTPS", "iap": None,
        "backends": [
            {"group": f"{PARENT}/regions/us-east4/networkEndpointGroups/us", "maxUtilization": None},
            {"group": f"{PARENT}/regions/europe-west4/networkEndpointGroups/eu"},
        ],
        "outlierDetection": {"consecutiveGatewayFailure": 3}, "securityPolicy": f"{GLOBAL}/securityPolicies/armor",
    },
    "global/urlMaps": {"name": "map", "defaultService": f"{GLOBAL}/backendServices/be"},
    "global/sslCertificates": {"name": "cert", "type": "MANAGED", "managed": {"domains": [DOMAIN]}},
    "global/targetHttpsProxies": {
        "name": "https", "urlMap": f"{GLOBAL}/urlMaps/map", "sslCertificates": [f"{GLOBAL}/sslCertificates/cert"],
        "sslPolicy": f"{GLOBAL}/sslPolicies/tls", "quicOverride": "NONE", "serverTlsPolicy": None,
    },
    "global/targetHttpProxies": {"name": "http", "urlMap": f"{GLOBAL}/urlMaps/map"},
    "global/forwardingRules": {
        "name": "rule", "IPAddress": f"{GLOBAL}/addresses/ip", "IPProtocol": "TCP", "portRange": "443",
        "loadBalancingScheme": "EXTERNAL_MANAGED", "target": f"{GLOBAL}/targetHttpsProxies/https",
    },
}  # fmt: skip


def make_balancer(project, bodies=BALANCER):
    """Make the resources of a balancer."""
    for path, body in bodies.items():
        project.ok("POST", f"{COMPUTE}/{path}", body)


def make_zone(project, dns_name="acme.example."):
    """A public zone."""
    project.cloud.store.put("api", "dns.googleapis.com", {"state": "ENABLED"})
    return project.ok("POST", DNS, {"name": "acme", "dnsName": dns_name, "description": "d", "visibility": "public"})


def add_record(project, name, kind, *data):
    """A record set of the zone, by a change."""
    record = {"name": name, "type": kind, "ttl": 300, "rrdatas": list(data)}
    return project.ok("POST", f"{DNS}/acme/changes", {"additions": [record]})
