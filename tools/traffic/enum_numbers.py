"""Numbers of Google's enum values: `python -m tools.traffic.enum_numbers` writes localcloud's `data/enums.json`.

Discovery documents name the values of an enum in the order of its definition, without their numbers; the published
client libraries hold the definitions. The file lists the enums whose numbers are not 0, 1, 2, ... in that order. Leaves
out Compute Engine and Cloud Storage, whose JSON has no numbers.

Needs the clients that `make clients` obtains.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tools.traffic.discovery_data import DATA, WITHOUT_NUMBERS, request_messages, response_messages, to_text

Json = dict[str, Any]

# Modules with the definitions of each API. Resource Manager v1 is not published; its enums are in the plain order.
MODULES = {
    "run": "google.cloud.run_v2",
    "iam": "google.cloud.iam_admin_v1",
    "iamcredentials": "google.cloud.iam_credentials_v1",
    "secretmanager": "google.cloud.secretmanager_v1",
    "cloudkms": "google.cloud.kms_v1",
    "artifactregistry": "google.cloud.artifactregistry_v1",
    "serviceusage": "google.cloud.service_usage_v1",
    "logging": "google.cloud.logging_v2",
    "monitoring": "google.cloud.monitoring_v3",
    "tpu": "google.cloud.tpu_v2alpha1",
    "tpu2": "google.cloud.tpu_v2",
    "crm3": "google.cloud.resourcemanager_v3",
}
_LEAST = 2  # values that a definition and an enum of a document share, or they are not the same
# Run by the interpreter with the clients: prints {module: [{name: number}, ...]} of every enum that its messages use.
_SCRIPT = """
import importlib, json, sys
def enums(descriptor, seen, found):
    if descriptor.full_name in seen: return
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        if field.enum_type is not None: found[field.enum_type.full_name] = field.enum_type
        if field.message_type is not None: enums(field.message_type, seen, found)
result = {}
for module in sys.argv[1:]:
    types = importlib.import_module(module + ".types")
    seen, found = set(), {}
    for name in types.__all__:
        kind = getattr(types, name)
        if hasattr(kind, "pb"): enums(kind.pb().DESCRIPTOR, seen, found)
        elif hasattr(kind, "DESCRIPTOR") and hasattr(kind.DESCRIPTOR, "fields"): enums(kind.DESCRIPTOR, seen, found)
    result[module] = [{v.name: v.number for v in enum.values} for _, enum in sorted(found.items())]
print(json.dumps(result))
"""


def enum_numbers(python: str) -> Json:
    """The content of enums.json.

    Args:
        python: Interpreter with the client libraries.
    """
    ended = subprocess.run(
        [python, "-c", _SCRIPT, *MODULES.values()], capture_output=True, text=True, timeout=300, check=True
    )
    published = json.loads(ended.stdout)
    numbers: dict[str, list[int | None]] = {}
    for api, module in MODULES.items():
        for kind in sorted(_kinds(api)):
            names = kind.split("|")
            closest = max(published[module], key=lambda enum: len(enum.keys() & set(names)))
            if len(closest.keys() & set(names)) < _LEAST:
                continue  # not published: the order counts
            published_numbers = [closest.get(name) for name in names]
            if numbers.get(kind, published_numbers) != published_numbers:
                message = f"{kind} has different numbers in two APIs"
                raise ValueError(message)
            if published_numbers != list(range(len(names))):
                numbers[kind] = published_numbers
    return {"source": "definitions in Google's client libraries, see tests/clients/requirements", "numbers": numbers}


def _kinds(api: str) -> set[str]:
    """The enums of an API's messages, as their values joined by |."""
    messages = request_messages()["messages"] | response_messages()["messages"]
    fields = (kind for name, of in messages.items() if name.partition(".")[0] == api for kind in of.values())
    return {kind.partition("enum:")[2] for kind in fields if "enum:" in kind and api not in WITHOUT_NUMBERS}


def main() -> None:
    """Write the file."""
    command = [sys.executable, "tools/toolchain/clients.py", "python", "google"]
    folder = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    (DATA / "enums.json").write_text(to_text(enum_numbers(f"{folder}/bin/python")))


if __name__ == "__main__":
    main()
