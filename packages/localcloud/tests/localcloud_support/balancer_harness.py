"""The trials of load balancing's, Certificate Manager's and Cloud DNS's methods, for the table of every method."""

from localcloud_support.balancer_programs import BALANCER, DNS, MANAGER
from localcloud_support.client import PARENT
from localcloud_support.in_process import COMPUTE

LOCATION = f"{PARENT}/locations/global"
_AUTHORIZATION = f"{LOCATION}/dnsAuthorizations/tried"
_CERTIFICATE = f"{LOCATION}/certificates/tried"
_CHANGES = {
    "global/forwardingRules": {"loadBalancingScheme": "EXTERNAL"},
    "global/backendServices": {"timeoutSec": 60},
    "global/urlMaps": {"description": "d"},
    "global/targetHttpsProxies": {"quicOverride": "ENABLE"},
    "global/targetHttpProxies": {"description": "d"},
    "global/sslPolicies": {"minTlsVersion": "TLS_1_1"},
    "global/securityPolicies": {"description": "d"},
}
_SETTERS = {
    "targetHttpsProxies": (
        ("/setUrlMap", {"urlMap": f"{PARENT}/global/urlMaps/map"}),
        ("/setSslCertificates", {"sslCertificates": [f"{PARENT}/global/sslCertificates/cert"]}),
        ("/global/setSslPolicy", {}),
        ("/global/setCertificateMap", {}),
        ("/global/setQuicOverride", {"quicOverride": "NONE"}),
    ),
    "targetHttpProxies": (("/setUrlMap", {"urlMap": f"{PARENT}/global/urlMaps/map"}),),
    "forwardingRules": (("/global/setTarget", {"target": f"{PARENT}/global/targetHttpsProxies/https"}),),
    "backendServices": (("/global/setSecurityPolicy", {}),),
}


def balancers(trial):
    """Every kind of a load balancer: made in order, changed, deleted against it."""
    for path, body in BALANCER.items():
        base, name = f"{COMPUTE}/{path}", body["name"]
        trial("POST", base, body)
        trial.refuse(409, "POST", base, body, says="alreadyExists")
        trial.refuse(400, "POST", base, body | {"name": "Tried"}, says="match of regex")
        one, none = f"{base}/{name}", f"{base}/absent"
        row = trial("GET", one, missing=none)
        trial("GET", base, maxResults=1)
        if path in _CHANGES:
            trial("PATCH", one, _CHANGES[path] | {"fingerprint": row["fingerprint"]}, missing=none)
            trial.refuse(412, "PATCH", one, {"fingerprint": "AAAAAAAAAAA="})
        if path in {"global/backendServices", "global/urlMaps"}:
            trial("PUT", one, body | {"fingerprint": trial("GET", one)["fingerprint"]}, missing=none)
        if "labelFingerprint" in row:
            labels = {"labels": {"a": "b"}, "labelFingerprint": row["labelFingerprint"]}
            trial("POST", f"{one}/setLabels", labels, missing=f"{none}/setLabels")
            trial.refuse(412, "POST", f"{one}/setLabels", labels | {"labelFingerprint": "AAAAAAAAAAA="})
    for collection, setters in _SETTERS.items():
        name = BALANCER[f"global/{collection}"]["name"]
        for verb, body in setters:
            place, _, short = verb.rpartition("/")
            base = f"{COMPUTE}{place}/{collection}"
            trial("POST", f"{base}/{name}/{short}", body, missing=f"{base}/absent/{short}")
    policy = f"{COMPUTE}/global/securityPolicies"
    rule = BALANCER["global/securityPolicies"]["rules"][0] | {"priority": 7}
    trial("POST", f"{policy}/armor/addRule", rule, missing=f"{policy}/absent/addRule")
    trial("GET", f"{policy}/armor/getRule", priority=7, missing=f"{policy}/absent/getRule")
    trial("POST", f"{policy}/armor/patchRule", {"preview": True}, priority=7, missing=f"{policy}/absent/patchRule")
    trial("POST", f"{policy}/armor/removeRule", None, priority=7, missing=f"{policy}/absent/removeRule")
    trial.refuse(400, "DELETE", f"{COMPUTE}/global/urlMaps/map", says="resourceInUseByAnotherResource")
    for path, body in reversed(BALANCER.items()):
        trial("DELETE", f"{COMPUTE}/{path}/{body['name']}", missing=f"{COMPUTE}/{path}/absent")


def certificates(trial):
    """Every kind of Certificate Manager."""
    trial.owner.enable("certificatemanager")
    trial("GET", MANAGER)
    trial("GET", MANAGER.rpartition("/")[0], pageSize=1)
    entry = {"name": "tried", "hostname": "llm.acme.example", "certificates": [_CERTIFICATE]}
    managed = {"managed": {"domains": ["llm.acme.example"], "dnsAuthorizations": [_AUTHORIZATION]}}
    kinds = {
        "dnsAuthorizations": ("dnsAuthorizationId", {"domain": "llm.acme.example"}),
        "certificates": ("certificateId", managed),
        "certificateMaps": ("certificateMapId", {}),
        "certificateMaps/tried/certificateMapEntries": ("certificateMapEntryId", entry),
    }
    name = ""
    for path, (key, body) in kinds.items():
        base = f"{MANAGER}/{path}"
        one, none = f"{base}/tried", f"{base}/absent"
        name = trial("POST", base, body, **{key: "tried"})["name"]
        trial.refuse(409, "POST", base, body, **{key: "tried"})
        trial.refuse(400, "POST", base, body, **{key: "Tried"}, says="Invalid resource ID")
        trial("GET", one, missing=none)
        trial("GET", base, pageSize=1)
        trial("PATCH", one, {"description": "d"}, updateMask="description", missing=none)
    operations = f"{MANAGER}/operations"
    trial("GET", operations, pageSize=1)
    operation = f"/certificatemanager/v1/{name}"
    trial("GET", operation, missing=f"{operations}/absent")
    trial("POST", f"{operation}:cancel", {}, missing=f"{operations}/absent:cancel")
    trial("DELETE", operation, missing=f"{operations}/absent")
    trial.refuse(400, "DELETE", f"{MANAGER}/certificates/tried", says="is used by")
    for path in reversed(kinds):
        trial("DELETE", f"{MANAGER}/{path}/tried", missing=f"{MANAGER}/{path}/absent")


def zones(trial):
    """Every method of Cloud DNS."""
    trial.owner.enable("dns")
    zone = {"name": "tried", "dnsName": "tried.example.", "description": "d"}
    trial("GET", f"/dns/v1/{PARENT}")
    trial("POST", DNS, zone)
    trial.refuse(409, "POST", DNS, zone, says="alreadyExists")
    one, none = f"{DNS}/tried", f"{DNS}/absent"
    shown = trial("GET", one, missing=none)
    trial("GET", DNS, maxResults=1)
    trial("PATCH", one, {"description": "e"}, missing=none)
    trial("PUT", one, shown, missing=none)
    record = {"name": "a.tried.example.", "type": "A", "ttl": 60, "rrdatas": ["203.0.113.7"]}
    trial("POST", f"{one}/rrsets", record, missing=f"{none}/rrsets")
    trial.refuse(409, "POST", f"{one}/rrsets", record, says="alreadyExists")
    of_record = f"{one}/rrsets/a.tried.example./A"
    trial("GET", of_record, missing=f"{one}/rrsets/b.tried.example./A")
    trial("GET", f"{one}/rrsets", maxResults=1, missing=f"{none}/rrsets")
    trial("PATCH", of_record, {"ttl": 30}, missing=f"{one}/rrsets/b.tried.example./A")
    trial("DELETE", of_record, missing=f"{one}/rrsets/b.tried.example./A")
    changes = f"{one}/changes"
    trial("POST", changes, {"additions": [record]}, missing=f"{none}/changes")
    trial.refuse(412, "POST", changes, {"deletions": [record | {"ttl": 7}]}, says="conditionNotMet")
    trial("GET", f"{changes}/1", missing=f"{changes}/9")
    trial("GET", changes, maxResults=1, missing=f"{none}/changes")
    trial.refuse(400, "DELETE", one, says="containerNotEmpty")
    trial("POST", changes, {"deletions": [record]}, missing=f"{none}/changes")
    trial("DELETE", one, missing=none)
