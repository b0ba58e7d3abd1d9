"""Commands in containers and scripts that call Google's APIs: whether they only read. Pure.

A command of a known tool only reads if the first of its words that is a verb known here does. Leaves out programs
inside images, whose account's rights decide what they may do.
"""

import re

from bezel.resource_cost.google_hosts import is_google_api

LONGEST = 200_000
"""Characters of a script that are read; a longer one is not understood."""
_WORD = re.compile(r"[;&|\n()`]|[^\s;&|()`'\"{}\[\],\\]+")
_OWN_SETTINGS = frozenset({"auth", "config", "components", "info", "version", "help", "topic"})
"""First words of commands that concern the tool itself."""
_ENDS = frozenset(";&|\n()`")
_GCLOUD = frozenset({"gcloud", "google-cloud-cli", "cloud-sdk", "google-cloud-sdk"})
_STORAGE = frozenset({"gsutil", "bq"})
_INFRASTRUCTURE = frozenset(
    {"terraform", "tofu", "opentofu", "terragrunt", "pulumi", "kubectl", "helm", "kustomize", "deployment-manager"}
)
TOOLS = _GCLOUD | _STORAGE | _INFRASTRUCTURE
_READS = frozenset(
    {
        "list", "access", "describe", "get", "get-iam-policy", "get-credentials", "get-server-config", "get-value",
        "print-access-token", "print-identity-token", "activate-service-account", "configure-docker", "login",
        "version", "info", "help", "cp", "rsync", "ls", "cat", "du", "hash", "stat", "read", "tail", "search",
        "lookup", "wait", "ssh", "scp", "delete", "stop", "suspend", "cancel", "plan", "validate", "fmt", "init",
        "output", "show", "diff", "top", "explain", "api-resources", "template", "lint", "whoami",
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
_ADDRESS = re.compile(r"(?:https?:)?//[^\s'\"<>`|;]+", re.IGNORECASE)
_SCOPE = re.compile(r"https://www\.googleapis\.com/auth/[\w.-]*")
_SENDS = re.compile(
    r"-X\s*\W?(?!GET|HEAD)[A-Z]|--request\b|(?:^|\s)-d\b|--data|--json\b|--upload-file|(?:^|\s)-T\b|--post-|--body-"
    r"|--method\b|\b(?:POST|PUT|PATCH|DELETE)\b|\.(?:post|put|patch|delete|request)\("
)
_LIBRARY = re.compile(r"\bgoogle\.cloud\b|\bgoogleapiclient\b|@google-cloud/|\bgoogle-api-python-client\b")


def unread_command(text: str) -> str | None:
    """The tool or address of the first command that does more than read; None without one."""
    if len(text) > LONGEST:
        return "a script of this length"
    words = _WORD.findall(text)
    for place, word in enumerate(words):
        tool = _tool(word)
        if tool and not _only_reads(words[place + 1 :]):
            return f"this use of {tool}"
    if _LIBRARY.search(text):
        return "this use of Google's client library"
    if _SENDS.search(text):
        for found in _ADDRESS.findall(_SCOPE.sub("", text)):
            if is_google_api(found):
                return f"this request to {found[:80]}"
    return None


def _tool(word: str) -> str | None:
    """The tool that a word runs: by its name, a path, or an image."""
    name = word.rpartition("/")[2].partition("@")[0].partition(":")[0]
    return name if name in TOOLS else None


def _only_reads(words: list[str]) -> bool:
    for number, word in enumerate(words):
        if word in _ENDS:
            break
        if number == 0 and word in _OWN_SETTINGS:
            return True
        if word in _WRITES:
            return False
        if word in _READS:
            return True
        if word.startswith("--") and word in ("--version", "--help"):
            return True
    return False
