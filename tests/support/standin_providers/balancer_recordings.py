"""Recordings of load balancing: files of the folder that BEZEL_TRAFFIC names, as tests read them."""

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
PLACE = {"project": "demo-project", "region": "us-central1", "zone": "us-east5-a"}


@cache
def recording(name: str) -> Any:
    """The content of a file."""
    return json.loads((Path(str(TRAFFIC)) / "balancer" / f"{name}.json").read_text())


def short(token: str) -> str:
    """A type's name in the files of its lives: `compute.URLMap`."""
    return re.sub(r"^gcp:(\w+)/\w+:(\w+)$", r"\1.\2", token)


def states(*, with_services: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """(short name of the type, its recorded life) of each resource, with or without those of Cloud Run."""
    for file in sorted((Path(str(TRAFFIC)) / "balancer" / "state").glob("*.json")):
        if with_services or not file.name.startswith("cloudrun"):
            yield ".".join(file.name.split(".")[:2]), json.loads(file.read_text())


def exchanges(name: str, resource_id: str, operation: str, mode: str) -> list[dict[str, Any]]:
    """The recorded exchanges of an operation on a resource: those of the variant that it is."""
    parts = resource_id.split("/")
    last = parts[-2] if name == "dns.RecordSet" else parts[-1]
    for file in sorted((Path(str(TRAFFIC)) / "balancer" / "http").glob(f"{name}[.+]*.{mode}.json")):
        if file.name.removesuffix(f".{mode}.json").rpartition(".")[2] != operation:
            continue
        file_exchanges: list[dict[str, Any]] = json.loads(file.read_text())["exchanges"]
        names = {each["path"].rpartition("/")[2] for each in file_exchanges} | {
            each["query"].get("name") for each in file_exchanges
        }
        names |= {
            record["name"]
            for each in file_exchanges
            for part in ("additions", "deletions")
            for record in (each.get("body") or {}).get(part, [])
        }
        if last in names:
            return file_exchanges
    return []
