"""Settings of a Cloud Run service that cost money or decide who has access, compared with its declaration. Pure.

The fields are those of run v2's discovery document (revision 20261031): Service, ServiceScaling, RevisionTemplate,
RevisionScaling, ResourceRequirements, TrafficTarget, MultiRegionSettings. A field that the program does not declare is
compared with Google's default; where Google chooses a value by itself, only a declared one is compared.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from bezel.outside_changes.change import Kind, OutsideChange
from bezel.outside_changes.fields import Field, declared_at, same_resource, short_name, text_of, value_at
from bezel.outside_changes.rollback import Rollback, in_force
from bezel_base.text.shell import shell_word

RESTORE = "`pulumi up --refresh` restores the declared value."
UNPIN = "the next deploy moves the traffic to the newest revision."
NEWEST = "newest"
_MASKED = "[secret]"
"""A secret's value in a state that was read for a person."""
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGT]i?)?")
_UNITS = {"": Decimal(1), "m": Decimal("0.001")} | {
    f"{letter}{suffix}": Decimal(base) ** power
    for power, letters in enumerate(("kK", "M", "G", "T"), 1)
    for letter in letters
    for suffix, base in (("", 1000), ("i", 1024))
}


_FIELDS = (
    Field("ingress", "access", "INGRESS_TRAFFIC_ALL"),
    Field("invokerIamDisabled", "access", default=False),
    Field("iapEnabled", "access", default=False),
    Field("sshEnabled", "access", default=False),
    Field("defaultUriDisabled", "access", default=False),
    Field("customAudiences", "access", ()),
    Field("multiRegionSettings.regions", "cost", ()),
    Field("scaling.scalingMode", "cost", "AUTOMATIC", "--scaling=auto"),
    Field("scaling.manualInstanceCount", "cost", 0, "--scaling=auto"),
    Field("scaling.minInstanceCount", "cost", 0, "--min={}"),
    Field("scaling.maxInstanceCount", "cost", 0, "--max={}"),
    Field("template.scaling.minInstanceCount", "cost", 0),
    Field("template.scaling.maxInstanceCount", "cost"),
    Field("template.scaling.cpuUtilization", "cost"),
    Field("template.scaling.concurrencyUtilization", "cost"),
    Field("template.maxInstanceRequestConcurrency", "cost"),
    Field("template.nodeSelector.accelerator", "cost", ""),
    Field("template.gpuZonalRedundancyDisabled", "cost", default=False),
    Field("template.serviceAccount", "access"),
    Field("template.workloadIdentityConfig", "access", ()),
    Field("template.vpcAccess.connector", "access", ""),
    Field("template.vpcAccess.egress", "access"),
    Field("template.timeout", "cost", "300s"),
    Field("template.encryptionKey", "access", ""),
    Field("template.serviceMesh.mesh", "access", ""),
    Field("template.ambientNetworking.ambientScope", "access", ""),
)
_VOLUMES = {
    "gcs": ("bucket",),
    "nfs": ("server", "path"),
    "filestore": ("instance", "fileShare"),
    "secret": ("secret",),
    "cloudSqlInstance": ("instances",),
    "emptyDir": (),
}
"""Sources of a volume, each with the fields that say what it is."""
_ACCESS_OF_NETWORKS = "template.vpcAccess.networkInterfaces"


def service_changes(
    name: str,
    declared: Mapping[str, Any],
    live: Mapping[str, Any],
    *,
    minima: Collection[int] = (),
    switched: str | None = None,
    ended: str = "",
) -> list[OutsideChange]:
    """The changes of a service.

    Args:
        name: `projects/P/locations/L/services/S`.
        declared: Its declared inputs, with the engine's names.
        live: The service in run v2's description.
        minima: Minima that its schedule sets, each of which is declared.
        switched: Revision that a gated rollout moved the traffic to, "" where it is not known yet; None without one.
        ended: Time of the rollback that this move has ended; "" without one.
    """
    _, project, _, region, _, short = name.split("/")
    update = (
        f"gcloud run services update {shell_word(short)} --region={shell_word(region)} --project={shell_word(project)}"
    )
    changes = []
    # A partial answer says nothing about a revision's template.
    knows_template = bool(value_at(live, "template.containers"))
    for item in _FIELDS:
        if item.path.startswith("template.") and not knows_template:
            continue
        wanted, there = declared_at(declared, item.path), value_at(live, item.path)
        if item.path == "scaling.minInstanceCount" and minima:
            if int(there or 0) in minima:
                continue
            wanted = sorted(minima)
        elif not item.differs(wanted, there):
            continue
        flag = item.flag.format(0 if wanted is None else wanted) if not minima or "min" not in item.path else ""
        repair = f"`{update} {flag}`." if flag and wanted is None else RESTORE
        changes.append(_change(short, item.path, there, wanted, item.kind, repair))
    changes += [
        _change(short, path, there, wanted, kind, RESTORE) for path, there, wanted, kind in _parts(declared, live)
    ]
    pin = in_force(live, ended)
    return [*changes, *_of_traffic(short, update.replace("update", "update-traffic", 1), declared, live, switched, pin)]


def named_revisions(live: Mapping[str, Any]) -> list[str]:
    """Short names of the revisions that the traffic names, which run beside the newest one."""
    newest = short_name(live.get("latestReadyRevision"))
    named = dict.fromkeys(short_name(target.get("revision")) for target in live.get("traffic") or ())
    return [revision for revision in named if revision and revision != newest]


def _parts(declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Kind]]:
    """Differences of the containers, of the volumes and of the network interfaces."""
    yield from _parts_of_containers(declared, live)
    # A partial answer says nothing about a revision's template.
    if _list(declared, "template.containers") and _list(live, "template.containers"):
        volumes = [sorted(map(_volume_text, _list(each, "template.volumes"))) for each in (declared, live)]
        if volumes[0] != volumes[1]:
            yield "template.volumes", volumes[1], volumes[0], "access"
    networks = [_list(each, _ACCESS_OF_NETWORKS) for each in (declared, live)]
    if len(networks[0]) != len(networks[1]) or not all(map(_same_network, *networks)):
        named = [", ".join(map(_network_text, side)) or None for side in networks]
        yield _ACCESS_OF_NETWORKS, named[1], named[0], "access"


def _parts_of_containers(declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Kind]]:
    wanted, there = _list(declared, "template.containers"), _list(live, "template.containers")
    for number, container in enumerate(there):
        where = f"template.containers[{number}]"
        if number >= len(wanted):
            if wanted:
                yield where, container.get("image") or container.get("name"), None, "cost"
            continue
        limits = value_at(wanted[number], "resources.limits") or {}
        for key in sorted({*limits, *((value_at(container, "resources.limits") or {}) if limits else {})}):
            value = (value_at(container, "resources.limits") or {}).get(key)
            if not _same_quantity(limits.get(key), value):
                yield f"{where}.resources.limits.{key}", value, limits.get(key), "cost"
        for key, default in (("cpuIdle", None), ("startupCpuBoost", False)):  # Google chooses the first one
            declared_flag = value_at(wanted[number], f"resources.{key}")
            expected = default if declared_flag is None else bool(declared_flag)
            flag = bool(value_at(container, f"resources.{key}"))
            if expected is not None and expected != flag:
                yield f"{where}.resources.{key}", flag, declared_flag, "cost"
        mounts = [_mounts(each) for each in (wanted[number], container)]
        if mounts[0] != mounts[1]:
            yield f"{where}.volumeMounts", mounts[1], mounts[0], "access"
        if declared.get("invokerIamDisabled"):
            yield from _parts_of_program(where, wanted[number], container)


def _parts_of_program(
    where: str, declared: Mapping[str, Any], live: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any, Kind]]:
    """Differences of what runs where Cloud Run checks no caller: the program alone decides who gets an answer."""
    if declared.get("image") and declared["image"] != live.get("image"):
        yield f"{where}.image", live.get("image"), declared["image"], "access"
    for name, declared_name in (("command", "commands"), ("args", "args")):
        if [*(declared.get(declared_name) or ())] != [*(live.get(name) or ())]:
            yield f"{where}.{name}", "another one", "its own", "access"  # a program is no text for a line
    variables = _list(declared, "envs"), _list(live, "env")
    names = [{str(each.get("name")) for each in side} for side in variables]
    if names[0] != names[1]:
        yield f"{where}.env", sorted(names[1]), sorted(names[0]), "access"
    values = [{each.get("name"): each.get("value") for each in side} for side in variables]
    for name in sorted(names[0] & names[1]):
        wanted = values[0][name]
        if isinstance(wanted, str) and wanted != _MASKED and wanted != (values[1][name] or ""):
            yield f"{where}.env.{name}", values[1][name], wanted, "access"


def _mounts(container: Mapping[str, Any]) -> list[str]:
    mounts = _list(container, "volumeMounts")
    return sorted(
        f"{each.get('name')}{f'/{path}' if (path := each.get('subPath')) else ''} at {each.get('mountPath')}"
        for each in mounts
    )


def _volume_text(volume: Mapping[str, Any]) -> str:
    """What a volume holds; of one in memory its size is in the container's limit already."""
    for kind, parts in _VOLUMES.items():
        if (source := volume.get(kind)) is not None:
            members = [source.get(part) for part in parts]
            texts = [", ".join(sorted(map(str, each))) if isinstance(each, list | tuple) else str(each or "")
                     for each in members]  # fmt: skip
            what = ":".join(text.rpartition("/secrets/")[2] for text in texts if text)
            return f"{volume.get('name')}: {kind} {what}".rstrip() + (" (read-only)" if source.get("readOnly") else "")
    return str(volume.get("name"))


def _same_network(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether two interfaces are the same; Google names the network of a declared subnetwork, and the reverse."""
    named = all(
        same_resource(str(wanted[key]), str(there.get(key) or ""))
        for key in ("network", "subnetwork")
        if wanted.get(key)
    )
    return named and sorted(map(str, wanted.get("tags") or ())) == sorted(map(str, there.get("tags") or ()))


def _network_text(interface: Mapping[str, Any]) -> str:
    named = short_name(interface.get("network") or interface.get("subnetwork"))
    both = [named, *([] if not interface.get("network") else filter(None, [short_name(interface.get("subnetwork"))]))]
    tags = ", ".join(sorted(map(str, interface.get("tags") or ())))
    return "/".join(both) + (f" with the tags {tags}" if tags else "")


def _of_traffic(
    short: str,
    command: str,
    declared: Mapping[str, Any],
    live: Mapping[str, Any],
    switched: str | None,
    pin: Rollback | None,
) -> Iterator[OutsideChange]:
    """A tag gives a revision an address, and lets it keep its minimum of instances; so does a share of the traffic."""
    allowed = {_target(target) for target in declared.get("traffics") or ()}
    if switched is not None:
        # What a gated service was declared with was in force until the switch moved the traffic.
        allowed = {(switched, 100, ""), ("", 0, NEWEST)} | (set() if switched else allowed)
    tags = {tag for _, _, tag in allowed} | {""}
    program = ", ".join(sorted(_target_text(target) for target in allowed)) or "100 % to the newest revision"
    for target in live.get("traffic") or ():
        revision, percent, tag = _target(target)
        if pin is not None and percent:
            yield OutsideChange(f"service {short}", "traffic", f"100 % {pin.sentence()}", program, "rollback", UNPIN)
            continue
        if (revision, percent, tag) in allowed or (not allowed and (revision, percent, tag) == ("", 100, "")):
            continue
        text = _target_text((revision, percent, tag))
        if tag not in tags:
            repair = f"`{command} --remove-tags={shell_word(tag)}`."
            yield OutsideChange(f"service {short}", f"traffic, tag {tag}", text, program, "cost", repair)
        elif switched != "":  # during a gated rollout the share of the newest revision is about to be moved
            yield OutsideChange(f"service {short}", "traffic", text, program, "cost", RESTORE)


def _target(target: Mapping[str, Any]) -> tuple[str, int, str]:
    return short_name(target.get("revision")), int(target.get("percent") or 0), str(target.get("tag") or "")


def _target_text(target: tuple[str, int, str]) -> str:
    revision, percent, tag = target
    return f"{percent} % to {revision or 'the newest revision'}" + (f" with the tag {tag}" if tag else "")


def _change(short: str, path: str, there: Any, wanted: Any, kind: Kind, repair: str) -> OutsideChange:
    return OutsideChange(f"service {short}", path, text_of(there), text_of(wanted), kind, repair)


def _list(values: Mapping[str, Any], path: str) -> Sequence[Mapping[str, Any]]:
    value = value_at(values, path)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _same_quantity(wanted: Any, there: Any) -> bool:
    amounts = [_quantity(value) for value in (wanted, there)]
    return wanted == there or (amounts[0] is not None and amounts[0] == amounts[1])


def _quantity(value: Any) -> Decimal | None:
    match = _QUANTITY.fullmatch(str(value))
    return Decimal(match[1]) * _UNITS[match[2] or ""] if match else None
