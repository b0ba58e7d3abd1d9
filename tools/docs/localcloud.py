"""Tables of docs/localcloud.md: what is served of each API, and the variables of `localcloud env`.

python -m tools.docs.localcloud            the tables, as Markdown
python -m tools.docs.localcloud --write    puts them into docs/localcloud.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bezel_localcloud import clients
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.http.methods import served_methods
from tools.docs.generated_sections import ROOT, put, table

BASE = "http://127.0.0.1:8085"
SAMPLE = Endpoint(Path("/home/me/cloud"), 1, BASE, "sim", 60.0, emulator="http://127.0.0.1:8086")
# Names of variables -> the clients that read them; the first pattern that matches counts.
READERS = {
    r"GOOGLE_CLOUD_PROJECT": "Google's libraries, the Terraform and Pulumi providers",
    r"GOOGLE_PROJECT": "the Terraform and Pulumi providers",
    r"GOOGLE_APPLICATION_CREDENTIALS": "every client that logs in by Google's default credentials",
    r"GOOGLE_(\w+)_CUSTOM_ENDPOINT": "the Terraform and Pulumi providers",
    r"CLOUDSDK_\w+": "gcloud",
    r"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "gcsfs, which otherwise asks by gRPC",
    r"API_ENDPOINT_OVERRIDE": "google-cloud-storage for Python",
    r"STORAGE_EMULATOR_HOST": "Google's storage libraries; only with `--emulator`",
    r"HF_ENDPOINT": "huggingface_hub: a stand-in of the Hugging Face hub",
    r"BEZEL_\w+": "Bezel's own commands",
}


def tables() -> str:
    """The tables, without their document."""
    return f"{served_table()}\n{variables_table()}"


def served_table() -> str:
    """Rows of APIs and resources with the served methods."""
    resources: dict[tuple[str, str], set[str]] = {}
    for method in served_methods().values():
        api, *path, name = method.id.split(".")
        resources.setdefault((f"{api}.googleapis.com", ".".join(path)), set()).add(name)
    rows = [
        (f"`{api}`" if first else "", f"`{resource}`", ", ".join(sorted(resources[api, resource])))
        for api in sorted({api for api, _ in resources})
        for first, resource in _firsts(sorted(resource for name, resource in resources if name == api))
    ]
    return table(("API", "resource", "methods"), rows)


def variables_table() -> str:
    """Rows of variables, those of one pattern together."""
    environment = clients.environment(SAMPLE, {})
    by_reader: dict[str, list[str]] = {}
    for name in environment:
        pattern = next(pattern for pattern in READERS if re.fullmatch(pattern, name))
        by_reader.setdefault(pattern, []).append(name)
    rows = [
        (", ".join(f"`{name}`" for name in names), READERS[pattern])
        for pattern, names in sorted(by_reader.items(), key=lambda item: list(READERS).index(item[0]))
    ]
    return table(("variables", "read by"), rows)


def _firsts(values: list[str]) -> list[tuple[bool, str]]:
    return [(index == 0, value) for index, value in enumerate(values)]


def main(flags: list[str]) -> None:
    """Print the tables, or write them into their document."""
    if "--write" not in flags:
        sys.stdout.write(tables())
        return
    put(ROOT / "docs" / "localcloud.md", "tools.docs.localcloud", tables())


if __name__ == "__main__":
    main(sys.argv[1:])
