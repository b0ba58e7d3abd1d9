"""Every method of Google's APIs that is served, called once, with the errors that any method has; the table of it."""

import base64
import json
import time

import pytest

from bezel_localcloud.core.paths import PROJECT_NUMBER
from bezel_localcloud.http.methods import served_methods
from bezel_localcloud.services.artifact_registry import api as artifact_registry
from bezel_localcloud.services.artifact_registry import artifacts_api
from bezel_localcloud.services.billing import accounts as billing_accounts
from bezel_localcloud.services.billing import budgets, catalog
from bezel_localcloud.services.certificate_manager import api as certificate_manager
from bezel_localcloud.services.cloud_quotas import preferences_api as cloud_quotas
from bezel_localcloud.services.cloud_run import api as run
from bezel_localcloud.services.cloud_run import executions_api, jobs_api
from bezel_localcloud.services.compute import api as compute
from bezel_localcloud.services.compute import instances_api, policies_api, vpc_api
from bezel_localcloud.services.dns import api as dns
from bezel_localcloud.services.iam import api as iam
from bezel_localcloud.services.iam import credentials, keys_api, pools_api, roles_api, sts
from bezel_localcloud.services.kms import api as kms_api
from bezel_localcloud.services.kms import versions_api
from bezel_localcloud.services.load_balancing import api as load_balancing
from bezel_localcloud.services.load_balancing import rules_api
from bezel_localcloud.services.logging import api as logs
from bezel_localcloud.services.logging import metrics_api as log_metrics
from bezel_localcloud.services.monitoring import alert_policies, channels, dashboards, prometheus_api, uptime_checks
from bezel_localcloud.services.monitoring import api as monitoring
from bezel_localcloud.services.monitoring.written_metrics import create_api, descriptors_api
from bezel_localcloud.services.resource_manager import api as resource_manager
from bezel_localcloud.services.scheduler import api as scheduler
from bezel_localcloud.services.secret_manager import api as secret_manager
from bezel_localcloud.services.service_usage import api as service_usage
from bezel_localcloud.services.storage import service as storage
from bezel_localcloud.services.tpu import api as tpu
from bezel_localcloud.services.vertex_ai import garden_api as vertex_ai
from localcloud_support.api_harness import ApiHarness
from localcloud_support.balancer_harness import balancers, certificates, zones
from localcloud_support.billing_harness import billing
from localcloud_support.client import DEPLOYER, PARENT, REGION, RUNTIME, SERVICES, Client
from localcloud_support.discovery_documents import SOURCES, methods_of
from localcloud_support.discovery_documents import document as discovery
from localcloud_support.issuer import public_key, sign
from localcloud_support.kms_harness import kms
from localcloud_support.machines_harness import machines, networks
from localcloud_support.observability_harness import observability
from localcloud_support.quotas_harness import quotas
from localcloud_support.registry_harness import push_index
from localcloud_support.vertex_harness import vertex_models
from tests.support.record_results import check_results

pytestmark = pytest.mark.slow

MODULES = (
    *(
        artifact_registry,
        artifacts_api,
        compute,
        instances_api,
        policies_api,
        vpc_api,
        tpu,
        iam,
        credentials,
        keys_api,
        pools_api,
        roles_api,
        sts,
        logs,
        log_metrics,
        monitoring,
        resource_manager,
        run,
        jobs_api,
        executions_api,
    ),
    *(secret_manager, service_usage, storage),
    *(billing_accounts, budgets, catalog, channels),
    *(alert_policies, dashboards, uptime_checks, scheduler),
    *(prometheus_api, create_api, descriptors_api),
    *(kms_api, versions_api, cloud_quotas, vertex_ai),
    *(load_balancing, rules_api, certificate_manager, dns),
)
USED = 'metric.type = "serviceruntime.googleapis.com/quota/allocation/usage"'
USAGE = f"/serviceusage/v1/{PARENT}/services"
ACCOUNTS = f"/iam/v1/{PARENT}/serviceAccounts"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
BUCKET = "/storage/v1/b/tried"


def test_every_route_serves_a_method_and_every_served_method_has_a_route():
    rules = [rule for module in MODULES for rule in module.api.rules]
    reached = [rule.serves for rule in rules if rule.serves]
    # The chunks of a resumable upload, and batches, go to addresses of their own, which no document describes.
    upload = "/upload/storage/v1/b/{bucket:id}/o"
    chunks = [f"/resumable{upload}"] * 2 + [upload] * 2
    # Prometheus's clients query by GET too, which Google serves and has in no document.
    root = "/monitoring/v1/projects/{project:id}/location/{location:id}/prometheus/api/v1"
    queries = [f"{root}/{name}" for name in ("labels", "query", "query_range", "series")]
    others = [*chunks, "/upload/storage/v1/", *queries]
    assert sorted(rule.path for rule in rules if not rule.serves) == sorted(others)
    assert all(method in reached for method in served_methods().values())


def test_what_a_handler_heeds_of_a_query_are_parameters_of_its_method():
    for rule in (rule for module in MODULES for rule in module.api.rules if rule.serves):
        assert rule.query <= rule.serves.query.keys(), rule.path


def policies(trial, path, missing, *, posts=False):
    """The three methods of a policy."""
    get = "POST" if posts else "GET"
    policy = trial(get, f"{path}:getIamPolicy", missing=f"{missing}:getIamPolicy" if missing else "")
    # Artifact Registry's message has no mask.
    body = {"policy": policy} | ({} if "artifactregistry" in path else {"updateMask": "bindings,etag"})
    trial("POST", f"{path}:setIamPolicy", body, missing=f"{missing}:setIamPolicy" if missing else "")
    trial.refuse(409, "POST", f"{path}:setIamPolicy", {"policy": policy | {"etag": "b2xk"}}, says="concurrent")
    trial.refuse(400, "POST", f"{path}:setIamPolicy", {"policy": {"version": 2}}, says="0, 1 and 3")
    asked = {"permissions": ["resourcemanager.projects.get"]}
    trial("POST", f"{path}:testIamPermissions", asked, missing=f"{missing}:testIamPermissions" if missing else "")
    trial.refuse(400, "POST", f"{path}:testIamPermissions", {"permissions": ["run.*"]}, says="wildcards")


def usage(trial):
    names = ["run", "artifactregistry", "secretmanager"]
    body = {"serviceIds": [f"{name}.googleapis.com" for name in names]}
    operation = trial("POST", f"{USAGE}:batchEnable", body)["name"]
    for version in ("v1", "v1beta1"):
        trial("GET", f"/serviceusage/{version}/{operation}", missing=f"/serviceusage/{version}/operations/absent")
    trial("GET", "/serviceusage/v1/operations", pageSize=1)
    trial("GET", USAGE, filter="state:ENABLED", pageSize=2)
    trial("GET", f"{USAGE}:batchGet", names=f"{PARENT}/services/run.googleapis.com")
    trial.refuse(400, "GET", f"{USAGE}:batchGet", says="Between 1 and 30")
    trial.refuse(400, "GET", f"{USAGE}:batchGet", names="services/run.googleapis.com", says="not a service")
    for verb, path, wrong in (
        ("GET", f"{USAGE}/nosuch.googleapis.com", None),
        ("POST", f"{USAGE}/nosuch.googleapis.com:enable", {}),
        ("POST", f"{USAGE}:batchEnable", {"serviceIds": ["run.googleapis.com", "nosuch.googleapis.com"]}),
    ):
        trial.refuse(403, verb, path, wrong, says="SERVICE_CONFIG_NOT_FOUND_OR_PERMISSION_DENIED")
    trial.refuse(400, "GET", USAGE, filter="name:x", says="state:ENABLED")
    trial("POST", f"{USAGE}/cloudbuild.googleapis.com:enable", {})
    trial("GET", f"{USAGE}/cloudbuild.googleapis.com")
    trial("POST", f"{USAGE}/cloudbuild.googleapis.com:disable", {})
    trial.refuse(400, "POST", f"{USAGE}/cloudbuild.googleapis.com:disable", {}, says="is not enabled")


def project(trial):
    path = f"/crm/v1/{PARENT}"
    trial("GET", path)
    trial("GET", "/crm/v1/projects", filter="id:bezel-local")
    trial.refuse(400, "GET", "/crm/v1/projects", filter="labels.a:b", says="does not serve the filter")
    policies(trial, path, "", posts=True)
    newer = f"/crm/v3/{PARENT}"
    trial("GET", newer)
    trial("GET", "/crm/v3/projects:search", query="id:bezel-local", pageSize=1)
    trial.refuse(400, "GET", "/crm/v3/projects:search", query="labels.a:b", says="does not serve the filter")
    policies(trial, newer, "", posts=True)
    trial("POST", "/logging/v2/entries:list", {"resourceNames": [PARENT], "pageSize": 1})
    entry = {"logName": f"{PARENT}/logs/tried", "resource": {"type": "global"}, "textPayload": "x"}
    trial("POST", "/logging/v2/entries:write", {"entries": [entry]})
    trial.refuse(400, "POST", "/logging/v2/entries:write", {"entries": [entry | {"resource": {}}]}, says="resource")
    asked = {"filter": USED, "interval.endTime": "2026-11-23T00:00:00Z", "view": "FULL", "pageSize": 1}
    trial("GET", f"/monitoring/v3/{PARENT}/timeSeries", **asked)
    wrong = asked | {"filter": 'metric.type = starts_with("run")'}
    trial.refuse(400, "GET", f"/monitoring/v3/{PARENT}/timeSeries", says="does not serve", **wrong)


def accounts(trial):
    trial("POST", ACCOUNTS, {"accountId": "runtime", "serviceAccount": {"displayName": "Runtime"}})
    trial.refuse(409, "POST", ACCOUNTS, {"accountId": "runtime"})
    one, none = f"{ACCOUNTS}/{RUNTIME}", f"{ACCOUNTS}/absent@bezel-local.iam.gserviceaccount.com"
    trial("GET", one, missing=none)
    trial("GET", ACCOUNTS, pageSize=1)
    body = {"serviceAccount": {"description": "new"}, "updateMask": "description"}
    trial("PATCH", one, body, missing=none)
    trial.refuse(400, "PATCH", one, body | {"updateMask": "email"}, says="cannot be updated")
    trial.refuse(400, "PATCH", one, body | {"updateMask": "nothing"}, says="is unknown")
    policies(trial, one, none, posts=True)
    trial("POST", f"{one}:disable", {}, missing=f"{none}:disable")
    trial("POST", f"{one}:enable", {}, missing=f"{none}:enable")
    key = trial("POST", f"{one}/keys", {}, missing=f"{none}/keys")["name"].rpartition("/")[2]
    trial("GET", f"{one}/keys", missing=f"{none}/keys")
    its, absent = f"{one}/keys/{key}", f"{one}/keys/absent"
    trial("GET", its, missing=absent)
    trial("POST", f"{its}:disable", {}, missing=f"{absent}:disable")
    trial("POST", f"{its}:enable", {}, missing=f"{absent}:enable")
    trial("DELETE", its, missing=absent)
    tokens = f"/iamcredentials/v1/projects/-/serviceAccounts/{DEPLOYER}"
    nobody = tokens.replace("deployer", "absent")
    scope = {"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "60s"}
    trial("POST", f"{tokens}:generateAccessToken", scope, missing=f"{nobody}:generateAccessToken")
    for wrong in ({"lifetime": "7200s"}, {"lifetime": "-5s"}, {"scope": []}):
        trial.refuse(400, "POST", f"{tokens}:generateAccessToken", scope | wrong)
    trial.refuse(400, "POST", f"{tokens}:generateAccessToken", scope | {"delegates": ["x"]}, says="delegates")
    trial("POST", f"{tokens}:generateIdToken", {"audience": "x"}, missing=f"{nobody}:generateIdToken")
    trial.refuse(400, "POST", f"{tokens}:generateIdToken", {})


def roles(trial):
    path = f"/iam/v1/{PARENT}/roles"
    one, none = f"{path}/tried", f"{path}/absent"
    role = {"title": "Tried", "includedPermissions": ["run.services.get"], "stage": "GA"}
    trial("POST", path, {"roleId": "tried", "role": role})
    trial.refuse(409, "POST", path, {"roleId": "tried", "role": role}, says="already exists")
    trial("GET", path, pageSize=1, showDeleted=True, view="FULL")
    trial("GET", one, missing=none)
    trial("PATCH", one, {"title": "New"}, updateMask="title", missing=none)
    trial.refuse(400, "PATCH", one, {"title": "New"}, updateMask="nothing", says="is unknown")
    trial.refuse(409, "PATCH", one, {"title": "New", "etag": "b2xk"}, updateMask="title", says="concurrent")
    trial("DELETE", one, missing=none)
    trial.refuse(400, "DELETE", one, says="already deleted")
    trial("POST", f"{one}:undelete", {}, missing=f"{none}:undelete")


def federation(trial):
    pools = f"/iam/v1/{PARENT}/locations/global/workloadIdentityPools"
    one, none = f"{pools}/tried", f"{pools}/absent"
    identity = {"body": {"displayName": "Tried"}, "name": "workloadIdentityPoolId", "list": pools}
    _pool_or_provider(trial, one, none, **identity)
    trial("GET", f"{one}:listAttestationRules", missing=f"{none}:listAttestationRules")
    keys = json.dumps({"keys": [public_key()]})
    body = {
        "attributeMapping": {"google.subject": "assertion.sub"},
        "oidc": {"issuerUri": "https://forge.example", "jwksJson": keys},
    }
    providers = f"{one}/providers"
    identity = {"body": body, "name": "workloadIdentityPoolProviderId", "list": providers}
    _pool_or_provider(trial, f"{providers}/forge", f"{providers}/absent", **identity)
    now = int(time.time())
    audience = f"//iam.googleapis.com/projects/{PROJECT_NUMBER}/{one.partition(f'{PARENT}/')[2]}/providers/forge"
    times = {"iat": now, "exp": now + 60}
    exchange = {
        "grantType": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requestedTokenType": "urn:ietf:params:oauth:token-type:access_token",
        "subjectTokenType": "urn:ietf:params:oauth:token-type:jwt",
        "audience": audience,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "subjectToken": sign({"iss": "https://forge.example", "aud": audience, "sub": "tried"} | times),
    }
    # Its refusals have OAuth's form, which no document describes: identity/test_token_exchange.py tries them.
    trial.alone("POST", "/sts/v1/token", exchange)


def _pool_or_provider(trial, one, none, **of):
    path, identity = of["list"], {of["name"]: one.rpartition("/")[2]}
    operation = trial("POST", path, of["body"], **identity)["name"]
    trial.refuse(409, "POST", path, of["body"], **identity, says="already exists")
    trial("GET", f"/iam/v1/{operation}", missing=f"{one}/operations/absent")
    trial("GET", path, pageSize=1, showDeleted=True)
    trial("GET", one, missing=none)
    trial("PATCH", one, {"description": "new"}, updateMask="description", missing=none)
    trial.refuse(400, "PATCH", one, {}, updateMask="nothing", says="is unknown")
    trial.refuse(400, "PATCH", one, {}, updateMask="state", says="cannot be updated")
    trial("DELETE", one, missing=none)
    trial("POST", f"{one}:undelete", {}, missing=f"{none}:undelete")


def repositories(trial):
    body = {"format": "DOCKER", "mode": "STANDARD_REPOSITORY"}
    operation = trial("POST", REPOSITORIES, body, repositoryId="tried")
    operations = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/operations"
    trial("GET", f"/artifactregistry/v1/{operation['name']}", missing=f"{operations}/absent")
    trial.refuse(409, "POST", REPOSITORIES, body, repositoryId="tried")
    trial.refuse(400, "POST", REPOSITORIES, body, repositoryId="Not-An-Id")
    trial.refuse(400, "POST", REPOSITORIES, body | {"format": "MAVEN"}, repositoryId="maven")
    trial.refuse(400, "POST", REPOSITORIES, body | {"kmsKeyName": "k"}, repositoryId="kms", says="kmsKeyName")
    elsewhere = REPOSITORIES.replace(REGION, "nowhere1")
    trial.refuse(403, "POST", elsewhere, body, repositoryId="x", says="locations/nowhere1")
    one, none = f"{REPOSITORIES}/tried", f"{REPOSITORIES}/absent"
    trial("GET", one, missing=none)
    trial("GET", REPOSITORIES, pageSize=1)
    trial.refuse(400, "GET", REPOSITORIES, orderBy="name", says="query parameter 'orderBy'")
    trial("PATCH", one, {"description": "d"}, updateMask="description", missing=none)
    trial.refuse(400, "PATCH", one, {}, updateMask="format", says="cannot be updated")
    policies(trial, one, none)
    images(trial, one)
    done = trial("DELETE", one, missing=none)["name"]
    trial("POST", f"/artifactregistry/v1/{done}:cancel", {}, missing=f"{operations}/absent:cancel")


def images(trial, one):
    registry = f"/v2/{REGION}-docker.pkg.dev/bezel-local/tried/app"
    digest, other = (push_index(trial.owner.http, registry, tag) for tag in ("a", "b"))
    package, version = f"{one}/packages/app", f"{one}/packages/app/versions/{digest}"
    absent = f"sha256:{'0' * 64}"
    trial("GET", f"{one}/dockerImages", pageSize=1)
    trial("GET", f"{one}/dockerImages/app@{digest}", missing=f"{one}/dockerImages/app@{absent}")
    trial("GET", f"{one}/files", pageSize=1)
    trial("GET", f"{one}/files/{digest}", missing=f"{one}/files/{absent}")
    trial("GET", f"{one}/packages", pageSize=1)
    trial("GET", package, missing=f"{package}x")
    trial("GET", f"{package}/versions", pageSize=1, view="BASIC", missing=f"{package}x/versions")
    trial("GET", version, view="FULL", missing=f"{package}/versions/{absent}")
    trial("GET", f"{package}/tags", pageSize=1, missing=f"{package}x/tags")
    named = version.removeprefix("/artifactregistry/v1/")
    trial("POST", f"{package}/tags", {"version": named}, tagId="c", missing=f"{package}x/tags")
    trial.refuse(409, "POST", f"{package}/tags", {"version": named}, tagId="c")
    trial("PATCH", f"{package}/tags/c", {"version": named}, missing=f"{package}/tags/absent")
    trial("GET", f"{package}/tags/c", missing=f"{package}/tags/absent")
    trial("DELETE", f"{package}/tags/c", missing=f"{package}/tags/absent")
    trial.refuse(400, "DELETE", version, says="it is tagged")
    trial("DELETE", version, force="true", missing=f"{package}/versions/{absent}")
    names = {"names": [named.replace(digest, other)]}
    trial("POST", f"{package}/versions:batchDelete", names, missing=f"{package}x/versions:batchDelete")
    push_index(trial.owner.http, registry, "a")
    trial("DELETE", package, missing=f"{package}x")


def secrets(trial):
    trial("POST", SECRETS, {"replication": {"automatic": {}}}, secretId="tried")
    trial.refuse(409, "POST", SECRETS, {"replication": {"automatic": {}}}, secretId="tried")
    trial.refuse(400, "POST", SECRETS, {"replication": {"automatic": {}}}, secretId="no/id")
    unserved = {"replication": {"automatic": {}}, "rotation": {"rotationPeriod": "3600s"}}
    trial.refuse(400, "POST", SECRETS, unserved, secretId="x", says="rotation")
    one, none = f"{SECRETS}/tried", f"{SECRETS}/absent"
    etag = trial("GET", one, missing=none)["etag"]
    trial("GET", SECRETS, pageSize=1)
    trial("PATCH", one, {"labels": {"a": "b"}, "etag": etag}, updateMask="labels", missing=none)
    trial.refuse(409, "PATCH", one, {"labels": {}, "etag": etag}, updateMask="labels", says="etag")
    trial.refuse(400, "PATCH", one, {}, updateMask="replication", says="cannot be updated")
    trial.refuse(400, "PATCH", one, {}, says="Update mask")
    policies(trial, one, none)
    data = {"payload": {"data": base64.b64encode(b"x").decode()}}
    trial("POST", f"{one}:addVersion", data, missing=f"{none}:addVersion")
    trial("GET", f"{one}/versions", pageSize=1, missing=f"{none}/versions")
    for call in ("", ":access"):
        trial("GET", f"{one}/versions/1{call}", missing=f"{one}/versions/9{call}")
    for call in (":disable", ":enable", ":destroy"):
        trial.refuse(409, "POST", f"{one}/versions/1{call}", {"etag": '"old"'}, says="etag")
        trial("POST", f"{one}/versions/1{call}", {}, missing=f"{one}/versions/9{call}")
    trial.refuse(400, "GET", f"{one}/versions/1:access", says="DESTROYED")
    trial.refuse(409, "DELETE", one, etag='"old"', says="etag")
    trial("DELETE", one, missing=none)


def buckets(trial):
    trial("POST", "/storage/v1/b", {"name": "tried", "location": "EU"}, project="bezel-local")
    trial.refuse(409, "POST", "/storage/v1/b", {"name": "tried"}, project="bezel-local")
    trial.refuse(400, "POST", "/storage/v1/b", {"name": "untried"}, says="Required parameter: project")
    for wrong in ({"name": "X"}, {"location": "MOON"}, {"storageClass": "WARM"}):
        trial.refuse(400, "POST", "/storage/v1/b", {"name": "untried"} | wrong, project="bezel-local")
    none = BUCKET.replace("tried", "absent")
    trial("GET", BUCKET, missing=none)
    trial("GET", "/storage/v1/b", project="bezel-local", maxResults=1)
    trial("PATCH", BUCKET, {"labels": {"a": "b"}}, ifMetagenerationMatch=1, missing=none)
    trial.refuse(412, "PATCH", BUCKET, {"labels": None}, ifMetagenerationMatch=1)
    trial.refuse(400, "GET", BUCKET, softDeleted="true", says="named by its generation")
    policy = trial("GET", f"{BUCKET}/iam", missing=f"{none}/iam")
    trial("PUT", f"{BUCKET}/iam", policy, missing=f"{none}/iam")
    trial.refuse(412, "PUT", f"{BUCKET}/iam", policy)
    trial(
        "GET", f"{BUCKET}/iam/testPermissions", permissions="storage.objects.get", missing=f"{none}/iam/testPermissions"
    )
    trial("GET", f"{BUCKET}/anywhereCaches", missing=f"{none}/anywhereCaches")
    for kind in ("folders", "managedFolders"):
        trial("GET", f"{BUCKET}/{kind}", missing=f"{none}/{kind}")
    trial("GET", f"{BUCKET}/storageLayout", missing=f"{none}/storageLayout")
    trial("GET", "/storage/v1/projects/bezel-local/serviceAccount")
    trial("PUT", BUCKET, {"labels": {"a": "c"}}, missing=none)
    trial.refuse(400, "PATCH", BUCKET, {"acl": [{"entity": "allUsers", "role": "READER"}]}, says="acl of a bucket")
    objects(trial, none)
    generation = trial("GET", BUCKET)["generation"]
    trial("DELETE", BUCKET, missing=none)
    trial("POST", f"{BUCKET}/restore", None, generation=generation, missing=f"{none}/restore")
    trial("DELETE", BUCKET)


def locked_bucket(trial):
    bucket, none = "/storage/v1/b/locked", "/storage/v1/b/absent"
    trial("POST", "/storage/v1/b", {"name": "locked"}, project="bezel-local")
    lock, period = f"{bucket}/lockRetentionPolicy", {"retentionPolicy": {"retentionPeriod": "60"}}
    trial.refuse(400, "PATCH", bucket, {"retentionPolicy": {"retentionPeriod": "-1"}}, says="Retention period")
    trial.refuse(400, "POST", lock, None, ifMetagenerationMatch=1, says="no retention policy")
    trial("PATCH", bucket, period)
    trial.refuse(412, "POST", lock, None, ifMetagenerationMatch=1)
    trial("POST", lock, None, ifMetagenerationMatch=2, missing=f"{none}/lockRetentionPolicy")
    trial.refuse(403, "PATCH", bucket, {"retentionPolicy": None}, says="locked Retention Policy")
    trial("DELETE", bucket)


def objects(trial, none):
    put = {"uploadType": "media", "name": "a"}
    trial("POST", f"/upload{BUCKET}/o", b"x", missing=f"/upload{none}/o", **put)
    trial.refuse(412, "POST", f"/upload{BUCKET}/o", b"x", ifGenerationMatch=0, **put)
    trial.refuse(400, "POST", f"/upload{BUCKET}/o", b"x", uploadType="carrier-pigeon")
    created = trial("GET", f"{BUCKET}/o/a", missing=f"{BUCKET}/o/b")
    trial.refuse(404, "GET", f"{BUCKET}/o/a", generation=1)
    trial.refuse(412, "DELETE", f"{BUCKET}/o/a", ifGenerationMatch=1)
    trial.refuse(409, "DELETE", BUCKET, says="not empty")
    trial("GET", f"{BUCKET}/o", prefix="a", missing=f"{none}/o")
    copy = f"{BUCKET}/o/a/rewriteTo/b/tried/o/b"
    trial("POST", copy, {}, missing=f"{BUCKET}/o/none/rewriteTo/b/tried/o/b")
    trial.refuse(404, "POST", copy.replace("b/tried/o/b", "b/absent/o/b"), {})
    trial.refuse(412, "POST", copy, {}, ifGenerationMatch=0)
    trial.refuse(412, "POST", copy, {}, ifSourceGenerationMatch=1)
    trial.refuse(400, "POST", copy, {}, maxBytesRewrittenPerCall=7, says="multiple of 1 MiB")
    trial.refuse(400, "POST", copy, {}, rewriteToken="x", says="belongs to another copy")
    trial("DELETE", f"{BUCKET}/o/b")
    trial("GET", f"{BUCKET}/o/a/iam/testPermissions", permissions="storage.objects.get")
    policy = trial("GET", f"{BUCKET}/o/a/iam", missing=f"{BUCKET}/o/none/iam")
    trial("PUT", f"{BUCKET}/o/a/iam", policy, missing=f"{BUCKET}/o/none/iam")
    trial("POST", f"{BUCKET}/o/a/copyTo/b/tried/o/b", {}, missing=f"{BUCKET}/o/none/copyTo/b/tried/o/b")
    trial("POST", f"{BUCKET}/o/b/moveTo/o/c", None, missing=f"{BUCKET}/o/none/moveTo/o/c")
    trial("PATCH", f"{BUCKET}/o/c", {"metadata": {"a": "b"}}, missing=f"{BUCKET}/o/none")
    trial("PUT", f"{BUCKET}/o/c", {"contentType": "text/plain"}, missing=f"{BUCKET}/o/none")
    trial.refuse(400, "PATCH", f"{BUCKET}/o/c", {"storageClass": "ARCHIVE"}, says="rewrite the object")
    parts = {"sourceObjects": [{"name": "a"}, {"name": "c"}]}
    trial("POST", f"{BUCKET}/o/d/compose", parts, missing=f"{none}/o/d/compose")
    trial.refuse(400, "POST", f"{BUCKET}/o/d/compose", {}, says="between 1 and 32")
    gone = trial("GET", f"{BUCKET}/o/d")["generation"]
    for name in "cd":
        trial("DELETE", f"{BUCKET}/o/{name}")
    trial("POST", f"{BUCKET}/o/d/restore", None, generation=gone, missing=f"{BUCKET}/o/none/restore")
    trial("DELETE", f"{BUCKET}/o/d")
    trial("DELETE", f"{BUCKET}/o/a", generation=created["generation"], missing=f"{BUCKET}/o/b")


def services(trial):
    trial.owner.prepare()
    body, operations = {"template": trial.owner.template()}, SERVICES.replace("services", "operations")
    operation = trial("POST", SERVICES, body, serviceId="tried", validateOnly="false")["name"]
    trial("GET", f"/run/v2/{operation}", missing=f"{operations}/absent")
    trial("POST", f"/run/v2/{operation}:wait", {"timeout": "10s"}, missing=f"{operations}/absent:wait")
    trial.refuse(400, "POST", f"/run/v2/{operation}:wait", {"timeout": "-1s"})
    trial("GET", operations, pageSize=1)
    trial.refuse(409, "POST", SERVICES, body, serviceId="tried")
    trial.refuse(400, "POST", SERVICES, {"template": {}}, serviceId="tried", says="at least one container")
    trial.refuse(403, "POST", SERVICES.replace(REGION, "nowhere1"), body, serviceId="x", says="locations/nowhere1")
    one, none = f"{SERVICES}/tried", f"{SERVICES}/absent"
    service = trial("GET", one, missing=none)
    trial("GET", SERVICES, pageSize=1)
    trial.refuse(400, "GET", SERVICES.replace(REGION, "-"), says="wildcard")
    trial.refuse(400, "GET", SERVICES, showDeleted="true", says="query parameter 'showDeleted'")
    trial("PATCH", one, body | {"labels": {"a": "b"}}, updateMask="labels", missing=none)
    trial.refuse(409, "PATCH", one, body | {"etag": service["etag"]}, says="etag")
    trial.refuse(400, "PATCH", one, body, updateMask="uri", says="cannot be updated")
    policies(trial, one, none)
    trial("GET", f"{one}/revisions", pageSize=1, missing=f"{none}/revisions")
    name = service["latestReadyRevision"].rpartition("/")[2]
    trial("GET", f"{one}/revisions/{name}", missing=f"{one}/revisions/absent")
    trial.refuse(409, "DELETE", one, etag='"old"', says="etag")
    trial("DELETE", one, missing=none)
    trial("DELETE", f"/run/v2/{operation}", missing=f"{operations}/absent")


def jobs(trial):
    container = trial.owner.template("--silent")["containers"][0]
    task = {"containers": [{key: container[key] for key in ("image", "args")}], "serviceAccount": RUNTIME}
    body, operations = {"template": {"template": task}}, SERVICES.replace("services", "operations")
    jobs = SERVICES.replace("services", "jobs")
    operation = trial("POST", jobs, body, jobId="tried", validateOnly="false")["name"]
    trial("GET", f"/run/v2/{operation}", missing=f"{operations}/absent")
    trial.refuse(409, "POST", jobs, body, jobId="tried")
    trial.refuse(400, "POST", jobs, {"template": {}}, jobId="tried", says="at least one container")
    trial.refuse(400, "POST", jobs, body | {"startExecutionToken": "x"}, jobId="x", says="startExecutionToken")
    one, none = f"{jobs}/tried", f"{jobs}/absent"
    etag = trial("GET", one, missing=none)["etag"]
    trial("PATCH", one, body | {"labels": {"a": "b"}}, missing=none)
    trial.refuse(409, "PATCH", one, body | {"etag": etag}, says="etag")
    trial.refuse(400, "PATCH", one, {"template": {}}, says="at least one container")
    etag = trial.owner.get(one).json()["etag"]
    policies(trial, one, none)
    trial("GET", jobs, pageSize=1)
    trial.refuse(400, "GET", jobs.replace(REGION, "-"), says="wildcard")
    trial.refuse(400, "GET", jobs, showDeleted="true", says="query parameter 'showDeleted'")
    trial.refuse(409, "POST", f"{one}:run", {"etag": '"old"'}, says="etag")
    trial.refuse(400, "POST", f"{one}:run", {"overrides": {"delayExecution": True}}, says="delayExecution")
    trial.refuse(400, "POST", f"{one}:run", {"overrides": {"taskCount": -1}}, says="task_count")
    execution = trial("POST", f"{one}:run", {"etag": etag}, missing=f"{none}:run")["metadata"]["name"]
    trial("GET", f"{one}/executions", pageSize=1)
    ran, absent = f"/run/v2/{execution}", f"{one}/executions/absent"
    trial("GET", ran, missing=absent)
    trial("GET", f"{ran}/tasks", pageSize=1, missing=f"{absent}/tasks")
    trial("GET", f"{ran}/tasks/{execution.rpartition('/')[2]}-task0", missing=f"{ran}/tasks/absent")
    trial.refuse(409, "POST", f"{ran}:cancel", {"etag": '"old"'}, says="etag")
    trial("POST", f"{ran}:cancel", {}, missing=f"{absent}:cancel")
    trial.refuse(409, "DELETE", ran, etag='"old"', says="etag")
    trial("DELETE", ran, missing=absent)
    trial.refuse(409, "DELETE", one, etag='"old"', says="etag")
    trial("DELETE", one, missing=none)


@pytest.fixture
def trial(own_daemon):
    endpoint = own_daemon()
    owner = Client(endpoint)
    owner.enable("iam", "iamcredentials", "sts")
    owner.account("stranger")
    stranger = owner.as_account("stranger@bezel-local.iam.gserviceaccount.com")
    anonymous = Client(endpoint)
    del anonymous.http.headers["Authorization"]
    harness = ApiHarness(owner, stranger, anonymous)
    for part in (
        usage,
        project,
        accounts,
        roles,
        federation,
        repositories,
        secrets,
        buckets,
        locked_bucket,
        services,
        jobs,
        networks,
        machines,
        balancers,
        certificates,
        zones,
    ):
        part(harness)
    billing(harness, policies)
    observability(harness)
    kms(harness, policies)
    quotas(harness)
    vertex_models(harness)
    harness("DELETE", f"{ACCOUNTS}/{RUNTIME}", missing=f"{ACCOUNTS}/{RUNTIME}x")
    return harness


def test_every_served_method_answers_validly_and_refuses_what_is_wrong(trial):
    assert trial.problems == [], "\n".join(trial.problems)
    ids = {method.id for method in served_methods().values()}
    assert set(trial.requests) - {""} == ids
    rows = []
    for source in SOURCES:
        for method in sorted(set(source.serves)):
            if method not in {row[1] for row in rows}:  # two versions of an API share its methods' names
                numbers = (trial.requests[method], trial.answers[method])
                rows.append([source.api, method, "yes", *numbers, " ".join(map(str, sorted(trial.errors[method])))])
        others = [m for m in methods_of(discovery(source.document)) if m["id"] not in source.serves]
        rows.append([source.api, f"{len(others)} others of {source.document}", "no", 0, 0, "400"])
    check_results("apis-methods", table(rows))


def table(rows):
    return {
        "title": "Google's APIs: methods",
        "document": "fidelity",
        "order": 20,
        "about": "Each method that localcloud serves, called over HTTP: every accepted request and every response, "
        "refusals included, is valid under Google's discovery document of that API (google-api-python-client). A "
        "method that is not served gets 400 with the reason `notServedByLocalcloud`, its name and its API's.",
        "command": ".venv/bin/pytest tests/localcloud/api/test_methods.py",
        "stamp": None,
        "columns": ["API", "method", "served", "requests checked", "answers checked", "errors tried"],
        "rows": rows,
        "notes": [],
    }


@pytest.mark.parametrize(
    ("verb", "path", "name"),
    [
        ("PATCH", f"/run/v2/{PARENT}/locations/{REGION}/workerPools/x", "run.projects.locations.workerPools.patch"),
        ("POST", "/storage/v1/b/x/o/bulkRestore", "storage.objects.bulkRestore"),
        ("GET", "/storage/v1/b/x/o/y/acl", "storage.objectAccessControls.list"),
        ("GET", "/storage/v1/b/x/acl", "storage.bucketAccessControls.list"),
        ("GET", "/storage/v1/b/x/notificationConfigs", "storage.notifications.list"),
        ("POST", "/storage/v1/projects/x/hmacKeys", "storage.projects.hmacKeys.create"),
        ("POST", f"{ACCOUNTS}/x/keys:upload", "iam.projects.serviceAccounts.keys.upload"),
        ("POST", "/logging/v2/entries:tail", "logging.entries.tail"),
        ("GET", f"/compute/v1/{PARENT}/zones/z/disks", "compute.disks.list"),
        ("POST", f"/compute/beta/{PARENT}/zones/z/instances/i/stop", "compute.instances.stop"),
    ],
)
def test_an_unserved_method_says_so_and_an_unknown_one_is_not_found(cloud, verb, path, name):
    answer = cloud.http.request(verb, path)
    assert answer.status_code == 400
    assert f"localcloud does not serve {name}" in answer.json()["error"]["message"]
    assert cloud.get("/run/v2/nothing").status_code == 404
    assert cloud.http.put(SERVICES).status_code == 404
