"""Rules of the comparison: what is declared, Google's defaults and a rollout's own traffic are no changes."""

import json
from pathlib import Path
from typing import Any

import googleapiclient
import pytest

from bezel.outside_changes.declared import Grant, Machine, declared_in, entries_in
from bezel.outside_changes.fields import Field
from bezel.outside_changes.grant_rules import grants_in, undeclared_grants
from bezel.outside_changes.machine_rules import (
    FIELDS,
    FIELDS_OF_INTERFACES,
    firewall_changes,
    instance_changes,
    network_changes,
    node_changes,
    project_changes,
    subnetwork_changes,
)
from bezel.outside_changes.other_rules import repository_changes
from bezel.outside_changes.service_rules import _FIELDS, service_changes

DOCUMENTS = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"
NAME = "projects/p/locations/us-east4/services/llm"
NEWEST = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}
HELD = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "tag": "newest"}
CONTAINER = {"resources": {"limits": {"cpu": "4", "memory": "16Gi"}, "cpuIdle": False}}


def pin(revision: str, percent: int = 100, **more: Any) -> dict[str, Any]:
    return {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": revision, "percent": percent, **more}


def template(**more: Any) -> dict[str, Any]:
    return {"template": {"containers": [CONTAINER], **more}}


def network(**interface: Any) -> dict[str, Any]:
    return template(vpcAccess={"networkInterfaces": [interface]})


def volumes(*each: dict[str, Any]) -> dict[str, Any]:
    return template(volumes=list(each))


def gcs(bucket: str, **more: Any) -> dict[str, Any]:
    return {"name": "models", "gcs": {"bucket": bucket, "readOnly": True, **more}}


def secret(name: str) -> dict[str, Any]:
    return {"name": "token", "secret": {"secret": name}}


def mount(path: str) -> dict[str, Any]:
    return {"template": {"containers": [{**CONTAINER, "volumeMounts": [{"name": "models", "mountPath": path}]}]}}


NETWORKS, PATH = "template.vpcAccess.networkInterfaces", "projects/p/global/networks/n"
PROGRAM = {"image": "python@sha256:1", "args": ["-I", "-c", "run", "1"], "resources": {"cpuIdle": True}}
GCS, EMPTY = gcs("models"), {"name": "scratch", "emptyDir": {"medium": "MEMORY"}}


def door(**more: Any) -> dict[str, Any]:
    """The declaration of a service that everyone may call."""
    container = {**PROGRAM, "commands": ["python"], "envs": [{"name": "DOOR_BUCKET", "value": "keys"}], **more}
    return {"invokerIamDisabled": True, "template": {"containers": [container]}}


def live_door(**more: Any) -> dict[str, Any]:
    container = {**PROGRAM, "command": ["python"], "env": [{"name": "DOOR_BUCKET", "value": "keys"}], **more}
    return {"invokerIamDisabled": True, "template": {"containers": [container]}}


def settings(declared: Any, live: Any, **more: Any) -> list[str]:
    return [change.setting for change in service_changes(NAME, declared, live, **more)]


@pytest.mark.parametrize(
    ("declared", "live", "expected"),
    [
        ({}, {}, []),
        ({"ingress": "INGRESS_TRAFFIC_ALL"}, {"ingress": "INGRESS_TRAFFIC_ALL"}, []),
        ({"ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY"}, {"ingress": "INGRESS_TRAFFIC_ALL"}, ["ingress"]),
        ({}, {"scaling": {"scalingMode": "SCALING_MODE_UNSPECIFIED"}}, []),
        ({}, {"scaling": {"scalingMode": "AUTOMATIC", "minInstanceCount": 0}}, []),
        ({"scaling": {"minInstanceCount": 2.0}}, {"scaling": {"minInstanceCount": 2}}, []),
        ({"scaling": {"minInstanceCount": 2.0}}, {}, ["scaling.minInstanceCount"]),
        ({"invokerIamDisabled": True}, {"invokerIamDisabled": True}, []),
        ({"invokerIamDisabled": True}, {}, ["invokerIamDisabled"]),
        ({"customAudiences": ["b", "a"]}, {"customAudiences": ["a", "b"]}, []),
        # Google chooses what a revision's template does not name.
        ({}, {"template": {"containers": [CONTAINER], "scaling": {"maxInstanceCount": 100}}}, []),
        ({"template": {"containers": [CONTAINER]}}, {"template": {"containers": [CONTAINER]}}, []),
        (
            {"template": {"containers": [CONTAINER]}},
            {"template": {"containers": [{"resources": {"limits": {"cpu": "4000m", "memory": "16384Mi"}}}]}},
            [],
        ),
        (
            {"template": {"containers": [CONTAINER]}},
            {"template": {"containers": [CONTAINER, {"image": "sidecar"}]}},
            ["template.containers[1]"],
        ),
        (
            {"template": {"containers": [{"resources": {"cpuIdle": True}}]}},
            {"template": {"containers": [{"resources": {"startupCpuBoost": True}}]}},
            ["template.containers[0].resources.cpuIdle", "template.containers[0].resources.startupCpuBoost"],
        ),
        # Another network, subnetwork or tag of the same number of interfaces.
        (network(network="n"), network(network="projects/p/global/networks/n", subnetwork="chosen"), []),
        (network(network=PATH), network(network="n"), []),
        (network(subnetwork="s", tags=["b", "a"]), network(network="n", subnetwork="s", tags=["a", "b"]), []),
        (network(network="n"), network(network="other"), [NETWORKS]),
        (network(network=PATH), network(network=PATH.replace("/p/", "/q/")), [NETWORKS]),
        (network(network="n", subnetwork="s"), network(network="n", subnetwork="other"), [NETWORKS]),
        (network(network="n"), network(network="n", tags=["open"]), [NETWORKS]),
        (template(), network(network="n"), [NETWORKS]),
        # Another time limit of a request: Google's own is 300 s.
        (template(timeout="3600s"), template(timeout="3600s"), []),
        (template(), template(timeout="300s"), []),
        (template(timeout="300s"), template(timeout="3600s"), ["template.timeout"]),
        (template(), template(timeout="3600s"), ["template.timeout"]),
        # Other volumes, or another place for one.
        (volumes(GCS), volumes(GCS), []),
        (volumes(EMPTY, GCS), volumes(GCS, EMPTY), []),
        (volumes(secret("hf")), volumes(secret("projects/1/secrets/hf")), []),
        (volumes(GCS), volumes(gcs("other")), ["template.volumes"]),
        (volumes(GCS), volumes(gcs("models", readOnly=False)), ["template.volumes"]),
        (volumes(secret("hf")), volumes(secret("admin")), ["template.volumes"]),
        (volumes(), volumes({"name": "x", "nfs": {"server": "10.0.0.2", "path": "/"}}), ["template.volumes"]),
        (volumes(), volumes({"name": "x", "cloudSqlInstance": {"instances": ["p:r:i"]}}), ["template.volumes"]),
        (template(), mount("/models"), ["template.containers[0].volumeMounts"]),
        (mount("/models"), mount("/models"), []),
        (mount("/models"), mount("/app"), ["template.containers[0].volumeMounts"]),
        (template(), template(encryptionKey="projects/q/k"), ["template.encryptionKey"]),
        (template(), template(serviceMesh={"mesh": "m"}), ["template.serviceMesh.mesh"]),
        # What runs is compared where it alone decides who gets an answer.
        (door(), live_door(), []),
        (door(), live_door(image="other@sha256:1"), ["template.containers[0].image"]),
        (door(), live_door(command=["sh"]), ["template.containers[0].command"]),
        (door(), live_door(args=["-c", "open"]), ["template.containers[0].args"]),
        (door(), live_door(env=[]), ["template.containers[0].env"]),
        (
            door(),
            live_door(env=[{"name": "DOOR_BUCKET", "value": "other"}]),
            ["template.containers[0].env.DOOR_BUCKET"],
        ),
        (door(envs=[{"name": "DOOR_BUCKET", "value": "[secret]"}]), live_door(), []),
        (door() | {"invokerIamDisabled": False}, live_door(args=[]) | {"invokerIamDisabled": False}, []),
    ],
)
def test_a_service_is_compared_with_its_declaration_and_with_defaults(
    declared: Any, live: Any, expected: list[str]
) -> None:
    assert settings(declared, live) == expected


@pytest.mark.parametrize(
    ("targets", "switched", "live", "expected"),
    [
        ([NEWEST], None, [NEWEST], []),
        ([NEWEST], None, [pin("llm-1")], ["traffic"]),
        ([NEWEST], None, [NEWEST, pin("llm-1", 0, tag="x")], ["traffic, tag x"]),
        ([], None, [NEWEST], []),
        # A gated rollout: declared at first, then moved by the switch.
        ([{**NEWEST, "tag": "newest"}], None, [{**NEWEST, "tag": "newest"}], []),
        ([], "llm-2", [pin("llm-2"), HELD], []),
        # The state has the traffic of before the move: what was moved back there by hand is a change.
        ([pin("llm-1"), HELD], "llm-2", [pin("llm-2"), HELD], []),
        ([pin("llm-1"), HELD], "llm-2", [pin("llm-1"), HELD], ["traffic"]),
        ([pin("llm-1"), HELD], "", [pin("llm-1"), HELD], []),
        ([], "llm-2", [pin("llm-1"), HELD], ["traffic"]),
        ([], "llm-2", [pin("llm-2", 50), pin("llm-1", 50), HELD], ["traffic", "traffic"]),
        ([], "llm-2", [pin("llm-2"), HELD, pin("llm-1", 0, tag="x")], ["traffic, tag x"]),
        ([], "", [pin("llm-1"), HELD], []),  # in the middle of one
        ([], "", [pin("llm-1"), HELD, pin("llm-1", 0, tag="x")], ["traffic, tag x"]),
    ],
)
def test_traffic_is_where_the_program_sent_it(
    targets: list[Any], switched: str | None, live: list[Any], expected: list[str]
) -> None:
    assert settings({"traffics": targets}, {"traffic": live}, switched=switched) == expected


@pytest.mark.parametrize("document", ["run.v2"])
def test_each_compared_field_of_a_service_is_google_s(document: str) -> None:
    schemas = json.loads((DOCUMENTS / f"{document}.json").read_text())["schemas"]
    for item in _FIELDS:
        where = "GoogleCloudRunV2Service"
        for part in item.path.split("."):
            properties = schemas[where]["properties"]
            assert part in properties, item.path
            assert not properties[part].get("readOnly"), item.path
            where = properties[part].get("$ref", where)


# Settable fields of the messages, beside those that are compared, that neither cost money nor open access, or that the
# program declares, so that the engine compares them.
_OTHERS = {
    "GoogleCloudRunV2Service": "annotations binaryAuthorization buildConfig client clientVersion description etag "
    "labels functionalType launchStage name template traffic scaling multiRegionSettings",
    "GoogleCloudRunV2ServiceScaling": "",
    "GoogleCloudRunV2RevisionScaling": "",
    # `containers`, `volumes` and the interfaces are compared part by part. A restart or a log costs nothing by itself.
    "GoogleCloudRunV2RevisionTemplate": "annotations client clientVersion containers encryptionKeyRevocationAction "
    "encryptionKeyShutdownDuration executionEnvironment healthCheckDisabled labels revision sandboxes sessionAffinity "
    "volumes",
    "GoogleCloudRunV2VpcAccess": "networkInterfaces",
}
# The same of a machine: compared part by part, or without a price and a way in.
_OTHERS_OF_INSTANCES = {
    "Instance": "canIpForward disks guestAccelerators machineType metadata networkInterfaces reservationAffinity "
    "serviceAccounts tags advancedMachineFeatures description displayDevice fingerprint hostname "
    "instanceEncryptionKey keyRevocationActionType labelFingerprint labels localSsdEncryptionMode minCpuPlatform name "
    "params privateIpv6GoogleAccess shieldedInstanceConfig shieldedInstanceIntegrityPolicy sourceMachineImage "
    "sourceMachineImageEncryptionKey",
    "Scheduling": "availabilityDomain exposeHostTopology hostErrorTimeoutSeconds localSsdRecoveryTimeout locationHint "
    "onHostMaintenance onInstanceStopAction preemptible preemptionNoticeDuration protectionTier skipGuestOsShutdown "
    "terminationTime",
    "NetworkPerformanceConfig": "",
    "NetworkInterface": "accessConfigs aliasIpRanges aliasIpv6Ranges ipv6AccessConfigs subnetwork enableVpcScopedDns "
    "fingerprint igmpQuery internalIpv6PrefixLength ipv6Address network networkAttachment networkIP nicType "
    "parentNicName queueCount serviceClassId vlan",
}
_PATHS = ("", "scaling.", "template.scaling.", "template.", "template.vpcAccess.")


@pytest.mark.parametrize(("message", "path"), list(zip(_OTHERS, _PATHS, strict=True)))
def test_each_settable_field_of_a_service_is_compared_or_known(message: str, path: str) -> None:
    schemas = json.loads((DOCUMENTS / "run.v2.json").read_text())["schemas"]
    fields = {
        name
        for name, field in schemas[message]["properties"].items()
        if not field.get("readOnly") and not field.get("description", "").startswith("Output only")
    }
    compared = {item.path.removeprefix(path).partition(".")[0] for item in _FIELDS if item.path.startswith(path)}
    assert fields - compared - set(_OTHERS[message].split()) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "path", "compared"),
    [
        ("Instance", "", FIELDS),
        ("Scheduling", "scheduling.", FIELDS),
        ("NetworkPerformanceConfig", "networkPerformanceConfig.", FIELDS),
        ("NetworkInterface", "", FIELDS_OF_INTERFACES),
    ],
)
def test_each_settable_field_of_a_machine_is_compared_or_known(
    message: str, path: str, compared: tuple[Field, ...]
) -> None:
    assert_known("compute.v1", message, path, compared, _OTHERS_OF_INSTANCES[message])


def assert_known(document: str, message: str, path: str, compared: tuple[Field, ...], others: str) -> None:
    """Each settable field is compared or listed, and each compared or listed one is Google's."""
    schema = json.loads((DOCUMENTS / f"{document}.json").read_text())["schemas"][message]["properties"]
    named = {each.path.removeprefix(path).partition(".")[0] for each in compared if each.path.startswith(path)}
    output = ("Output only", "[Output Only]")
    settable = {name for name, each in schema.items() if not each.get("description", "").startswith(output)}
    assert settable - named - set(others.split()) == set()
    assert (named | set(others.split())) - set(schema) == set()


ROLE = "roles/run.invoker"
POLICY = {
    "bindings": [
        {"role": ROLE, "members": ["user:Ben@Example.com", "deleted:user:old@example.com?uid=1"]},
        {"role": ROLE, "members": ["user:amy@example.com"], "condition": {"expression": "request.time < x"}},
        {"role": "roles/storage.legacyBucketOwner", "members": ["projectOwner:p", "projectEditor:p", "user:x@e.com"]},
    ]
}


def test_a_grant_is_declared_with_its_member_and_its_condition() -> None:
    assert len(list(grants_in(POLICY))) == 5
    left = undeclared_grants(POLICY, [Grant(ROLE, "user:ben@example.com"), Grant(ROLE, "user:amy@example.com")])
    assert [(grant.role, grant.member, grant.condition) for grant in left] == [
        (ROLE, "user:amy@example.com", "request.time < x"),
        ("roles/storage.legacyBucketOwner", "user:x@e.com", ""),
    ]
    assert undeclared_grants({}, []) == []


def test_a_firewall_is_judged_by_what_it_lets_in() -> None:
    network = "projects/p/global/networks/n"
    rule = {"protocol": "tcp", "ports": ["8000"]}
    declared = {
        "projects/p/global/firewalls/gate": {"allows": [rule], "sourceRanges": ["10.0.0.0/26"], "targetTags": ["t"]}
    }
    gate = {"name": "gate", "allowed": [{"IPProtocol": "tcp", "ports": ["8000"]}], "targetTags": ["t"]}
    closed = [
        {**gate, "sourceRanges": ["10.0.0.0/26"]},
        {"name": "out", "direction": "EGRESS", "allowed": [{"IPProtocol": "all"}]},
        {"name": "off", "disabled": True, "allowed": [{"IPProtocol": "all"}]},
        {"name": "deny", "denied": [{"IPProtocol": "all"}]},
    ]
    assert list(firewall_changes(network, {"firewalls": closed}, declared)) == []
    rules = [{"action": "allow", "direction": "INGRESS", "priority": 5}]
    rules.append({"action": "apply_security_profile_group", "direction": "INGRESS", "priority": 6})
    rules += [{"action": "deny", "direction": "INGRESS"}, {"action": "allow", "direction": "EGRESS"}]
    policy = {"type": "NETWORK", "displayName": "fw", "rules": rules}
    changes = list(firewall_changes(network, {"firewalls": [gate], "firewallPolicys": [policy]}, declared))
    assert [change.setting for change in changes] == ["firewall rule gate", "firewall policy fw"]
    assert changes[1].cloud == "allows by its rules 5, 6"
    peered = {"peerings": [{"name": "other", "network": "https://x/projects/q/global/networks/m"}]}
    (peering,) = network_changes(network, peered)
    assert (peering.setting, peering.cloud) == ("peering other", "q/global/networks/m")


def test_a_machine_is_compared_with_its_request() -> None:
    account = {"email": "a@p.iam.gserviceaccount.com", "scopes": ["s"]}
    body = {
        "serviceAccounts": [account], "tags": {"items": ["t"]}, "metadata": {"items": []}, "disks": [{}],
        "machineType": "g2", "scheduling": {"maxRunDuration": {"seconds": "60"}},
    }  # fmt: skip
    machine = Machine("p", "vm", "flex_start_vm", ("z",), body)
    assert list(instance_changes(machine, {**body, "machineType": "zones/z/machineTypes/g2"})) == []
    live = {
        "serviceAccounts": [{**account, "scopes": ["s", "more"]}], "tags": {"items": ["t"]}, "disks": [{}, {}],
        "machineType": "zones/z/machineTypes/a3", "deletionProtection": True, "canIpForward": True,
        "networkInterfaces": [
            {"ipv6AccessConfigs": [{"externalIpv6": "::1"}], "aliasIpRanges": [{"ipCidrRange": "r"}]}, {}
        ],
        "metadata": {"items": [{"key": "enable-oslogin", "value": "TRUE"}, {"key": "bezel-container", "value": "x"}]},
    }  # fmt: skip
    assert [change.setting for change in instance_changes(machine, live)] == [
        "networkInterfaces[0].ipv6AccessConfigs", "networkInterfaces[0].aliasIpRanges", "networkInterfaces",
        "serviceAccounts", "metadata.enable-oslogin", "canIpForward", "machineType", "disks", "deletionProtection",
        "scheduling.maxRunDuration.seconds",
    ]  # fmt: skip


REQUEST: dict[str, Any] = {
    "machineType": "g2-standard-96",
    "scheduling": {
        "provisioningModel": "FLEX_START", "automaticRestart": False, "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": "60"},
    },
    "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"diskSizeGb": "100"}}],
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}  # fmt: skip
SUBNETWORK = "projects/p/regions/r/subnetworks/s"
GRANTED: dict[str, Any] = {
    **REQUEST,
    "machineType": "https://www.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/g2-standard-96",
    "scheduling": {**REQUEST["scheduling"], "preemptible": False, "onHostMaintenance": "TERMINATE"},
    "disks": [{"boot": True, "autoDelete": True, "diskSizeGb": "100", "type": "PERSISTENT"}],
    # Google lists the accelerators of the machine type.
    "guestAccelerators": [{"acceleratorType": "projects/p/zones/z/acceleratorTypes/nvidia-l4", "acceleratorCount": 8}],
    "networkPerformanceConfig": {"totalEgressBandwidthTier": "DEFAULT"},
    "networkInterfaces": [{"stackType": "IPV4_ONLY", "subnetwork": f"https://x/compute/v1/{SUBNETWORK}"}],
    "confidentialInstanceConfig": {"enableConfidentialCompute": False},
}


def schedule(**more: Any) -> dict[str, Any]:
    return {"scheduling": {**GRANTED["scheduling"], **more}}


def disk(**more: Any) -> dict[str, Any]:
    return {"disks": [{**GRANTED["disks"][0], **more}]}


def interface(**more: Any) -> dict[str, Any]:
    return {"networkInterfaces": [{**GRANTED["networkInterfaces"][0], **more}]}


@pytest.mark.parametrize(
    ("more", "setting", "kind"),
    [
        ({"guestAccelerators": [{"acceleratorType": "a/nvidia-h100-80gb"}]}, "guestAccelerators", "cost"),
        (disk(diskSizeGb="64000"), "disks[0].diskSizeGb", "cost"),
        (disk(autoDelete=False), "disks[0].autoDelete", "cost"),
        ({"resourcePolicies": ["projects/p/regions/r/resourcePolicies/daily"]}, "resourcePolicies", "cost"),
        (schedule(instanceTerminationAction="STOP"), "scheduling.instanceTerminationAction", "cost"),
        (schedule(provisioningModel="STANDARD"), "scheduling.provisioningModel", "cost"),
        (schedule(automaticRestart=True), "scheduling.automaticRestart", "cost"),
        (schedule(maxRunDuration={"seconds": "6000"}), "scheduling.maxRunDuration.seconds", "cost"),
        (schedule(maxRunDuration=None), "scheduling.maxRunDuration.seconds", "cost"),
        (schedule(nodeAffinities=[{"key": "k", "operator": "IN"}]), "scheduling.nodeAffinities", "cost"),
        (schedule(minNodeCpus=4), "scheduling.minNodeCpus", "cost"),
        (schedule(gracefulShutdown={"enabled": True}), "scheduling.gracefulShutdown.enabled", "cost"),
        ({"networkPerformanceConfig": {"totalEgressBandwidthTier": "TIER_1"}},
         "networkPerformanceConfig.totalEgressBandwidthTier", "cost"),
        ({"confidentialInstanceConfig": {"enableConfidentialCompute": True}},
         "confidentialInstanceConfig.enableConfidentialCompute", "cost"),
        ({"confidentialInstanceConfig": {"confidentialInstanceType": "TDX"}},
         "confidentialInstanceConfig.confidentialInstanceType", "cost"),
        ({"reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"}},
         "reservationAffinity.consumeReservationType", "cost"),
        ({"deletionProtection": True}, "deletionProtection", "cost"),
        ({"workloadIdentityConfig": {"identity": "spiffe://x"}}, "workloadIdentityConfig.identity", "access"),
        (interface(ipv6AccessType="EXTERNAL"), "networkInterfaces[0].ipv6AccessType", "access"),
        (interface(stackType="IPV4_IPV6"), "networkInterfaces[0].stackType", "access"),
        (interface(subnetwork=SUBNETWORK.replace("/s", "/other")), "networkInterfaces[0].subnetwork", "access"),
        (interface(aliasIpv6Ranges=[{"ipCidrRange": "fd00::/96"}]), "networkInterfaces[0].aliasIpv6Ranges", "access"),
    ],
)  # fmt: skip
def test_each_costly_setting_of_a_machine_is_compared(more: dict[str, Any], setting: str, kind: str) -> None:
    machine = Machine("p", "vm", "flex_start_vm", ("z",), REQUEST, (SUBNETWORK,))
    assert list(instance_changes(machine, GRANTED)) == []
    assert [(each.setting, each.kind) for each in instance_changes(machine, GRANTED | more)] == [(setting, kind)]
    declared = Machine("p", "vm", "flex_start_vm", ("z",), {**REQUEST, **more})
    if "networkInterfaces" not in more:  # a request has no other interfaces
        assert list(instance_changes(declared, GRANTED | more)) == []


def test_a_node_is_compared_with_its_request() -> None:
    node = {"serviceAccount": {"email": "a@p", "scope": ["s"]}, "tags": ["t"], "metadata": {"startup-script": "a"}}
    machine = Machine("p", "tpu", "queued_resource", ("z",), {"tpu": {"nodeSpec": [{"node": node}]}})
    assert list(node_changes(machine, {**node, "networkEndpoints": [{"ipAddress": "10.0.0.2"}]})) == []
    live = {
        "serviceAccount": {"email": "b@p", "scope": ["s"]}, "tags": ["t", "u"], "metadata": {"startup-script": "b"},
        "networkEndpoints": [{"accessConfig": {"externalIp": "1.2.3.4"}}], "dataDisks": [{}],
        "networkConfig": {"enableExternalIps": True, "canIpForward": True},
    }  # fmt: skip
    assert [change.setting for change in node_changes(machine, live)] == [
        "networkEndpoints[0].accessConfig.externalIp", "networkConfig.enableExternalIps", "networkConfig.canIpForward",
        "serviceAccounts", "tags", "metadata.startup-script", "dataDisks",
    ]  # fmt: skip


def test_a_login_is_a_change_where_declared_attributes_are_unknown() -> None:
    """A login is a change also where the declared attributes are not known."""
    machine = Machine("p", "vm", "flex_start_vm", ("z",), {})
    script = {"key": "startup-script", "value": "#!/bin/sh"}
    assert list(instance_changes(machine, {"metadata": {"items": [script]}})) == []
    live = {"metadata": {"items": [script, {"key": "ssh-keys", "value": "me:ssh-rsa AAAA"}]}}
    (change,) = instance_changes(machine, live)
    assert (change.setting, change.cloud) == ("metadata.ssh-keys", "(15 characters)")


SCRIPTS = (
    "gce-container-declaration", "windows-startup-script-ps1", "windows-startup-script-url",
    "sysprep-specialize-script-ps1", "sysprep-specialize-script-cmd", "windows-shutdown-script-bat", "user-data",
    "startup-script-url", "shutdown-script", "enable-osconfig", "enable-windows-ssh", "ssh-keys", "serial-port-enable",
)  # fmt: skip


@pytest.mark.parametrize("key", SCRIPTS)
def test_each_attribute_that_lets_a_user_in_is_named(key: str) -> None:
    items = {"metadata": {"items": [{"key": key, "value": "TRUE"}]}}
    machine = Machine("p", "vm", "flex_start_vm", ("z",), {"metadata": {"items": []}})
    assert [change.setting for change in instance_changes(machine, items)] == [f"metadata.{key}"]
    assert list(instance_changes(Machine("p", "vm", "flex_start_vm", ("z",), items), items)) == []
    node: dict[str, Any] = {"tpu": {"nodeSpec": [{"node": {"metadata": {}}}]}}
    tpu = Machine("p", "tpu", "queued_resource", ("z",), node)
    assert [change.setting for change in node_changes(tpu, {"metadata": {key: "x"}})] == [f"metadata.{key}"]
    project = {"commonInstanceMetadata": items["metadata"]}
    (change,) = project_changes("p", project)
    assert (change.resource, change.setting) == ("project p", f"commonInstanceMetadata.{key}")
    assert f"remove-metadata --keys={key} --project=p" in change.repair


def test_a_project_s_other_attributes_are_no_change() -> None:
    values = {
        "enable-oslogin": "TRUE", "block-project-ssh-keys": "TRUE", "serial-port-enable": "FALSE",
        "google-compute-default-zone": "us-east5-a", "enable-osconfig": "false",
    }  # fmt: skip
    items = [{"key": key, "value": value} for key, value in values.items()]
    assert list(project_changes("p", {"commonInstanceMetadata": {"items": items}})) == []
    assert list(project_changes("p", {})) == []


def test_a_subnetwork_s_logs_and_a_repository_s_scanner_cost_money() -> None:
    quiet = {"logConfig": {"enable": False}, "stackType": "IPV4_ONLY"}
    assert list(subnetwork_changes("s", {}, quiet)) == []
    logged = {"logConfig": {"enable": True}, "stackType": "IPV4_ONLY"}
    assert [(each.setting, each.kind) for each in subnetwork_changes("s", {}, logged)] == [("logConfig.enable", "cost")]
    assert list(subnetwork_changes("s", {"logConfig": {"metadata": "EXCLUDE_ALL_METADATA"}}, logged)) == []
    (change,) = subnetwork_changes("s", {}, {"stackType": "IPV4_IPV6"})
    assert (change.setting, change.kind) == ("stackType", "access")

    name = "projects/p/locations/l/repositories/hub"
    off, on = (
        {"vulnerabilityScanningConfig": {"enablementState": f"SCANNING_{state}"}} for state in ("DISABLED", "ACTIVE")
    )
    assert [list(repository_changes(name, *sides)) for sides in ((off, off), (on, on), (on, off), ({}, {}))] == [[]] * 4
    for declared in (off, {}):
        (change,) = repository_changes(name, declared, on)
        assert (change.setting, change.kind) == ("vulnerabilityScanningConfig.enablementState", "cost")
        assert "repositories update hub" in change.repair


@pytest.mark.parametrize(
    ("type_", "minima"),
    [
        ("pulumi-python:dynamic/components:ScheduledMinimum", {NAME: {0, 2}}),
        ("bezel:components:ScheduledMinimum", {NAME: {0, 2}}),
        ("theirs:components:ScheduledMinimum", {}),
    ],
)
def test_minima_of_a_schedule_are_declared_in_programs_of_each_language(type_: str, minima: dict[str, Any]) -> None:
    """Minima that a schedule sets are declared by a program in Python and by one that uses the package."""
    inputs = {"service": NAME, "entries": [["0 8 * * *", "UTC", 2.0], ["0 18 * * *", "UTC", 0.0]]}
    assert declared_in(entries_in([{"type": type_, "id": "x", "inputs": inputs}])).minima == minima


def test_the_traffic_of_a_gated_rollout_is_declared_in_the_package_too() -> None:
    entry = {"type": "bezel:components:TrafficSwitch", "id": "x", "inputs": {"service": NAME, "revision": "llm-2"}}
    assert declared_in(entries_in([entry])).switched == {NAME: "llm-2"}
    assert declared_in(entries_in([{**entry, "delete": True}])).switched == {}
