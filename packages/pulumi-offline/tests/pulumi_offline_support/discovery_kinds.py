"""Kinds of properties in the rows and in Google's discovery documents, and where they differ, each with the reason."""

from collections.abc import Iterator
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from pulumi_offline_support.discovery import discovery

TEXT = "the provider shows the number as the text that it is on the wire"
NUMBER = "the provider sends the number as a number"
LONG = "string int64"
DURATIONS = (
    *(f"cachePolicy.{name}.seconds" for name in ("clientTtl", "defaultTtl", "maxTtl", "serveWhileStale")),
    *("cachePolicy.negativeCachingPolicies.ttl.seconds", "faultInjectionPolicy.delay.fixedDelay.seconds"),
    *("maxStreamDuration.seconds", "retryPolicy.perTryTimeout.seconds", "timeout.seconds"),
)
ROUTE_ACTIONS = (
    *("defaultRouteAction", "pathMatchers.defaultRouteAction"),
    *("pathMatchers.pathRules.routeAction", "pathMatchers.routeRules.routeAction"),
)
NEWER = "newer than the document; the SDK has it"
MADE = "made by the provider, of other properties or of the program's"
ELSEWHERE: dict[str, dict[str, tuple[str, str]]] = {
    "gcp:cloudscheduler/job:Job": {"paused": ("nothing", "the state: set by :pause and :resume")},
    "gcp:monitoring/dashboard:Dashboard": {"dashboardJson": ("nothing", "the whole body as one text")},
    "gcp:billing/budget:Budget": {
        "amount.lastPeriodAmount": ("object", "an empty object on the wire, a flag here"),
        "amount.specifiedAmount.units": ("string int64", TEXT),
        "budgetFilter.labels": ("object of array", "each value is a list of one on the wire"),
    },
    "gcp:cloudrunv2/service:Service": {
        "generation": ("string int64", TEXT),
        "observedGeneration": ("string int64", TEXT),
        "template.containers.sourceCode.cloudStorageSource.generation": ("string int64", TEXT),
        "template.containers.readinessProbe.successThreshold": ("nothing", NEWER),
        "tags": ("nothing", NEWER),
    },
    "gcp:certificatemanager/certificateMap:CertificateMap": {
        "gclbTargets.ipConfigs.ports": ("array of integer", "read only, and shown as a list like any other"),
    },
    "gcp:compute/backendService:BackendService": {
        "cdnPolicy.signedUrlCacheMaxAgeSec": (LONG, NUMBER),
        "circuitBreakers.connectTimeout.seconds": (LONG, NUMBER),
        "consistentHash.httpCookie.ttl.seconds": (LONG, NUMBER),
        "consistentHash.minimumRingSize": (LONG, NUMBER),
        "maxStreamDuration.seconds": (LONG, TEXT),
        "outlierDetection.baseEjectionTime.seconds": (LONG, NUMBER),
        "outlierDetection.interval.seconds": (LONG, NUMBER),
        "strongSessionAffinityCookie.ttl.seconds": (LONG, NUMBER),
    },
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": {"pscConnectionId": (LONG, TEXT)},
    "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup": {
        "pscData.producerPort": ("integer", "the provider has the port as a text"),
    },
    "gcp:compute/targetHttpsProxy:TargetHttpsProxy": {
        "certificateManagerCertificates": ("nothing", "sent and read among the other certificates"),
    },
    "gcp:compute/uRLMap:URLMap": {
        **{f"{action}.{path}": (LONG, TEXT) for action in ROUTE_ACTIONS for path in DURATIONS},
        **{
            f"pathMatchers.routeRules.matchRules.headerMatches.rangeMatch.range{end}": (LONG, NUMBER)
            for end in ("Start", "End")
        },
    },
    "gcp:dns/managedZone:ManagedZone": {"managedZoneId": (LONG, TEXT)},
    "gcp:compute/network:Network": {"networkId": ("string int64", TEXT), "numericId": ("string int64", TEXT)},
    "gcp:kms/cryptoKey:CryptoKey": {"keyRing": ("nothing", "in the path of a create, and of the name")},
    "gcp:projects/iAMCustomRole:IAMCustomRole": {"roleId": ("nothing", "beside the role in the body of a create")},
    "gcp:secretmanager/secretVersion:SecretVersion": {
        "secret": ("nothing", "in the path of :addVersion"),
        "secretData": ("nothing", "payload.data of :addVersion, and of :access"),
        "isSecretDataBase64": ("nothing", "says how the payload is written"),
        "enabled": ("nothing", "the state: set by :enable and :disable"),
        "version": ("nothing", MADE),
    },
    "gcp:serviceaccount/account:Account": {
        "accountId": ("nothing", "beside the account in the body of a create"),
        "member": ("nothing", MADE),
    },
    "gcp:storage/bucket:Bucket": {
        "project": ("nothing", "a parameter of the create's URL, read back by projectNumber"),
        "retentionPolicy.retentionPeriod": ("string int64", TEXT),
        "url": ("nothing", MADE),
    },
    "gcp:storage/bucketObject:BucketObject": dict.fromkeys(
        ("sourceMd5hash", "detectMd5hash", "md5hexhash", "outputName"), ("nothing", MADE)
    ),
}


def shape(item: Field) -> str:
    """The kind that a field's value has on the wire, in a discovery document's words."""
    match item.kind:
        case Kind.BLOCK:
            return "array of object" if item.marks & Mark.LISTED else "object"
        case Kind.BLOCKS:
            named = "object of object" if item.marks & Mark.KEYED else "array of object"
            return "object" if item.marks & Mark.WRAPPED else named
    return {
        Kind.TEXT: "string",
        Kind.FLAG: "boolean",
        Kind.WHOLE: "integer",
        Kind.BIG: "string int64",
        Kind.REAL: "number",
        Kind.TABLE: "object of string",
        Kind.ITEMS: "array of string",
        Kind.ASSET: "none",
    }[item.kind]


def describe(schema: dict[str, Any], document: str) -> tuple[str, dict[str, Any]]:
    """A schema's kind and the schema of what is inside."""
    if "$ref" in schema:
        return "object", discovery(document)[schema["$ref"]]
    kind = schema.get("type", "any")
    inner = schema.get("items") or schema.get("additionalProperties")
    if inner:
        name, below = describe(inner, document)
        return f"{kind} of {name.split(' ')[0]}", below
    width = schema.get("format") in ("int64", "uint64")
    return (f"{kind} int64" if kind == "string" and width else kind), schema


def differing(fields: Fields, schema: dict[str, Any], document: str, path: str = "") -> Iterator[tuple[str, str]]:
    """(property, what the document says of it) wherever it is not what the row says."""
    for item in fields:
        if item.marks & (Mark.LOCAL | Mark.REFUSED):
            continue
        where, kind = schema, "object"
        for step in item.path:
            kind, where = describe(where.get("properties", {}).get(step, {"type": "nothing"}), document)
        if kind != shape(item):
            yield path + item.name, kind
        else:
            yield from differing(item.fields, where, document, f"{path}{item.name}.")


def wire_fields(fields: Fields) -> Iterator[Field]:
    """The fields that are in a request or a response."""
    for item in fields:
        if not item.marks & (Mark.LOCAL | Mark.REFUSED):
            yield item
            yield from wire_fields(item.fields)
