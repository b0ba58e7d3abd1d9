"""Requests to Google's APIs that a resource sends later, or that what it holds sends: workflows, builds, scripts.

A resource can buy hardware after its deploy, by a request that it sends then. Which types can was read from the inputs
of the installed provider (tests/policies/test_later_requests.py compares them). Owned here: definitions of Workflows,
queues and pipelines that sign requests with a token for Google's APIs, commands and scripts of containers and builds,
and definitions that stand somewhere else and cannot be read. Cloud Scheduler's are in `scheduled`. Leaves
out programs inside images: the rights of their accounts limit these.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate

import yaml

from bezel.resource_cost.inputs import UNKNOWN, InputError, Inputs, camel, not_known
from bezel.resource_cost.nested_values import describes_only, mappings
from bezel.resource_cost.requests.commands import tool_named, unread_command
from bezel.resource_cost.requests.google_hosts import is_google_api
from bezel.resource_cost.requests.scheduled import JOB, Unread

WORKFLOW = "gcp:workflows/workflow:Workflow"
TRIGGER = "gcp:cloudbuild/trigger:Trigger"
ELSEWHERE = {
    "gcp:configdeployment/deployment:Deployment": "terraformBlueprint",
    "gcp:deploymentmanager/deployment:Deployment": "target",
    "gcp:saasruntime/release:Release": "blueprint",
}
"""Types that create what a definition somewhere else says, and the input that names it."""
SIGNED = frozenset({"oauthToken", "serviceAccountAuthConfig", "serviceAccountAuthConfigs"})
"""Inputs by which a request gets a token for Google's APIs."""
_ACCOUNT = frozenset({"serviceAccount", "serviceAccountEmail"})
SCRIPTS = (
    "entrypoint", "entrypoints", "command", "commands", "script", "scripts", "args", "arguments", "startupScript",
    "metadataStartupScript", "postStartupScript", "create", "update", "delete", "prologBashScripts",
    "epilogBashScripts",
)  # fmt: skip
"""Inputs that hold a command or a script, in the order in which they make a command."""
_PARTS = frozenset({"entrypoint", "entrypoints", "command", "commands", "args", "arguments"})
"""Those that make one command together."""
_ABOUT = frozenset({"metadata", "annotations", "labels"})
_BOOT_SCRIPT = re.compile(
    r"(?:startup|shutdown)-script|user-data|gce-container-declaration|(?:windows|sysprep)-[a-z-]*script-(?:ps1|cmd|bat)"
)
"""Metadata of a machine that it runs."""
_IMAGES = ("image", "name", "imageUri")
_LONGEST_WORKFLOW, _DEEPEST = 131_072, 100  # Workflows takes 128 KB
_READING = ("get", "list", "aggregatedList", "getIamPolicy", "testIamPermissions", "search", "lookup")
_ENDING = ("instances.delete", "instances.stop", "instances.suspend")


def unread_request(token: str, inputs: Inputs) -> Unread | None:
    """A request to one of Google's APIs that a resource sends later and that is not understood; None without one.

    Raises:
        InputError: it is not known yet what it sends.
    """
    if describes_only(token) or not isinstance(inputs.values, Mapping):
        return None
    if token == WORKFLOW:
        return _of_workflow(inputs)
    if token in ELSEWHERE:
        return Unread(inputs.key(ELSEWHERE[token]), "(set)", "a definition that stands somewhere else")
    if token == TRIGGER and inputs.get("build") is None:
        return Unread(inputs.key("filename"), inputs.text("filename") or "(not set)", "a build that stands elsewhere")
    for path, mapping in mappings(inputs.values):
        here = (*inputs.where, *path)
        unread = _in_mapping(token, here, mapping) if _ABOUT.isdisjoint(path) else None
        if unread := unread or _in_metadata(token, here, mapping):
            return unread
    return None


def _in_metadata(token: str, path: tuple[str, ...], mapping: Mapping[str, object]) -> Unread | None:
    """A command that does more than read, in what a machine runs of its metadata: by name, or as a key and a value."""
    named = [(str(mapping["key"]), "value", mapping.get("value"))] if "key" in mapping else []
    for key, name, value in [*((str(name), str(name), value) for name, value in mapping.items()), *named]:
        if not _BOOT_SCRIPT.fullmatch(key.lower()) or not isinstance(value, str):
            continue
        where = (*path, name)
        if why := unread_command(value):
            return Unread(".".join(where), "(set)", why)
        if (declared := _read_declarations(value)) is None:
            continue
        for inner, part in mappings(declared):
            if unread := _in_mapping(token, (*where, *inner), part):
                return unread
    return None


def _read_declarations(text: str) -> object:
    """The containers or files that a text of YAML declares; None for any other text."""
    if text.startswith("#!") or len(text) > _LONGEST_WORKFLOW or _levels(text) > _DEEPEST:
        return None
    try:
        events = list(yaml.parse(text, Loader=yaml.SafeLoader))
        return None if any(isinstance(each, yaml.AliasEvent) for each in events) else yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _levels(text: str) -> int:
    return max(accumulate((letter in "[{") - (letter in "]}") for letter in text), default=0)


def _in_mapping(token: str, path: tuple[str, ...], mapping: Mapping[str, object]) -> Unread | None:
    """A signed request, or a command that does more than read, directly in one mapping of the inputs."""
    names = _names(tuple(mapping))
    place = next((name for name in SCRIPTS if name in names), None)
    if place is not None:
        parts, tools = {name: _words(mapping[names[name]]) for name in SCRIPTS if name in names}, _tools(mapping)
        if None in parts.values() and (tools or token == TRIGGER):
            raise InputError(not_known(".".join((*path, names[place]))))
        lines = [" ".join([*tools, *(part or "" for name, part in parts.items() if name in _PARTS)])]
        lines += [part or "" for name, part in parts.items() if name not in _PARTS]
        if why := unread_command("\n".join(lines)):
            return Unread(".".join((*path, names[place])), "(set)", why)
    if token != JOB and token.startswith("gcp:") and (name := _signing(names, mapping)):
        return Unread(".".join((*path, name)), "(set)", "requests with a token for Google's APIs")
    return None


@lru_cache(maxsize=4096)
def _names(written: tuple[str, ...]) -> Mapping[str, str]:
    """The names of a mapping in camel case, each with its spelling there."""
    return {camel(str(name)): str(name) for name in written}


def _signing(names: Mapping[str, str], mapping: Mapping[str, object]) -> str | None:
    """The input that signs requests with a token for Google's APIs, if there is one."""
    if "serviceAgentAuth" in names and mapping[names["serviceAgentAuth"]] in ("ACCESS_TOKEN", UNKNOWN):
        return names["serviceAgentAuth"]
    for name in SIGNED.intersection(names):
        value = mapping[names[name]]
        account = isinstance(value, Mapping) and not _ACCOUNT.isdisjoint(_names(tuple(value)))
        if value and (account or value is UNKNOWN or name != "oauthToken"):
            return names[name]
    return None


def _words(command: object) -> str | None:
    """A command as one text; None where a part of it is not known yet."""
    if command is UNKNOWN or (isinstance(command, list) and UNKNOWN in command):
        return None
    if isinstance(command, list):
        parts = [part if isinstance(part, str) else " " for part in command]
        return ("\n" if parts and " " in parts[0] else " ").join(parts)
    return command if isinstance(command, str) else json.dumps(command, default=str)


def _tools(mapping: Mapping[str, object]) -> list[str]:
    """The tool that an image holds, which runs the container's arguments."""
    images = [str(mapping[name]) for name in _IMAGES if isinstance(mapping.get(name), str)]
    return [tool for image in images if "/" in image and (tool := tool_named(image))]


def _of_workflow(inputs: Inputs) -> Unread | None:
    """The first call of a workflow that may do more than read."""
    source = inputs.text("sourceContents")
    if source is None:
        return None
    key = inputs.key("sourceContents")
    try:
        root = (
            None
            if _levels(source) > _DEEPEST or len(source) > _LONGEST_WORKFLOW
            else yaml.compose(source, Loader=yaml.SafeLoader)
        )
    except (yaml.YAMLError, RecursionError, ValueError):
        root = None
    if root is None:
        return Unread(key, "(text)", "this workflow")
    for node in _nodes(root):
        fields = _fields(node)
        if "call" in fields and (why := _unread_call(fields)):
            return Unread(key, "(text)", why)
    return None


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Every node once: an alias is the node that it names."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _fields(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _text(node: yaml.Node | None) -> str:
    return str(node.value).strip() if isinstance(node, yaml.ScalarNode) else ""


def _unread_call(fields: Mapping[str, yaml.Node]) -> str | None:
    """What is not understood of a call; None where it only reads, or calls another server."""
    call = _text(fields["call"])
    family, _, method = call.partition(".")
    if family == "googleapis":
        reads = method.rpartition(".")[2] in _READING or method.endswith(_ENDING)
        return None if reads else f"the call {call}"
    if family == "experimental" or not call or call.startswith("$"):
        return f"the call {call or 'of this workflow'}"
    if family != "http":
        return None
    args = _fields(fields.get("args"))
    verb = _text(args.get("method")).upper() if method == "request" else method.upper()
    url, signed = _text(args.get("url")), _text(_fields(args.get("auth")).get("type")).upper()
    headers = {name.lower() for name in _fields(args.get("headers"))}
    if verb in ("GET", "HEAD"):
        # A header, or one that is not known yet, can make another method of it.
        plain = "headers" not in args or (isinstance(args["headers"], yaml.MappingNode) and "<<" not in headers)
        if "<<" not in args and plain and not any("method" in name for name in headers):
            return None
    # Without a token for them, Google's APIs refuse a request.
    are_mappings = all(isinstance(args[name], yaml.MappingNode) for name in ("auth", "headers") if name in args)
    open_auth = ("auth" in args and signed != "OIDC") or "authorization" in headers or "<<" in args or not are_mappings
    if not url or is_google_api(url) or open_auth:
        return f"the call {call} to {url or 'an address of another place'}"
    return None
