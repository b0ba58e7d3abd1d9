"""The published provider's previews, checks, states and imports, where they surprise: a row of a table each.

Found by running this program with the published provider's own source on localcloud. A test declares its row beside
itself, with the source that shows the behaviour; the last test compares the table.
"""

import functools
import json
from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.lifecycle.values import ASSET, SIGNATURE, UNKNOWN, decode, encode
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from bezel_pulumi_offline.plugin.schema import package_schema
from bezel_pulumi_offline.resources import TYPES
from bezel_pulumi_offline.resources.objects import sniff_type
from pulumi_offline_support.client import FailedError, Provider, ServedProvider, urn
from pulumi_offline_support.google import NUMBER, PROJECT, FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

SERVICE = "gcp:cloudrunv2/service:Service"
BUCKET = "gcp:storage/bucket:Bucket"
OBJECT = "gcp:storage/bucketObject:BucketObject"
ACCOUNT = "gcp:serviceaccount/account:Account"
SECRET = "gcp:secretmanager/secret:Secret"
MEMBER = "gcp:projects/iAMMember:IAMMember"
FIREWALL = "gcp:compute/firewall:Firewall"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"
GOOGLE = "https://github.com/hashicorp/terraform-provider-google-beta"
BRIDGE = "https://github.com/pulumi/pulumi-terraform-bridge"
PULUMI = "https://github.com/pulumi/pulumi-gcp/blob/37bf55d421ad6e064715a0a8965351f8efea32b8/provider/resources.go"
MODULES = "https://github.com/GoogleCloudPlatform/magic-modules"
BUCKETS = (
    f"{MODULES}/blob/4d2045578e3b3e44057b2cd5d6ad5a24ad9df688/mmv1/third_party/terraform/services/storage/"
    "resource_storage_bucket.go.tmpl"
)
OBJECTS = BUCKETS.replace("4d2045578e3b3e44057b2cd5d6ad5a24ad9df688", "7a61e4f33d8012f222f9b215daadaa06b8ae6d7c")
OBJECTS = OBJECTS.replace("bucket.go.tmpl", "bucket_object.go")
SEEN = "seen with the published source in place of the stand-in"
ROWS: list[tuple[str, str, str, str]] = []  # area, behaviour, evidence, test
Test = Callable[..., None]


def row(area: str, behaviour: str, evidence: str) -> Callable[[Test], Test]:
    """Declare the row of a test."""

    def declare(test: Test) -> Test:
        ROWS.append((area, behaviour, evidence, test.__name__))
        return test

    return declare


def asset(digest: str, path: Path) -> dict[str, str]:
    return {SIGNATURE: ASSET, "hash": digest, "path": str(path)}


@row("preview", "what Google computes stays known and old while a service is updated", f"{PULUMI}; {SEEN}")
def test_what_google_computes_stays_known_in_the_preview_of_an_update(gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    foretold = gcp.update(SERVICE, resource_id, made, wanted, preview=True)
    for name in ("latestReadyRevision", "latestCreatedRevision", "generation", "etag", "uri", "conditions"):
        assert foretold[name] == made[name]
    updated = gcp.update(SERVICE, resource_id, made, wanted)
    assert updated["latestReadyRevision"] != made["latestReadyRevision"], "the update itself changes them"


@row("preview", "what Google computes is unknown before a service is made", "recordings: Create in a preview")
def test_what_google_computes_is_unknown_in_the_preview_of_a_create(gcp: Provider) -> None:
    _, foretold = gcp.create(SERVICE, PROGRAMS[SERVICE], preview=True)
    assert foretold["latestReadyRevision"] == foretold["uri"] == UNKNOWN


@row("preview", "checksums and generation are unknown where an object's content changes", f"{OBJECTS}: showDiff")
def test_a_changed_content_leaves_its_checksums_unknown_in_the_preview(gcp: Provider) -> None:
    resource_id, made = gcp.create(OBJECT, PROGRAMS[OBJECT])
    foretold = gcp.update(OBJECT, resource_id, made, with_change(PROGRAMS[OBJECT], "content", "bye"), preview=True)
    assert foretold["md5hash"] == foretold["crc32c"] == foretold["generation"] == UNKNOWN
    with_hold = gcp.update(
        OBJECT, resource_id, made, with_change(PROGRAMS[OBJECT], "temporaryHold", True), preview=True
    )
    assert with_hold["md5hash"] == made["md5hash"]


@row("check", "generated names of accounts and secrets", f"{PULUMI}: info.AutoName")
@pytest.mark.parametrize(("kind", "name"), [(ACCOUNT, "accountId"), (SECRET, "secretId"), (SERVICE, "name")])
def test_a_missing_name_is_generated_and_stays(kind: str, name: str, gcp: Provider) -> None:
    nameless = {key: value for key, value in PROGRAMS[kind].items() if key != name}
    first = gcp.inputs(kind, nameless)
    assert first[name].startswith("thing-")
    assert name in first["__defaults"]
    assert decode(gcp.check(kind, nameless, olds=first).inputs)[name] == first[name]
    assert name not in gcp.inputs(kind, PROGRAMS[kind])["__defaults"]


@row("check", "a resource's name that leaves no room for the generated digits", f"{BRIDGE}: AutoNameOptions.Maxlen")
@pytest.mark.parametrize(("kind", "name", "longest"), [(SERVICE, "name", 50), (ACCOUNT, "accountId", 30)])
def test_a_name_that_is_too_long_to_complete_is_refused(kind: str, name: str, longest: int, gcp: Provider) -> None:
    nameless = {key: value for key, value in PROGRAMS[kind].items() if key != name}

    def failures(length: int) -> Any:
        request = pb.CheckRequest(urn=f"urn:pulumi:a::b::{kind}::x", name="t" * length, news=encode(nameless))
        return gcp.call("Check", request).failures

    (failure,) = failures(longest - 7)
    assert f"plus 7 random chars is longer than maximum length {longest}" in failure.reason
    assert not failures(longest - 8)


@row("state", "a replacement deletes first: secrets, members of a project, and any name that is set", PULUMI)
def test_a_replacement_deletes_first_where_the_published_provider_says_so(google: FakeGoogle, gcp: Provider) -> None:
    def first(kind: str, program: dict[str, Any], path: str, value: Any) -> bool:
        google.clear()
        resource_id, made = gcp.create(kind, program)
        answer = gcp.diff(kind, resource_id, made, with_change(program, path, value))
        assert answer.replaces
        return bool(answer.deleteBeforeReplace)

    assert first(BUCKET, PROGRAMS[BUCKET], "location", "EU")
    assert first(BUCKET, PROGRAMS[BUCKET], "name", "other"), "even under another name"
    assert not first(BUCKET, {"location": "US"}, "location", "EU"), "a generated name cannot collide"
    nameless = {"replication": {"auto": {}}}
    assert first(SECRET, nameless, "replication", {"userManaged": {"replicas": [{"location": "us-east1"}]}})
    assert first(MEMBER, PROGRAMS[MEMBER], "role", "roles/logging.viewer")
    assert not first("gcp:storage/bucketIAMMember:BucketIAMMember", {**_member("b")}, "role", "roles/storage.admin")


def _member(bucket: str) -> dict[str, str]:
    return {"bucket": bucket, "role": "roles/storage.objectViewer", "member": "user:a@example.com"}


LABELLED = [token for token, kind in TYPES.items() if any(item.name == "effectiveLabels" for item in kind.fields)]


@pytest.mark.slow
@row("state", "a label that is deleted by hand stays as a key without a value", f"{GOOGLE}: tpgresource, SetLabels")
@pytest.mark.parametrize("kind", LABELLED)
def test_a_label_that_is_deleted_by_hand_stays_without_a_value(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[kind], "labels": {"app": "vllm", "tier": "a"}}
    resource_id, made = gcp.create(kind, program)
    thing = next(item for item in google.things.values() if item.get("labels", {}).get("app"))
    del thing["labels"]["app"]
    again = gcp.read(kind, resource_id, made, gcp.inputs(kind, program))
    actual = decode(again.properties)
    assert actual["labels"] == {"app": "", "tier": "a"}
    assert "app" not in actual["effectiveLabels"]
    assert list(gcp.diff(kind, resource_id, actual, program).diffs), "the next update adds it"
    thing["labels"].clear()
    bare = decode(gcp.read(kind, resource_id, made, gcp.inputs(kind, program)).properties)
    assert bare["labels"] == {}


@row("state", "the id of a conditional member: title, description and expression", f"{GOOGLE}: tpgiamresource, String")
def test_the_id_of_a_conditional_member_has_the_whole_condition(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[MEMBER], "condition": {"title": "soon a", "expression": "request.time < b"}}
    resource_id, made = gcp.create(MEMBER, program)
    role, member = program["role"], program["member"]
    assert resource_id == f"{PROJECT}/{role}/{member}/soon a//request.time < b"
    other = {**PROGRAMS[MEMBER], "condition": {"title": "soon a", "expression": "true"}}
    gcp.create(MEMBER, other)
    assert len(google.policies[f"/crm/v1/projects/{PROJECT}"]["bindings"]) == 2, "another expression is another binding"
    gcp.delete(MEMBER, resource_id, made)
    (left,) = google.policies[f"/crm/v1/projects/{PROJECT}"]["bindings"]
    assert left["condition"]["expression"] == "true"
    imported = gcp.read(MEMBER, f"{PROJECT} {role} {member} soon a")
    assert imported.id == f"{PROJECT}/{role}/{member}/soon a//true"
    assert decode(imported.inputs)["condition"]["expression"] == "true"
    with pytest.raises(FailedError, match="Wrong number of parts"):
        gcp.read(MEMBER, f"{PROJECT} {role}")
    with pytest.raises(FailedError, match="Cannot find binding"):
        gcp.read(MEMBER, f"{PROJECT} {role} user:other@example.com")


@row("state", "a bucket's `versioning` that is removed from the program stays as it is", f"{BUCKETS}: Computed")
def test_versioning_that_is_removed_from_the_program_is_no_change(gcp: Provider) -> None:
    program = {**PROGRAMS[BUCKET], "versioning": {"enabled": True}}
    resource_id, made = gcp.create(BUCKET, program)
    without = {key: value for key, value in program.items() if key != "versioning"}
    assert not gcp.diff(BUCKET, resource_id, made, without).diffs
    assert list(gcp.diff(BUCKET, resource_id, made, with_change(program, "versioning.enabled", False)).diffs)


@row("state", "a bucket without `iamConfiguration` reads as `inherited`", SEEN)
def test_a_bucket_without_access_settings_reads_as_inherited(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    google.things["/storage/v1/b/models"].pop("iamConfiguration", None)
    assert decode(gcp.read(BUCKET, resource_id, made).properties)["publicAccessPrevention"] == "inherited"
    google.things["/storage/v1/b/models"]["iamConfiguration"] = {"publicAccessPrevention": "enforced"}
    assert decode(gcp.read(BUCKET, resource_id, made).properties)["publicAccessPrevention"] == "enforced"


@row("state", "the environment's project, region and zone are inputs of the provider", f"{PULUMI}: DefaultInfo.EnvVars")
def test_the_projects_variable_is_in_the_inputs_of_the_provider() -> None:
    environment = {"GOOGLE_CLOUD_PROJECT": "second", "GOOGLE_PROJECT": "first", "CLOUDSDK_COMPUTE_REGION": "r"}
    provider = ServedProvider(GooglePlugin(environment))
    request = pb.CheckRequest(news=encode({"zone": "z"}))
    assert decode(provider.call("CheckConfig", request).inputs) == {"project": "first", "region": "r", "zone": "z"}
    request = pb.CheckRequest(news=encode({"project": "set"}))
    assert decode(provider.call("CheckConfig", request).inputs)["project"] == "set"
    provider.close()


@row("seldom used", "`retentionPeriod` is a text", f"{BUCKETS}: retention_period")
def test_a_retention_period_is_a_text(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[BUCKET], "retentionPolicy": {"retentionPeriod": 3600}}
    resource_id, made = gcp.create(BUCKET, program)
    assert google.requests_of("POST")[0].body["retentionPolicy"] == {"retentionPeriod": "3600"}
    assert made["retentionPolicy"]["retentionPeriod"] == "3600"
    assert not gcp.diff(BUCKET, resource_id, made, program).diffs


@row("seldom used", "an empty `softDeletePolicy` is one of 604800 seconds", f"{BUCKETS}: retention_duration_seconds")
def test_an_empty_soft_delete_policy_has_the_default_duration(google: FakeGoogle, gcp: Provider) -> None:
    gcp.create(BUCKET, {**PROGRAMS[BUCKET], "softDeletePolicy": {}})
    assert google.requests_of("POST")[0].body["softDeletePolicy"] == {"retentionDurationSeconds": "604800"}
    gcp.create(BUCKET, {**PROGRAMS[BUCKET], "name": "other", "softDeletePolicy": {"retentionDurationSeconds": 0}})
    assert google.requests_of("POST")[1].body["softDeletePolicy"] == {"retentionDurationSeconds": "0"}


@row("seldom used", "an object from a file: replaced with another content, unchanged in another place", OBJECTS)
def test_an_object_from_a_file_follows_its_content(tmp_path: Path, google: FakeGoogle, gcp: Provider) -> None:
    (tmp_path / "a").write_bytes(b"\x00one")
    (tmp_path / "b").write_bytes(b"\x00one")
    program = {"bucket": "models", "name": "a", "source": asset("1", tmp_path / "a")}
    resource_id, made = gcp.create(OBJECT, program)
    assert made["source"] == program["source"]
    assert "application/octet-stream" in str(google.requests_of("POST")[0].body)
    moved = {**program, "source": asset("1", tmp_path / "b")}
    assert not gcp.diff(OBJECT, resource_id, made, moved).diffs
    gcp.check(OBJECT, program)
    elided = {**program, "source": {SIGNATURE: ASSET, "hash": "1"}, "detectMd5hash": "different hash"}
    request = pb.DiffRequest(id=resource_id, urn=urn(OBJECT), olds=encode(made), news=encode(elided))
    assert not gcp.call("Diff", request).diffs, "the engine names a file by its hash only"
    request = pb.DiffRequest(
        id=resource_id, urn=urn(OBJECT), olds=encode({**made, "detectMd5hash": "other"}), news=encode(elided)
    )
    assert list(gcp.call("Diff", request).diffs) == ["detectMd5hash"], "another user changed the object"
    (tmp_path / "a").write_bytes(b"two")
    replaced = gcp.diff(OBJECT, resource_id, made, {**program, "source": asset("2", tmp_path / "a")})
    assert list(replaced.replaces) == ["source"]
    zipped = {SIGNATURE: "0def7320c3a5731c473e5ecbe6d01bc7", "path": "a"}
    (failure,) = gcp.check(OBJECT, {**program, "source": zipped}).failures
    assert failure.reason.startswith("The stand-in provider does not upload archives.")


@row("seldom used", "an object's content type comes from its first bytes", "Go, net/http/sniff.go")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"a": 1}', "text/plain; charset=utf-8"),
        (b"", "text/plain; charset=utf-8"),
        (b"\n <html >", "text/html; charset=utf-8"),
        (b"<?xml version", "text/xml; charset=utf-8"),
        (b"\x1f\x8b\x08\x00", "application/x-gzip"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"a\x00b", "application/octet-stream"),
        (b"a" * 512 + b"\x00", "text/plain; charset=utf-8"),
    ],
)
def test_the_content_type_comes_from_the_first_bytes(content: bytes, kind: str) -> None:
    assert sniff_type(content) == kind


@row("seldom used", "a router's removed description is emptied at Google", f"{MODULES}: Router.yaml, send_empty_value")
def test_a_removed_description_of_a_router_is_emptied(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(ROUTER, {**PROGRAMS[ROUTER], "description": "old"})
    gcp.update(ROUTER, resource_id, made, PROGRAMS[ROUTER])
    assert google.requests_of("PATCH")[-1].body["description"] == ""
    gcp.create(ROUTER, {**PROGRAMS[ROUTER], "name": "other"})
    assert "description" not in google.requests_of("POST")[-1].body


@row(
    "seldom used",
    "an account's `disabled` has no effect before the first update",
    "the SDK's documentation of `disabled`",
)
def test_an_account_is_disabled_by_an_update_only(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[ACCOUNT], "disabled": True}
    resource_id, made = gcp.create(ACCOUNT, program)
    assert made["disabled"] is False
    assert not [item for item in google.requests if item.path.endswith(":disable")]
    assert list(gcp.diff(ACCOUNT, resource_id, made, program).diffs) == ["disabled"]


@row("seldom used", "a firewall's ports stay with their protocol at a refresh", SEEN)
def test_the_ports_of_a_rule_stay_with_their_protocol_at_a_refresh(google: FakeGoogle, gcp: Provider) -> None:
    rules = [{"protocol": "udp", "ports": ["53"]}, {"protocol": "tcp", "ports": ["80", "443"]}]
    program = {**PROGRAMS[FIREWALL], "allows": rules}
    resource_id, made = gcp.create(FIREWALL, program)
    assert [rule["protocol"] for rule in made["allows"]] == ["udp", "tcp"], "by the ports, then the protocol"
    (thing,) = (item for key, item in google.things.items() if key.endswith(f"/firewalls/{program['name']}"))
    thing["allowed"] = [{"IPProtocol": "tcp", "ports": ["80", "443"]}, {"IPProtocol": "udp", "ports": ["5353"]}]
    read = gcp.read(FIREWALL, resource_id, made, gcp.inputs(FIREWALL, program))
    shown = [{key: rule[key] for key in ("protocol", "ports")} for rule in decode(read.inputs)["allows"]]
    assert shown == [{"protocol": "udp", "ports": ["5353"]}, {"protocol": "tcp", "ports": ["80", "443"]}]


@pytest.mark.slow
@row("seldom used", "imports of a NAT by its link or a part of it", f"{MODULES}: RouterNat.yaml, import formats")
@pytest.mark.parametrize(
    "link",
    [
        f"projects/{PROJECT}/regions/us-east5/routers/nodes/nodes",
        f"{PROJECT}/us-east5/nodes/nodes",
        "us-east5/nodes/nodes",
    ],
)
def test_a_nat_is_imported_by_its_link_and_parts_of_it(link: str, gcp: Provider) -> None:
    gcp.create(ROUTER, {**PROGRAMS[ROUTER], "region": "us-east5", "name": "nodes"})
    program = {**PROGRAMS[NAT], "region": "us-east5", "router": "nodes", "name": "nodes"}
    resource_id, _ = gcp.create(NAT, program)
    imported = gcp.read(NAT, link)
    assert imported.id == resource_id == f"{PROJECT}/us-east5/nodes/nodes"
    inputs = decode(imported.inputs)
    assert {name: inputs[name] for name in ("name", "router", "region")} == {
        "name": "nodes",
        "router": "nodes",
        "region": "us-east5",
    }
    assert not gcp.diff(NAT, imported.id, decode(imported.properties), program).diffs


@row("seldom used", "imports of a bucket as `project/bucket`", f"{BUCKETS}: resourceStorageBucketStateImporter")
def test_a_bucket_is_imported_with_its_project(google: FakeGoogle, gcp: Provider) -> None:
    gcp.create(BUCKET, PROGRAMS[BUCKET])
    google.requests.clear()
    imported = gcp.read(BUCKET, "another/models")
    assert imported.id == "models"
    assert decode(imported.inputs)["project"] == "another"
    assert not any(NUMBER in item.path for item in google.requests), "the project is known, and not asked for"
    assert gcp.read(BUCKET, "models").id == "models"


@row("seldom used", "a schema, from which `pulumi import` writes code", "the engine's import: GetSchema")
def test_the_schema_names_what_the_sdk_names(gcp: Provider) -> None:
    schema = json.loads(gcp.call("GetSchema", pb.GetSchemaRequest()).schema)
    service = schema["resources"][SERVICE]
    assert service["requiredInputs"] == ["location", "template"]
    assert "uri" in service["properties"]
    assert "uri" not in service["inputProperties"]
    used = {
        value["$ref"] for kind in schema["types"].values() for value in kind["properties"].values() if "$ref" in value
    }
    assert {reference.removeprefix("#/types/") for reference in used} <= schema["types"].keys()
    assert "gcp:cloudrunv2/ServiceTemplateContainerEnv:ServiceTemplateContainerEnv" in schema["types"]


@pytest.mark.slow
def test_every_object_of_the_schema_is_a_class_of_the_sdk() -> None:
    # The text of the modules: to import that of Compute Engine takes seconds.
    sdk = files("pulumi_gcp")
    for token in package_schema(TYPES, "1")["types"]:
        _, module, name = token.split(":")
        text = outputs_of(sdk.joinpath(module.partition("/")[0], "outputs.py"))
        assert f"\nclass {name}(" in text, token


@functools.cache
def outputs_of(module: Traversable) -> str:
    return module.read_text("utf-8")
