"""Commands in containers and scripts that call Google's APIs: whether they only read. Pure.

A command of a known tool only reads if its verb does. The verb is the first known word that is no option's value; no
writing verb may stand before or after it. Leaves out programs inside images, whose account's rights decide what they
may do, and a command that a script puts together while it runs.
"""

import re
from functools import lru_cache

from bezel.resource_cost.requests.command_lines import Command, expand, split_commands
from bezel.resource_cost.requests.command_requests import unread_request

LONGEST = 200_000
"""Characters of a script that are read; a longer one is not understood."""
_OWN_SETTINGS = frozenset({"auth", "config", "components", "info", "version", "help", "topic"})
"""First words of commands that concern the tool itself."""
_GCLOUD = frozenset({"gcloud", "google-cloud-cli", "cloud-sdk", "google-cloud-sdk"})
_STORAGE = frozenset({"gsutil", "bq"})
_INFRASTRUCTURE = frozenset(
    {
        "terraform", "tofu", "opentofu", "terragrunt", "pulumi", "kubectl", "helm", "kustomize", "deployment-manager",
        "gke-deploy", "skaffold", "helmfile", "cdktf",
    }
)  # fmt: skip
TOOLS = _GCLOUD | _STORAGE | _INFRASTRUCTURE
_READS = frozenset(
    {
        "list", "access", "describe", "get", "get-iam-policy", "get-credentials", "get-server-config", "get-value",
        "print-access-token", "print-identity-token", "activate-service-account", "configure-docker", "login",
        "version", "info", "help", "cp", "rsync", "ls", "cat", "du", "hash", "stat", "read", "tail", "search",
        "lookup", "wait", "ssh", "scp", "delete", "stop", "suspend", "cancel", "plan", "preview", "validate", "fmt",
        "init", "output", "show", "diff", "top", "explain", "api-resources", "template", "lint", "whoami",
    }
)  # fmt: skip
_WRITES = frozenset(
    {
        "create", "create-auto", "create-with-container", "insert", "bulk", "deploy", "resize", "update", "patch",
        "apply", "up", "run", "start", "restart", "resume", "execute", "submit", "scale", "autoscale", "add", "set",
        "enable", "attach", "import", "restore", "replace", "reset", "upgrade", "clone", "install", "rollout", "edit",
        "add-iam-policy-binding", "set-iam-policy", "add-metadata", "add-tags", "set-scheduling", "set-machine-type",
        "update-container", "set-autoscaling", "ch", "iam", "mk", "load", "query", "acl", "defacl", "web", "destroy",
        "sign-url", "publish", "call", "trigger",
    }
)  # fmt: skip
_MOST_WORDS = 1000  # after a tool
_NAMES = frozenset({"deploy", "web", "run", "iam", "load", "call", "up", "ch", "mk", "query", "set", "add", "start"})
"""Writing verbs that are also names of things, after a reading verb."""
_GROUPS = frozenset({"run", "iam", "deploy"})
"""First words of gcloud that are groups of commands."""
_SWITCHES = {
    "gsutil": {"-m", "-q", "-D", "-r", "-n"}, "bq": {"-q", "--quiet", "--headless"},
    "kubectl": {"-A", "--all-namespaces"}, "pulumi": {"--non-interactive", "--yes", "-y"}, "helm": {"--debug"},
    **{tool: {"-q", "--quiet"} for tool in _GCLOUD},
    **{tool: {"-no-color"} for tool in ("terraform", "tofu", "opentofu", "terragrunt")},
}  # fmt: skip
"""Options before a verb that take no value."""
_ENDED = frozenset(
    {
        "instances", "clusters", "node-pools", "jobs", "services", "disks", "nodes", "queued-resources", "managed",
        "tpu-vm", "executions", "revisions", "worker-pools", "endpoints", "custom-jobs",
    }
)  # fmt: skip
"""Whose deletion ends a cost; that of a rule, a policy or a budget opens or raises something."""
_ENDED_KIND = re.compile(r"(?:pods?|po|jobs?|deployments?|deploy|statefulsets?|sts|replicasets?|rs|nodes?)(?:/.*)?")
_OPENS = re.compile(
    r"--(?:pred|pres|acl|canned|add-acl|comm|additional-h).*|--|.*goog-acl.*|.*(?:public-?read|allusers).*",
    re.IGNORECASE,
)
_COPY_OF_ACL = re.compile(r"-[A-Za-z]*[ap].*")
_ENDING = re.compile(r"\.(?:py|exe|cmd|ps1|sh)$")
_SHELL = r"(?:sudo\s+|env\s+){0,3}(?:\S{0,60}/)?(?:(?:ba|da|z|k|a)?sh|python[\d.]*|perl|node)\b"
_DECODER = r"(?:base64|base32|xxd|uudecode|openssl)\b"
_DECODED = re.compile(
    rf"\b{_DECODER}[^;\n]{{0,500}}\|\s*{_SHELL}|(?:\beval\b|<\(|\bsource\b|\bsh\s+-c\s+\W?\$\()[^;\n]{{0,500}}\b{_DECODER}"
    r"|\bexec\([^;\n]{0,200}b64decode"
)
_VARIABLE = re.compile(
    r"(?:^|[;&|`]|(?<![(=$])\(|\b(?:then|do|else|exec|eval|sudo|env)\s|sh\s{1,9}-\w{0,9}c\s)[ \t]*[\"']?"
    r"(\$(?:\([A-Za-z_]\w*\)|\{[A-Za-z_]\w*\}|[A-Za-z_]\w*))[\"']?(?:[ \t]+[\w-]|\s*\Z)",
    re.MULTILINE,
)
_LIBRARY = re.compile(
    r"\bgoogle\.cloud\b|\bgoogleapiclient\b|@google-cloud/|\bgoogle-api-python-client\b|\b(?:import|from)\s+vertexai\b"
    r"|(?<!/)\bcloud\.google\.com/go\b|\bgoogle\.golang\.org/api\b|\bAuthorizedSession\b|[\"']googleapis[\"']"
)


@lru_cache(maxsize=64)  # the machines of a stack have one script, and each policy reads it
def unread_command(text: str) -> str | None:
    """The tool or address of the first command that does more than read; None without one."""
    whole = expand(text) if len(text) <= LONGEST else None
    if whole is None:
        return "a script of this length"
    if _DECODED.search(text):
        return "this use of a decoded text as a command"
    if _LIBRARY.search(whole):
        return "this use of Google's client library"
    if match := _VARIABLE.search(whole):
        return f"this use of {match[1]} as a command" if match[1] != "$_" else "this use of an output as a command"
    for command in split_commands(whole):
        if why := _unread_use(command) or unread_request(command, text):
            return why
    return None


def _unread_use(command: Command) -> str | None:
    if command.is_inert:
        return None
    shell_words = command.shell_words
    for place, word in enumerate(shell_words):
        tool = tool_named(word)
        if tool is None:
            continue
        after = shell_words[place + 1 :]
        if len(after) > _MOST_WORDS:
            return f"this use of {tool}"
        if _runs(tool, after, "xargs" in shell_words, place <= command.first) and not _only_reads(tool, after):
            return f"this use of {tool}"
    return None


def tool_named(word: str) -> str | None:
    """The tool that a word runs: by its name, a path, or an image."""
    name = _ENDING.sub("", word.rpartition("/")[2].partition("@")[0].partition(":")[0])
    return name if name in TOOLS else None


def _runs(tool: str, shell_words: list[str], by_xargs: bool, begins: bool) -> bool:
    """Whether a tool is called: with more than options, and inside a command with more than an option's value."""
    if by_xargs or not _WRITES.isdisjoint(shell_words):
        return True
    return any(not word.startswith("-") for word in shell_words) if begins else bool(_plain_words(tool, shell_words))


def _only_reads(tool: str, shell_words: list[str]) -> bool:
    if shell_words and shell_words[0] in _OWN_SETTINGS:
        return True
    if any(map(_OPENS.fullmatch, shell_words)):
        return False
    verb, plain_numbers = "", _plain_words(tool, shell_words)
    for number, word in enumerate(shell_words):
        if word in ("--version", "--help") and not verb:
            return True
        is_group = tool in _GCLOUD and word in _GROUPS and bool(plain_numbers) and plain_numbers[0] == number
        if word in _WRITES and not is_group and not (verb and word in _NAMES):
            return False
        if word in _READS and number in plain_numbers and not verb:
            verb = word
            after = shell_words[number + 1 :]
            before = [shell_words[place] for place in plain_numbers if place < number]
            if word == "delete" and not _ends_cost(tool, before, after):
                return False
            if tool == "gsutil" and word in ("cp", "rsync") and any(map(_COPY_OF_ACL.fullmatch, after)):
                return False
    return bool(verb)


def _plain_words(tool: str, shell_words: list[str]) -> list[int]:
    """The numbers of the words that are no options and no values of options."""
    numbers: list[int] = []
    for number, word in enumerate(shell_words):
        before = shell_words[number - 1] if number else ""
        is_value = before.startswith("-") and "=" not in before and before not in _SWITCHES.get(tool, ())
        if not word.startswith("-") and not is_value:
            numbers.append(number)
    return numbers


def _ends_cost(tool: str, before: list[str], after: list[str]) -> bool:
    """Whether a deletion ends a cost."""
    if tool == "kubectl":
        kinds = [word for word in after if not word.startswith("-")]
        return bool(kinds) and _ENDED_KIND.fullmatch(kinds[0]) is not None
    return bool(before) and before[-1] in _ENDED
