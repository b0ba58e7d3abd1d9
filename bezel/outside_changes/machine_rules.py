"""Settings of leased machines and of their network that cost money or open access, compared with the request. Pure.

Fields are those of the discovery documents of compute v1 (Instance, NetworkInterface, Network, Firewall,
NetworksGetEffectiveFirewallsResponse) and tpu v2alpha1 (Node). Labels, and attributes that only Bezel reads, are left
out.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bezel.outside_changes.change import NOT_SET, Kind, OutsideChange
from bezel.outside_changes.declared import Machine
from bezel.outside_changes.fields import Field, differences, same_resource
from bezel.outside_changes.service_rules import RESTORE
from bezel_base.text.shell import shell_word

_OPENING_KEY = re.compile(
    r"ssh-keys|sshKeys|block-project-ssh-keys|enable-oslogin(-sk)?|serial-port-enable|user-data|windows-keys"
    r"|(windows-)?(startup|shutdown)-script(-(ps1|cmd|bat|url))?|sysprep-specialize-script-(ps1|cmd|bat|url)"
    r"|gce-(container|software)-declaration|enable-osconfig|enable-windows-ssh|enable-guest-attributes"
)
"""Attributes of a machine by which a user logs in or runs a program (Compute's page on predefined metadata keys)."""
_CLOSING_IN_PROJECT = frozenset(
    {"block-project-ssh-keys", "enable-oslogin", "enable-oslogin-sk", "enable-guest-attributes"}
)
"""Attributes of a project that leave the login to IAM, or only tell of a machine."""
_OFF = frozenset({"", "0", "false", "n", "no"})
_OF_BEZEL = frozenset({"startup-script", "enable-guest-attributes"})
FIELDS = (
    Field("deletionProtection", "cost", default=False),
    Field("scheduling.maxRunDuration.seconds", "cost"),
    Field("scheduling.instanceTerminationAction", "cost"),
    Field("scheduling.provisioningModel", "cost"),
    Field("scheduling.automaticRestart", "cost"),
    Field("scheduling.nodeAffinities", "cost", ()),
    Field("scheduling.minNodeCpus", "cost", 0),
    Field("scheduling.gracefulShutdown.enabled", "cost", default=False),
    Field("networkPerformanceConfig.totalEgressBandwidthTier", "cost", "DEFAULT"),
    Field("resourcePolicies", "cost", ()),
    Field("confidentialInstanceConfig.enableConfidentialCompute", "cost", default=False),
    Field("confidentialInstanceConfig.confidentialInstanceType", "cost", ""),
    Field("workloadIdentityConfig.identity", "access", ""),
)
"""Compared fields of an instance, beside those that are compared part by part."""
FIELDS_OF_INTERFACES = (Field("ipv6AccessType", "access", ""), Field("stackType", "access", "IPV4_ONLY"))
"""Compared fields of a network interface, which no request of a lease names."""
_OWN_ACCELERATORS = {
    "a2": "a100", "a3": "h[12]00", "a4": "b200", "a4x": "gb[23]00", "g2": "nvidia-l4", "g4": "nvidia-rtx-pro-6000",
    "ct5l": "ct5l", "ct5lp": "ct5lp", "ct5p": "ct5p", "ct6e": "ct6e", "tpu7x": "tpu7x",
}  # fmt: skip
"""Family of machine types -> the accelerators that it has, which Google lists though no request names them."""
_RENEW = "delete the lease and deploy again: `pulumi up --refresh`."


def instance_changes(machine: Machine, live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """The changes of a machine of Compute Engine."""
    body, name = machine.body, f"machine {machine.name}"
    for number, interface in enumerate(live.get("networkInterfaces") or ()):
        for kind in ("accessConfigs", "ipv6AccessConfigs"):
            for config in interface.get(kind) or ():
                address = config.get("natIP") or config.get("externalIpv6") or config.get("name") or "an address"
                zone = _short(live.get("zone"))
                repair = (
                    f"`gcloud compute instances delete-access-config {shell_word(machine.name)} "
                    f"--zone={shell_word(zone)} "
                    f"--project={shell_word(machine.project)} "
                    f"--access-config-name={shell_word(str(config.get('name') or 'external-nat'))}`."
                )
                yield OutsideChange(
                    name, f"networkInterfaces[{number}].{kind}", str(address), NOT_SET, "access", repair
                )
        if ranges := [str(each.get("ipCidrRange")) for each in interface.get("aliasIpRanges") or ()]:
            yield _change(name, f"networkInterfaces[{number}].aliasIpRanges", ranges, None, "access")
        if ranges := [str(each.get("ipCidrRange")) for each in interface.get("aliasIpv6Ranges") or ()]:
            yield _change(name, f"networkInterfaces[{number}].aliasIpv6Ranges", ranges, None, "access")
        for item, there, _ in differences(FIELDS_OF_INTERFACES, {}, interface):
            yield _change(name, f"networkInterfaces[{number}].{item.path}", there, None, "access")
        yield from _subnetwork(machine, f"networkInterfaces[{number}].subnetwork", interface.get("subnetwork"))
    if len(live.get("networkInterfaces") or ()) > 1:
        yield _change(name, "networkInterfaces", len(live["networkInterfaces"]), 1, "access")
    yield from _accounts(
        name,
        [(str(each.get("email")), each.get("scopes") or ()) for each in live.get("serviceAccounts") or ()],
        [(str(each.get("email")), each.get("scopes") or ()) for each in body.get("serviceAccounts") or ()],
    )
    yield from _list_changes(name, "tags", (live.get("tags") or {}).get("items"), (body.get("tags") or {}).get("items"))
    yield from _attributes(name, _items(live), _items(body) if "metadata" in body else None)
    if live.get("canIpForward"):
        yield _change(name, "canIpForward", True, None, "access")
    yield from _costs(name, body, live)


def _costs(name: str, body: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    wanted, there = _short(body.get("machineType")), _short(live.get("machineType"))
    if wanted and there and wanted != there:
        yield _change(name, "machineType", there, wanted, "cost")
    disks = [len(side.get("disks") or ()) for side in (live, body)]
    if disks[1] and disks[0] > disks[1]:
        yield _change(name, "disks", f"{disks[0]} disks", f"{disks[1]} disks", "cost")
    yield from _costs_of_disks(name, body, live)
    yield from _accelerators(name, body, live)
    affinities = [(side.get("reservationAffinity") or {}).get("consumeReservationType") for side in (live, body)]
    if all(affinities) and affinities[0] != affinities[1]:
        yield _change(name, "reservationAffinity.consumeReservationType", affinities[0], affinities[1], "cost")
    for item, value, declared in differences(FIELDS, body, live):
        yield _change(name, item.path, value, declared, item.kind)


def _costs_of_disks(name: str, body: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    for number, (disk, there) in enumerate(zip(body.get("disks") or (), live.get("disks") or (), strict=False)):
        asked = disk.get("diskSizeGb") or (disk.get("initializeParams") or {}).get("diskSizeGb")
        sizes = [there.get("diskSizeGb"), asked]
        if all(sizes) and str(sizes[0]) != str(sizes[1]):
            yield _change(name, f"disks[{number}].diskSizeGb", str(sizes[0]), str(sizes[1]), "cost")
        if disk.get("autoDelete") and there.get("autoDelete") is False:
            yield _change(name, f"disks[{number}].autoDelete", False, True, "cost")


def _accelerators(name: str, body: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    family = _short(body.get("machineType")).partition("-")[0]
    own_pattern = _OWN_ACCELERATORS.get(family)
    texts = [
        sorted(
            f"{each.get('acceleratorCount', 1)} x {kind}"
            for each in side.get("guestAccelerators") or ()
            for kind in (_short(each.get("acceleratorType")),)
            if "guestAccelerators" in body or own_pattern is None or not re.search(own_pattern, kind)
        )
        for side in (live, body)
    ]
    if texts[0] != texts[1]:
        yield _change(name, "guestAccelerators", texts[0], texts[1], "cost")


def _subnetwork(machine: Machine, setting: str, there: object) -> Iterator[OutsideChange]:
    if there and machine.subnetworks and not any(same_resource(each, str(there)) for each in machine.subnetworks):
        yield _change(f"machine {machine.name}", setting, there, machine.subnetworks, "access")


def project_changes(project: str, live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """Attributes of a project by which a user logs in to each of its machines, or runs a program there.

    Args:
        project: Id of the project.
        live: The project in Compute's description.
    """
    attributes = _items({"metadata": live.get("commonInstanceMetadata")})
    for key in sorted(filter(_OPENING_KEY.fullmatch, attributes)):
        text = str(attributes[key])
        if key in _CLOSING_IN_PROJECT or text.strip().casefold() in _OFF:
            continue
        repair = (
            f"`gcloud compute project-info remove-metadata --keys={shell_word(key)} --project={shell_word(project)}`."
        )
        what, setting = f"project {project}", f"commonInstanceMetadata.{key}"
        yield OutsideChange(what, setting, f"({len(text)} characters)", NOT_SET, "access", repair)


def node_changes(machine: Machine, live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """The changes of a TPU node."""
    specs = (machine.body.get("tpu") or {}).get("nodeSpec") or [{}]
    body: Mapping[str, Any] = specs[0].get("node") or {}
    name = f"machine {machine.name}"
    for number, place in enumerate(live.get("networkEndpoints") or ()):
        if address := (place.get("accessConfig") or {}).get("externalIp"):
            yield _change(name, f"networkEndpoints[{number}].accessConfig.externalIp", address, None, "access")
    configs = [live.get("networkConfig") or {}, *(live.get("networkConfigs") or ())]
    for config in configs:
        yield from _subnetwork(machine, "networkConfig.subnetwork", config.get("subnetwork"))
    if any(config.get("enableExternalIps") for config in configs):
        yield _change(name, "networkConfig.enableExternalIps", True, False, "access")
    if any(config.get("canIpForward") for config in configs):
        yield _change(name, "networkConfig.canIpForward", True, None, "access")
    accounts = [side.get("serviceAccount") or {} for side in (live, body)]
    if accounts[1]:
        sides = [[(str(each.get("email")), each.get("scope") or ())] if each else [] for each in accounts]
        yield from _accounts(name, *sides)
    yield from _list_changes(name, "tags", live.get("tags"), body.get("tags"))
    yield from _attributes(name, live.get("metadata") or {}, body.get("metadata"))
    if len(live.get("dataDisks") or ()) > len(body.get("dataDisks") or ()):
        yield _change(name, "dataDisks", f"{len(live['dataDisks'])} disks", None, "cost")


def firewall_changes(
    network: str, effective: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]
) -> Iterator[OutsideChange]:
    """Rules that let connections in, and that are not declared so.

    Args:
        network: `projects/P/global/networks/N`.
        effective: Response of `networks.getEffectiveFirewalls`.
        declared: Name of each declared rule -> its inputs.
    """
    name, project = f"network {_short(network)}", network.split("/")[1]
    for rule in effective.get("firewalls") or ():
        if rule.get("direction") == "EGRESS" or not rule.get("allowed") or rule.get("disabled"):
            continue
        short = str(rule.get("name"))
        wanted = declared.get(f"projects/{project}/global/firewalls/{short}")
        live = _rule_text(rule, "allowed")
        if wanted is None:
            repair = f"`gcloud compute firewall-rules delete {shell_word(short)} --project={shell_word(project)}`."
            yield OutsideChange(name, f"firewall rule {short}", live, NOT_SET, "access", repair)
        elif live != (text := _rule_text(wanted, "allows")):
            yield OutsideChange(name, f"firewall rule {short}", live, text, "access", RESTORE)
    for policy in effective.get("firewallPolicys") or ():
        opening_rules = [rule for rule in policy.get("rules") or () if _lets_in(rule)]
        if policy.get("type") in {"NETWORK", "NETWORK_REGIONAL"} and opening_rules:
            short = str(policy.get("displayName") or policy.get("shortName") or policy.get("name"))
            rules = ", ".join(str(rule.get("priority")) for rule in opening_rules)
            repair = "remove its association with the network (gcloud compute network-firewall-policies associations)."
            yield OutsideChange(
                name, f"firewall policy {short}", f"allows by its rules {rules}", NOT_SET, "access", repair
            )


def network_changes(network: str, live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """Peerings, by which another network reaches this one."""
    project = shell_word(network.split("/")[1])
    for peering in live.get("peerings") or ():
        short, other = str(peering.get("name")), str(peering.get("network") or "").rpartition("/projects/")[2]
        removed = f"gcloud compute networks peerings delete {shell_word(short)} --network={shell_word(_short(network))}"
        yield OutsideChange(
            f"network {_short(network)}", f"peering {short}", other, NOT_SET, "access",
            f"`{removed} --project={project}`.",
        )  # fmt: skip


def subnetwork_changes(name: str, declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[OutsideChange]:
    """Flow logs of a subnetwork, which are paid for by volume, and addresses of IPv6.

    Args:
        name: Short name of the subnetwork.
        declared: Its declared inputs.
        live: The subnetwork in Compute's description.
    """
    what, logs = f"subnetwork {name}", bool((live.get("logConfig") or {}).get("enable") or live.get("enableFlowLogs"))
    if logs and declared.get("logConfig") is None:
        yield OutsideChange(what, "logConfig.enable", "true", NOT_SET, "cost", RESTORE)
    for item, there, wanted in differences(FIELDS_OF_INTERFACES, declared, live):
        yield OutsideChange(what, item.path, _text(there), _text(wanted), item.kind, RESTORE)


def router_changes(
    networks: Collection[str], routers: Iterable[Mapping[str, Any]], declared: Collection[str]
) -> Iterator[OutsideChange]:
    """Translations of addresses by which machines reach the internet, each of which costs money.

    Args:
        networks: `projects/P/global/networks/N` of the stack.
        routers: Routers of a region.
        declared: Names of the declared translations, below their routers.
    """
    for router in routers:
        path = str(router.get("selfLink") or "").partition("/projects/")[2]
        network = f"projects/{str(router.get('network') or '').rpartition('/projects/')[2]}"
        if network not in networks:
            continue
        _, _, region, _, short = path.split("/")
        for nat in router.get("nats") or ():
            name = str(nat.get("name"))
            if f"projects/{path}/{name}" in declared:
                continue
            removed = f"gcloud compute routers nats delete {shell_word(name)} --router={shell_word(short)}"
            removed += f" --region={shell_word(region)} --project={shell_word(path.partition('/')[0])}"
            ranges = str(nat.get("sourceSubnetworkIpRangesToNat") or "its subnetworks")
            yield OutsideChange(f"network {_short(network)}", f"NAT {name}", ranges, NOT_SET, "cost", f"`{removed}`.")


def _lets_in(rule: Mapping[str, Any]) -> bool:
    passes = rule.get("action") in {"allow", "apply_security_profile_group"}  # the latter after an inspection
    return passes and rule.get("direction") == "INGRESS" and not rule.get("disabled")


def _rule_text(rule: Mapping[str, Any], allows: str) -> str:
    """What a rule lets in, the same for Compute's names and the engine's."""
    protocols = []
    for each in rule.get(allows) or ():
        ports = ",".join(map(str, each.get("ports") or ()))
        protocols.append(f"{each.get('IPProtocol') or each.get('protocol')}{f':{ports}' if ports else ''}")
    sources = [
        str(source)
        for key in ("sourceRanges", "sourceTags", "sourceServiceAccounts")
        for source in sorted(map(str, rule.get(key) or ()))
    ]
    targets = [str(t) for key in ("targetTags", "targetServiceAccounts") for t in sorted(map(str, rule.get(key) or ()))]
    to = f" to {', '.join(targets)}" if targets else " to every machine"
    return f"{' '.join(sorted(protocols))} from {', '.join(sources) or 'anywhere'}{to}"


def _accounts(
    name: str, live: Sequence[tuple[str, Iterable[str]]], wanted: Sequence[tuple[str, Iterable[str]]]
) -> Iterator[OutsideChange]:
    texts = [
        [f"{email} with {', '.join(_short(scope) for scope in sorted(scopes)) or 'no scope'}" for email, scopes in side]
        for side in (live, wanted)
    ]
    if sorted(texts[0]) != sorted(texts[1]):
        yield _change(name, "serviceAccounts", texts[0], texts[1], "access")


def _list_changes(name: str, setting: str, live: Any, wanted: Any) -> Iterator[OutsideChange]:
    there, declared = sorted(map(str, live or ())), sorted(map(str, wanted or ()))
    if there != declared:
        yield _change(name, setting, there, declared, "access")


def _attributes(name: str, live: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> Iterator[OutsideChange]:
    """Attributes that let a user in; their values may be keys and programs, and are not shown.

    Without the declared ones those that Bezel sets itself are left out.
    """
    for key in sorted(filter(_OPENING_KEY.fullmatch, {*live, *(wanted or {})})):
        if wanted is None and key in _OF_BEZEL:
            continue
        there, declared = live.get(key), (wanted or {}).get(key)
        if there != declared and not (there is None and declared is None):
            texts = [NOT_SET if each is None else f"({len(str(each))} characters)" for each in (there, declared)]
            if texts[0] == texts[1]:
                texts = ["another text", "its own text"]
            yield _change(name, f"metadata.{key}", texts[0], texts[1], "access")


def _items(side: Mapping[str, Any]) -> dict[str, Any]:
    return {str(item.get("key")): item.get("value", "") for item in (side.get("metadata") or {}).get("items") or ()}


def _change(name: str, setting: str, there: Any, wanted: Any, kind: Kind) -> OutsideChange:
    return OutsideChange(name, setting, _text(there), _text(wanted), kind, _RENEW)


def _text(value: Any) -> str:
    if value is None or value in ([], "", {}):
        return NOT_SET
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def _short(name: object) -> str:
    return str(name or "").rpartition("/")[2]
