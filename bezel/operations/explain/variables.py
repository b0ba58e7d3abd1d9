"""Environment variables of the server: which of vLLM and tpu-inference reads one, its values, and its risks."""

from collections.abc import Iterable

from bezel.operations.explain.entry import Entry, facts, list_text
from bezel.planner.base.problems import setting
from bezel.planner.rules.env_checks import planned_variables
from bezel.planner.rules.platform_checks import API_KEY, RESERVED
from bezel_base.text.redaction import is_secret
from bezel_catalog import Variable, VllmOptions, tpu_variables, vllm_options, vllm_risks

# Variables of the hub's client in the container, which vLLM's recording does not have.
_OF_THE_HUB = {"HF_TOKEN": "token of the Hugging Face hub, which gated and private models need"}
_HUB_SOURCE = "huggingface_hub's documentation of its environment variables, 2026-11"
_RISK_SOURCE = "the catalogue's review of risks (packages/catalog/bezel_catalog/data/vllm/risks.toml), 2026-11"
_PLATFORM_SOURCE = "Cloud Run's container runtime contract, and what the plan writes, 2026-11"
_KINDS = {
    "text": "text",
    "int": "a whole number",
    "float": "a number",
    "json": "JSON",
    "switch": "a switch",
    "choice": "one of the choices",
}


def names(version: str) -> list[str]:
    """Variables that vLLM of a release or tpu-inference reads, and those that no stack may set."""
    return list(dict.fromkeys((*vllm_options(version).variables, *tpu_variables().variables, *_unread())))


def entries(subject: str, version: str) -> list[Entry]:
    """What is recorded of a variable.

    Raises:
        NotInCatalogueError: The release was not recorded.
    """
    options, plugin, name = vllm_options(version), tpu_variables(), subject.strip()
    read = [
        program
        for program, variables in (
            (f"vLLM {version}", options.variables),
            (f"tpu-inference {plugin.version}", plugin.variables),
        )
        if name in variables
    ]
    variable = options.variables.get(name) or plugin.variables.get(name)
    if variable is None and name not in _unread():
        return []
    values = _values(variable) if variable else {}
    return [
        Entry(
            kind="variable",
            name=name,
            meaning=f"read by {' and '.join(read)}" if read else _OF_THE_HUB.get(name, "of the container"),
            facts=facts({**values, "written as": _stack_file_form(name)}),
            why=tuple(_reasons(name)),
            source=_source(name, options),
        )
    ]


def _values(variable: Variable) -> dict[str, str | None]:
    strict = "any other word is refused" if variable.strict else "any other word counts as one of the two"
    return {
        "takes": _KINDS[variable.kind] + (", several of them with commas" if variable.listed else ""),
        "choices": list_text(variable.choices),
        "on": list_text(repr(word) for word in variable.on),
        "off": list_text(repr(word) for word in variable.off),
        "other words": strict if variable.kind == "switch" else None,
    }


def _stack_file_form(name: str) -> str:
    if name in (*_set_by_others(), API_KEY):
        return "not written in a stack file"
    if is_secret(name, "x" * 20):
        return f"{setting('secrets')}: {{{name}: NAME_OF_SECRET}}"
    return f"{setting('variables')}: {{{name}: 'VALUE'}}"


def _reasons(name: str) -> Iterable[str]:
    if name in RESERVED:
        yield "Cloud Run sets it: a stack that sets it is refused."
    if name in _planned_values():
        yield f"the plan sets it, to {_planned_values()[name]!r} where it applies: a stack that sets it too is refused."
    if name == API_KEY:
        yield "the plan refuses it: callers are admitted by their identity, and vLLM's key would take its header."
    risk = vllm_risks().get(name)
    if risk is not None and risk.kind == "variable":
        yield (
            f"a risk if it is {risk.when}: {risk.consequence}; refused unless accepted: "
            f"`{setting('access')}: {{accepted_risks: [{name}]}}`."
        )


def _planned_values() -> dict[str, str]:
    return planned_variables(None, offline=True) | {"VLLM_ENABLE_CUDA_COMPATIBILITY": "1"}


def _set_by_others() -> tuple[str, ...]:
    return (*RESERVED, *_planned_values())


def _unread() -> tuple[str, ...]:
    """Variables that no recording has, and of which something is known."""
    risks = (name for name, risk in vllm_risks().items() if risk.kind == "variable")
    return (*_set_by_others(), API_KEY, *_OF_THE_HUB, *risks)


def _source(name: str, options: VllmOptions) -> str:
    plugin = tpu_variables()
    if name in options.variables:
        return f"vLLM {options.version}, {options.source}, {options.as_of}"
    if name in plugin.variables:
        return f"tpu-inference {plugin.version}, {plugin.source}, {plugin.as_of}"
    if name in vllm_risks():
        return _RISK_SOURCE
    return _HUB_SOURCE if name in _OF_THE_HUB else _PLATFORM_SOURCE
