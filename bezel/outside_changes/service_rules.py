"""Settings of a Cloud Run service that cost money or decide who has access, compared with its declaration. Pure.

The fields are those of run v2's discovery document (revision 20261031): Service, ServiceScaling, RevisionTemplate,
RevisionScaling, ResourceRequirements, TrafficTarget, MultiRegionSettings. A field that the program does not declare is
compared with Google's default; where Google chooses a value by itself, only a declared one is compared.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bezel.outside_changes.change import NOT_SET, Kind, OutsideChange
from bezel.text.shell import quoted

RESTORE = "`pulumi up --refresh` restores the declared value."
NEWEST = "newest"
_CHOSEN = object()
"""Default of a field that Google chooses."""
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGT]i?)?")
_UNITS = {"": Decimal(1), "m": Decimal("0.001")} | {
    f"{letter}{suffix}": Decimal(base) ** power
    for power, letters in enumerate(("kK", "M", "G", "T"), 1)
    for letter in letters
    for suffix, base in (("", 1000), ("i", 1024))
}


@dataclass(frozen=True)
class _Field:
    """A compared field: its path, its kind, Google's default, and the flag of gcloud that a refresh cannot replace."""

    path: str
    kind: Kind
    default: Any = _CHOSEN
    flag: str = ""


_FIELDS = (
    _Field("ingress", "access", "INGRESS_TRAFFIC_ALL"),
    _Field("invokerIamDisabled", "access", default=False),
    _Field("iapEnabled", "access", default=False),
    _Field("sshEnabled", "access", default=False),
    _Field("defaultUriDisabled", "access", default=False),
    _Field("customAudiences", "access", ()),
    _Field("multiRegionSettings.regions", "cost", ()),
    _Field("scaling.scalingMode", "cost", "AUTOMATIC", "--scaling=auto"),
    _Field("scaling.manualInstanceCount", "cost", 0, "--scaling=auto"),
    _Field("scaling.minInstanceCount", "cost", 0, "--min={}"),
    _Field("scaling.maxInstanceCount", "cost", 0, "--max={}"),
    _Field("template.scaling.minInstanceCount", "cost", 0),
    _Field("template.scaling.maxInstanceCount", "cost"),
    _Field("template.scaling.cpuUtilization", "cost"),
    _Field("template.scaling.concurrencyUtilization", "cost"),
    _Field("template.maxInstanceRequestConcurrency", "cost"),
    _Field("template.nodeSelector.accelerator", "cost", ""),
    _Field("template.gpuZonalRedundancyDisabled", "cost", default=False),
    _Field("template.serviceAccount", "access"),
    _Field("template.workloadIdentityConfig", "access", ()),
    _Field("template.vpcAccess.connector", "access", ""),
    _Field("template.vpcAccess.egress", "access"),
)
_ACCESS_OF_NETWORKS = "template.vpcAccess.networkInterfaces"


def service_changes(
    name: str,
    declared: Mapping[str, Any],
    live: Mapping[str, Any],
    *,
    minima: Collection[int] = (),
    switched: str | None = None,
) -> list[OutsideChange]:
    """The changes of a service.

    Args:
        name: `projects/P/locations/L/services/S`.
        declared: Its declared inputs, with the engine's names.
        live: The service in run v2's description.
        minima: Minima that its schedule sets, each of which is declared.
        switched: Revision that a gated rollout moved the traffic to, "" where it is not known yet; None without one.
    """
    _, project, _, region, _, short = name.split("/")
    update = f"gcloud run services update {quoted(short)} --region={quoted(region)} --project={quoted(project)}"
    found = []
    # A partial answer says nothing about a revision's template.
    knows_template = bool(_at(live, "template.containers"))
    for item in _FIELDS:
        if item.path.startswith("template.") and not knows_template:
            continue
        wanted, there = _declared_at(declared, item.path), _at(live, item.path)
        if wanted is None and item.default is _CHOSEN:
            continue
        default = "" if item.default is _CHOSEN else item.default
        if item.path == "scaling.minInstanceCount" and minima:
            if int(there or 0) in minima:
                continue
            wanted = sorted(minima)
        elif _same(wanted if wanted is not None else default, there, default):
            continue
        flag = item.flag.format(0 if wanted is None else wanted) if not minima or "min" not in item.path else ""
        repair = f"`{update} {flag}`." if flag and wanted is None else RESTORE
        found.append(_change(short, item.path, there, wanted, item.kind, repair))
    found += [
        _change(short, path, there, wanted, kind, RESTORE) for path, there, wanted, kind in _parts(declared, live)
    ]
    return [*found, *_of_traffic(short, f"{update.replace('update', 'update-traffic', 1)}", declared, live, switched)]


def named_revisions(live: Mapping[str, Any]) -> list[str]:
    """Short names of the revisions that the traffic names, which run beside the newest one."""
    newest = _short(live.get("latestReadyRevision"))
    named = dict.fromkeys(_short(target.get("revision")) for target in live.get("traffic") or ())
    return [revision for revision in named if revision and revision != newest]


def _parts(declared: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Kind]]:
    """Differences of the containers and of the network interfaces."""
    wanted, there = _list(declared, "template.containers"), _list(live, "template.containers")
    for number, container in enumerate(there):
        where = f"template.containers[{number}]"
        if number >= len(wanted):
            if wanted:
                yield where, container.get("image") or container.get("name"), None, "cost"
            continue
        limits = _at(wanted[number], "resources.limits") or {}
        for key in sorted({*limits, *((_at(container, "resources.limits") or {}) if limits else {})}):
            value = (_at(container, "resources.limits") or {}).get(key)
            if not _same_quantity(limits.get(key), value):
                yield f"{where}.resources.limits.{key}", value, limits.get(key), "cost"
        for key, default in (("cpuIdle", None), ("startupCpuBoost", False)):  # Google chooses the first one
            declared_flag = _at(wanted[number], f"resources.{key}")
            expected = default if declared_flag is None else bool(declared_flag)
            flag = bool(_at(container, f"resources.{key}"))
            if expected is not None and expected != flag:
                yield f"{where}.resources.{key}", flag, declared_flag, "cost"
    networks = [_list(each, _ACCESS_OF_NETWORKS) for each in (declared, live)]
    if len(networks[0]) != len(networks[1]):
        named = [
            ", ".join(_short(each.get("network") or each.get("subnetwork")) for each in side) or None
            for side in reversed(networks)
        ]
        yield _ACCESS_OF_NETWORKS, named[0], named[1], "access"


def _of_traffic(
    short: str, command: str, declared: Mapping[str, Any], live: Mapping[str, Any], switched: str | None
) -> Iterator[OutsideChange]:
    """A tag gives a revision an address, and lets it keep its minimum of instances; so does a share of the traffic."""
    allowed = {_target(target) for target in declared.get("traffics") or ()}
    if switched is not None:
        allowed |= {(switched, 100, ""), ("", 0, NEWEST)}
    tags = {tag for _, _, tag in allowed} | {""}
    program = ", ".join(sorted(_target_text(target) for target in allowed)) or "100 % to the newest revision"
    for target in live.get("traffic") or ():
        revision, percent, tag = _target(target)
        if (revision, percent, tag) in allowed or (not allowed and (revision, percent, tag) == ("", 100, "")):
            continue
        text = _target_text((revision, percent, tag))
        if tag not in tags:
            repair = f"`{command} --remove-tags={quoted(tag)}`."
            yield OutsideChange(f"service {short}", f"traffic, tag {tag}", text, program, "cost", repair)
        elif switched != "":  # during a gated rollout the share of the newest revision is about to be moved
            yield OutsideChange(f"service {short}", "traffic", text, program, "cost", RESTORE)


def _target(target: Mapping[str, Any]) -> tuple[str, int, str]:
    return _short(target.get("revision")), int(target.get("percent") or 0), str(target.get("tag") or "")


def _target_text(target: tuple[str, int, str]) -> str:
    revision, percent, tag = target
    return f"{percent} % to {revision or 'the newest revision'}" + (f" with the tag {tag}" if tag else "")


def _change(short: str, path: str, there: Any, wanted: Any, kind: Kind, repair: str) -> OutsideChange:
    return OutsideChange(f"service {short}", path, _text(there), _text(wanted), kind, repair)


def _text(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return NOT_SET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list | tuple):
        return (
            " or ".join(map(str, value)) if all(isinstance(each, int) for each in value) else ", ".join(map(str, value))
        )
    return str(value)


def _declared_at(declared: Mapping[str, Any], path: str) -> Any:
    value = _at(declared, path)
    return None if value in ("", [], {}) else value


def _at(values: Any, path: str) -> Any:
    for part in path.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def _list(values: Mapping[str, Any], path: str) -> Sequence[Mapping[str, Any]]:
    found = _at(values, path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def _same(wanted: Any, there: Any, default: Any) -> bool:
    """Whether two values are the same; responses leave out zero values, and list the unspecified one by its name."""
    if isinstance(there, str) and there.endswith("_UNSPECIFIED"):
        there = None
    there = default if there is None or there in ((), [], {}) else there
    if isinstance(wanted, list | tuple) or isinstance(there, list | tuple):
        return sorted(map(str, wanted or ())) == sorted(map(str, there or ()))
    if isinstance(wanted, bool) or isinstance(there, bool):
        return bool(wanted) == bool(there)
    if isinstance(wanted, int | float) or isinstance(there, int | float):
        return float(wanted or 0) == float(there or 0)
    return (wanted or "") == (there or "")


def _same_quantity(wanted: Any, there: Any) -> bool:
    amounts = [_quantity(value) for value in (wanted, there)]
    return wanted == there or (amounts[0] is not None and amounts[0] == amounts[1])


def _quantity(value: Any) -> Decimal | None:
    found = _QUANTITY.fullmatch(str(value))
    return Decimal(found[1]) * _UNITS[found[2] or ""] if found else None


def _short(name: object) -> str:
    return str(name or "").rpartition("/")[2]
