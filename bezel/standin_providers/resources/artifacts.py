"""Resource types of Artifact Registry: repositories, and members of their policies."""

from bezel.standin_providers.lifecycle.fields import (
    COMPUTED,
    CREATE_ONLY,
    EMPTY,
    INPUT_ONLY,
    KEYED,
    LOCAL,
    NEW,
    OUTPUT,
    PROJECT,
    REQUIRED,
    SHORT,
    ZERO,
    Field,
    Fields,
    block,
    blocks,
    flag,
    items,
    text,
    whole,
)
from bezel.standin_providers.lifecycle.labels import LABELS
from bezel.standin_providers.lifecycle.resource import ResourceType
from bezel.standin_providers.resources.iam_members import member_type

_REPOSITORY = "projects/{project}/locations/{location}/repositories/{repositoryId}"


def _upstream(name: str) -> Field:
    custom = block("customRepository", text("uri", NEW), marks=NEW)
    return block(name, text("publicRepository", NEW), custom, marks=NEW)


def _distribution(name: str) -> Field:
    public = block(
        "publicRepository", text("repositoryBase", REQUIRED | NEW), text("repositoryPath", REQUIRED | NEW), marks=NEW
    )
    return block(name, public, marks=NEW)


_REMOTE = block(
    "remoteRepositoryConfig",
    text("description", NEW),
    flag("disableUpstreamValidation", INPUT_ONLY),
    block("commonRepository", text("uri", REQUIRED | NEW), marks=NEW),
    _upstream("dockerRepository"),
    _upstream("mavenRepository"),
    _upstream("npmRepository"),
    _upstream("pythonRepository"),
    _distribution("aptRepository"),
    _distribution("yumRepository"),
    block(
        "upstreamCredentials",
        block("usernamePasswordCredentials", text("username"), text("passwordSecretVersion")),
    ),
    block("noCache", marks=ZERO | EMPTY),
    marks=NEW,
)

_CLEANUP = blocks(
    "cleanupPolicies",
    text("id", REQUIRED),
    text("action"),
    block(
        "condition",
        text("tagState"),
        items("tagPrefixes"),
        items("versionNamePrefixes"),
        items("packageNamePrefixes"),
        text("olderThan"),
        text("newerThan"),
    ),
    block("mostRecentVersions", items("packageNamePrefixes"), whole("keepCount")),
    marks=KEYED,
)

_FIELDS: Fields = (
    text("repositoryId", REQUIRED | NEW | LOCAL),
    text("location", NEW | LOCAL | COMPUTED),
    text("project", NEW | LOCAL | PROJECT | COMPUTED),
    text("format", REQUIRED | NEW | CREATE_ONLY),
    text("mode", NEW | CREATE_ONLY, default="STANDARD_REPOSITORY"),
    text("description"),
    text("kmsKeyName", NEW | CREATE_ONLY),
    *LABELS,
    _REMOTE,
    block("dockerConfig", flag("immutableTags")),
    block("mavenConfig", flag("allowSnapshotOverwrites", NEW), text("versionPolicy", NEW)),
    block("virtualRepositoryConfig", blocks("upstreamPolicies", text("id"), text("repository"), whole("priority"))),
    block(
        "vulnerabilityScanningConfig",
        text("enablementConfig"),
        text("enablementState", COMPUTED),
        text("enablementStateReason", COMPUTED),
        marks=COMPUTED,
    ),
    _CLEANUP,
    flag("cleanupPolicyDryRun"),
    text("deletionPolicy", LOCAL, default="DELETE"),
    text("name", OUTPUT | SHORT),
    text("createTime", OUTPUT),
    text("updateTime", OUTPUT),
    text("registryUri", OUTPUT),
)

ROWS: tuple[ResourceType, ...] = (
    ResourceType(
        pulumi_type="gcp:artifactregistry/repository:Repository",
        title="Repository",
        api="ARTIFACT_REGISTRY",
        id=_REPOSITORY,
        collection="projects/{project}/locations/{location}/repositories",
        create_query={"repository_id": "{repositoryId}"},
        fields=_FIELDS,
        waits=frozenset({"create", "delete"}),
        masked=True,
    ),
    member_type(
        "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
        "ARTIFACT_REGISTRY",
        "projects/{project}/locations/{location}/repositories/{repository}",
        text("repository"),
        text("location", COMPUTED | NEW),
        text("project", COMPUTED | NEW),
    ),
)
