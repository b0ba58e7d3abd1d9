"""Resource types of Cloud Run v2: services, and members of their policies.

The fields are those of the Google provider 10.2. A property that is missing here is refused in Check by name.
"""

from bezel.standin_providers.lifecycle.fields import (
    COMPUTED,
    LISTED,
    LOCAL,
    NEW,
    NOTHING,
    OUTPUT,
    PROJECT,
    REQUIRED,
    SET,
    UNREAD,
    WRAPPED,
    ZERO,
    Field,
    Fields,
    Mark,
    block,
    blocks,
    flag,
    items,
    last_segment,
    real,
    table,
    text,
    whole,
)
from bezel.standin_providers.lifecycle.labels import ANNOTATIONS, LABELS
from bezel.standin_providers.lifecycle.resource import ResourceType
from bezel.standin_providers.resources.iam_members import member_type

_SERVICE = "projects/{project}/locations/{location}/services/{name}"

_CONDITION: Fields = tuple(
    text(name, OUTPUT)
    for name in (
        "type",
        "state",
        "message",
        "lastTransitionTime",
        "severity",
        "reason",
        "revisionReason",
        "executionReason",
    )
)


def _probe(name: str, *others: Field, marks: Mark = NOTHING) -> Field:
    return block(
        name,
        whole("initialDelaySeconds", default=0),
        whole("timeoutSeconds", default=1),
        whole("periodSeconds", default=10),
        whole("failureThreshold", default=3),
        block(
            "httpGet",
            text("path", default="/"),
            whole("port", COMPUTED),
            blocks("httpHeaders", text("name", REQUIRED), text("value", ZERO)),
        ),
        block("grpc", whole("port", COMPUTED), text("service"), marks=ZERO),
        *others,
        marks=marks,
    )


_KEY_REF = block("secretKeyRef", text("secret", REQUIRED, same=last_segment), text("version"))

_CONTAINER: Fields = (
    text("name"),
    text("image", REQUIRED),
    items("commands", wire="command"),
    items("args"),
    blocks("envs", text("name", REQUIRED), text("value"), block("valueSource", _KEY_REF), marks=SET, wire="env"),
    block(
        "resources",
        table("limits", COMPUTED),
        flag("cpuIdle"),
        flag("startupCpuBoost"),
        marks=COMPUTED,
    ),
    block("ports", text("name", COMPUTED), whole("containerPort", COMPUTED), marks=COMPUTED | LISTED),
    blocks("volumeMounts", text("name", REQUIRED), text("mountPath", REQUIRED), text("subPath")),
    text("workingDir"),
    _probe("livenessProbe", block("tcpSocket", whole("port", REQUIRED))),
    _probe("startupProbe", block("tcpSocket", whole("port", COMPUTED), marks=ZERO), marks=COMPUTED),
    block(
        "readinessProbe",
        whole("timeoutSeconds", default=1),
        whole("periodSeconds", default=10),
        whole("failureThreshold", default=3),
        whole("successThreshold"),
        block("httpGet", text("path", default="/"), whole("port", COMPUTED)),
        block("grpc", whole("port", COMPUTED), text("service"), marks=ZERO),
    ),
    items("dependsOns", wire="dependsOn"),
    text("baseImageUri"),
    blocks(
        "buildInfos",
        text("functionTarget", OUTPUT),
        text("sourceLocation", OUTPUT),
        marks=OUTPUT | WRAPPED,
        wire="buildInfo",
    ),
    block(
        "sourceCode",
        block("cloudStorageSource", text("bucket", REQUIRED), text("object", REQUIRED), text("generation")),
    ),
    flag("sandboxLauncher"),
)

_VOLUME: Fields = (
    text("name", REQUIRED),
    block(
        "secret",
        text("secret", REQUIRED, same=last_segment),
        whole("defaultMode"),
        blocks("items", text("path", REQUIRED), text("version"), whole("mode")),
    ),
    block("cloudSqlInstance", items("instances")),
    block("emptyDir", text("medium", default="MEMORY"), text("sizeLimit")),
    block("gcs", text("bucket", REQUIRED), flag("readOnly"), items("mountOptions")),
    block("nfs", text("server", REQUIRED), text("path", REQUIRED), flag("readOnly")),
)

_TEMPLATE = block(
    "template",
    text("revision"),
    table("labels"),
    table("annotations"),
    block(
        "scaling",
        whole("minInstanceCount"),
        whole("maxInstanceCount"),
        real("cpuUtilization"),
        real("concurrencyUtilization"),
        marks=COMPUTED,
    ),
    block(
        "vpcAccess",
        text("connector"),
        text("egress", COMPUTED),
        blocks("networkInterfaces", text("network", COMPUTED), text("subnetwork", COMPUTED), items("tags")),
    ),
    text("timeout", COMPUTED),
    text("serviceAccount", COMPUTED),
    blocks("containers", *_CONTAINER),
    blocks("volumes", *_VOLUME),
    text("executionEnvironment"),
    text("encryptionKey"),
    whole("maxInstanceRequestConcurrency", COMPUTED),
    flag("sessionAffinity"),
    flag("healthCheckDisabled"),
    block("nodeSelector", text("accelerator", REQUIRED)),
    flag("gpuZonalRedundancyDisabled"),
    block("serviceMesh", text("mesh")),
    block(
        "sandboxes",
        blocks(
            "templates",
            text("name", REQUIRED),
            text("image", REQUIRED),
            items("commands", wire="command"),
            items("args"),
        ),
    ),
    marks=REQUIRED,
)

_TRAFFIC: Fields = (text("type"), text("revision"), whole("percent"), text("tag"))

_FIELDS: Fields = (
    text("name", REQUIRED | NEW | LOCAL),
    text("location", REQUIRED | NEW | LOCAL),
    text("project", NEW | LOCAL | PROJECT | COMPUTED),
    _TEMPLATE,
    text("description"),
    *LABELS,
    *ANNOTATIONS,
    text("client"),
    text("clientVersion"),
    text("ingress", COMPUTED),
    text("launchStage", COMPUTED),
    block("binaryAuthorization", text("breakglassJustification"), flag("useDefault"), text("policy")),
    items("customAudiences"),
    block(
        "buildConfig",
        text("name"),
        text("sourceLocation"),
        text("functionTarget"),
        text("imageUri"),
        text("baseImage"),
        text("workerPool"),
        text("serviceAccount"),
        table("environmentVariables"),
        flag("enableAutomaticUpdates"),
    ),
    block(
        "scaling",
        text("scalingMode"),
        whole("minInstanceCount"),
        whole("maxInstanceCount"),
        whole("manualInstanceCount", COMPUTED),
        marks=COMPUTED,
    ),
    flag("defaultUriDisabled"),
    blocks("traffics", *_TRAFFIC, marks=COMPUTED, wire="traffic"),
    flag("invokerIamDisabled"),
    flag("iapEnabled"),
    block("multiRegionSettings", items("regions"), text("multiRegionId", COMPUTED)),
    table("tags", NEW | UNREAD),
    flag("deletionProtection", LOCAL, default=True),
    text("deletionPolicy", LOCAL, default="DELETE"),
    text("uid", OUTPUT),
    text("generation", OUTPUT),
    text("createTime", OUTPUT),
    text("updateTime", OUTPUT),
    text("deleteTime", OUTPUT),
    text("expireTime", OUTPUT),
    text("creator", OUTPUT),
    text("lastModifier", OUTPUT),
    text("observedGeneration", OUTPUT),
    blocks("terminalConditions", *_CONDITION, marks=OUTPUT | WRAPPED, wire="terminalCondition"),
    blocks("conditions", *_CONDITION, marks=OUTPUT),
    text("latestReadyRevision", OUTPUT),
    text("latestCreatedRevision", OUTPUT),
    blocks("trafficStatuses", *_TRAFFIC, text("uri"), marks=OUTPUT),
    text("uri", OUTPUT),
    items("urls", OUTPUT),
    flag("reconciling", OUTPUT),
    text("etag", OUTPUT),
)

ROWS: tuple[ResourceType, ...] = (
    ResourceType(
        pulumi_type="gcp:cloudrunv2/service:Service",
        title="Service",
        api="CLOUD_RUN_V2",
        id=_SERVICE,
        collection="projects/{project}/locations/{location}/services",
        create_query={"serviceId": "{name}"},
        fields=_FIELDS,
        autoname="name",
        longest=49,
        rolls={
            **dict.fromkeys(("latestReadyRevision", "latestCreatedRevision"), "template"),
            **dict.fromkeys(("generation", "observedGeneration", "etag", "updateTime", "lastModifier"), ""),
            **dict.fromkeys(("terminalConditions", "conditions", "trafficStatuses", "reconciling"), ""),
        },
        waits=frozenset({"create", "update", "delete"}),
        keeps_failed=True,
        protected="service",
    ),
    member_type(
        "gcp:cloudrunv2/serviceIamMember:ServiceIamMember",
        "CLOUD_RUN_V2",
        _SERVICE,
        text("name"),
        text("location", COMPUTED | NEW),
        text("project", COMPUTED | NEW),
    ),
)
