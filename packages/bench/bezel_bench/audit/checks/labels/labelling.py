"""Check for finding 14: a figure under a wrong label (device, model, setting, date), or without any basis.

    hardware stated != hardware measured on; chips != those of the device; a field != the file's label
    weights > memory of the device; a served assistant labelled as its model; a date that is not the run's
    weights stated != parameters x bytes; an option that sets something else; one price with several values

Needs two statements on one thing, or the catalogue.
"""

import datetime as dt
import re
from collections.abc import Iterator

from bezel_bench.audit.figure import figure
from bezel_bench.audit.findings import LABELS, AuditFinding, Rule
from bezel_bench.audit.labels import checkpoint_of, machine_in
from bezel_bench.audit.table import AuditTable, Claim, ResultSource, System
from bezel_catalog import vllm_options, vllm_versions
from bezel_catalog.sizing.tpu_memory import DEFAULT_UTILIZATION

_GB = {"GB": 1e9, "GiB": 2**30}
_WEIGHTS_OFF = 0.25
_PRICES_OFF = 1.2
_UTILIZATION_OFF = 0.05
_SAME_RATE = 0.1
_RULE = Rule(
    LABELS, "label it with what was measured; take device, model and arguments from the run itself, not from memory"
)


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for claims by their own fields, and for files by their labels."""
    for claim in table.claims:
        texts = [
            _measured_elsewhere(claim),
            _system(claim.row.system),
            _assistant(claim, table.compared_with(claim)),
            _weights(claim),
            _option(claim),
            _prices(claim),
        ]
        if contradictions := [text for text in texts if text]:
            yield _RULE.finding("contradiction", claim.item, "; ".join(contradictions))
    for source in table.sources:
        systems = list(dict.fromkeys(row.system for row in source.rows))
        contradictions = list(dict.fromkeys(text for system in systems if (text := _system(system))))
        if systems and (text := _date(source, systems[0])):
            contradictions.append(text)
        if contradictions:
            yield _RULE.finding("contradiction", source.item, "; ".join(contradictions))


def _measured_elsewhere(claim: Claim) -> str | None:
    label, actual = claim.fields.get("hardware"), claim.fields.get("measured_on")
    if not actual or not label:
        return None
    stated, other = machine_in(str(label)), machine_in(str(actual))
    if stated.id == other.id if stated and other else str(label).lower() == str(actual).lower():
        return None
    differ = stated and other and stated.chips != other.chips
    chips = f": {stated.chips} chips are stated, {other.chips} were used" if stated and other and differ else ""
    return f"labelled {label}, measured on {actual}{chips}"


def _system(system: System) -> str | None:
    """Return which statements on one system refute each other."""
    machine, label = system.machine, system.label_machine
    if machine and label and (machine.unit.id, machine.chips) != (label.unit.id, label.chips):
        return f"a field says {machine.id}, the file's label {label.id}"
    if system.shape and system.label_shape and system.shape != system.label_shape:
        return f"a field says {system.shape.id}, the file's label {system.label_shape.id}"
    if machine and machine.tpu and system.tensor_parallel and system.tensor_parallel > machine.chips:
        return f"tensor parallelism of {system.tensor_parallel} on the {machine.chips} of {machine.id}"
    # Without an encoding any form of the model may have been served.
    model = system.checkpoint if system.encoding else checkpoint_of(system.shape, None, None)
    if machine and model and not system.offloaded and model.weight_bytes > machine.memory_bytes:
        return (
            f"{model.id} has {model.weight_bytes / 1e9:.1f} GB of weights, {machine.id} "
            f"{machine.memory_bytes / 1e9:.1f} GB of memory: it was another device, or another model"
        )
    return None


def _date(source: ResultSource, system: System) -> str | None:
    """Return why a date in the label is not the run's."""
    if not source.dated or not system.dated:
        return None
    try:
        days = abs((dt.date.fromisoformat(source.dated) - dt.date.fromisoformat(system.dated)).days)
    except ValueError:
        return None
    return f"the label says {system.dated}, the run itself {source.dated}" if days > 1 else None


def _assistant(claim: Claim, other: Claim | None) -> str | None:
    """Report a draft model served alone, whose figure is compared with a full model's."""
    if not claim.row.system.assistant:
        return None
    text = "an assistant was served alone: it drafts for a model and cannot be compared with one"
    if other and claim.value and other.value and other.value.value:
        share = claim.value.value / other.value.value
        text += f"; its {claim.value.value:,.0f} {claim.unit} are {share:.1%} of {other.item}"
        if abs(share - 1) <= _SAME_RATE:
            text += ": a rate that does not depend on the model is not the model's"
    return text


def _weights(claim: Claim) -> str | None:
    """Report weights that are not the model's; near its memory times the utilisation they are what vLLM reserves."""
    model, machine = claim.row.system.checkpoint, claim.row.system.machine
    factor = next((size for unit, size in _GB.items() if unit.lower() == claim.unit.lower()), None)
    if claim.metric != "weights" or model is None or claim.value is None or factor is None:
        return None
    if abs(claim.value.value * factor / model.weight_bytes - 1) <= _WEIGHTS_OFF:
        return None
    shape = model.architecture
    text = (
        f"{claim.value.value:g} {claim.unit} of weights are stated; {shape.parameters / 1e9:g}e9 parameters in "
        f"{model.encoding} are {model.weight_bytes / 1e9:.0f} GB"
    )
    shares = {unit: claim.value.value * size / machine.memory_bytes for unit, size in _GB.items()} if machine else {}
    for unit, share in sorted(shares.items(), key=lambda item: abs(item[1] - DEFAULT_UTILIZATION)):
        if abs(share - DEFAULT_UTILIZATION) <= _UTILIZATION_OFF:
            return f"{text}; {share:.0%} of the memory (read as {unit}) is what the server reserves, cache included"
    return text


def _option(claim: Claim) -> str | None:
    """Report a setting that is credited to an option of vLLM that sets another."""
    if claim.metric != "setting":
        return None
    options = {name for version in vllm_versions() for name in vllm_options(version).names()}
    value_parts = set(re.findall(r"[a-z0-9]+", str(claim.fields.get("value")).lower()))
    meant = [name for name in options if _what(name) <= value_parts]
    for cited in re.findall(r"--([A-Za-z][\w-]+)", str(claim.fields.get("text", ""))):
        name = cited.lower().replace("_", "-")
        if meant and options & {name, name.removeprefix("no-")} and not _what(name) <= value_parts:
            return f"--{name} is another option than --{max(meant, key=len)}, which is the one meant"
    return None


def _what(option: str) -> set[str]:
    """Return the words of an option that name its subject."""
    return set(option.split("-")) - {"enable", "disable", "no"}


def _prices(claim: Claim) -> str | None:
    """Report several prices under one name."""
    stated = claim.fields.get("value")
    values = [price.value for text in stated if (price := figure(text))] if isinstance(stated, list) else []
    if len(values) < 2 or "USD" not in claim.unit or min(values) <= 0 or max(values) < _PRICES_OFF * min(values):
        return None
    return (
        f"one thing has {len(values)} prices, {min(values):g} to {max(values):g} {claim.unit} "
        f"({max(values) / min(values):.2f} times apart), all without a date and without what they cover"
    )
