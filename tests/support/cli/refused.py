"""What a run leaves behind that was refused to create something because it exists already."""

import json
from pathlib import Path

from bezel.engine.local.project_places import run_folder

NETWORK = "projects/bezel-local/global/networks/net (gcp:compute/network:Network)"


def refused_create(cloud: Path, stack: str, *events: dict[str, object]) -> None:
    """Put the record of a stack's run into localcloud's directory: after other events NETWORK was refused."""
    urn = f"urn:pulumi:{stack}::bezel::gcp:compute/network:Network::net"
    new = {"urn": urn, "custom": True, "type": "gcp:compute/network:Network", "inputs": {"name": "net"}}
    metadata = {"op": "create", "urn": urn, "type": new["type"], "new": new}
    refused: tuple[dict[str, object], ...] = (
        {"resourcePreEvent": {"metadata": metadata}},
        {
            "diagnosticEvent": {
                "urn": urn,
                "severity": "error",
                "message": "googleapi: Error 409: The resource 'net' already exists",
            }
        },
        {"resOpFailedEvent": {"metadata": metadata, "status": 0}},
    )
    record = run_folder(cloud, "bezel", stack)
    record.mkdir(parents=True)
    (record / "events.jsonl").write_text("\n".join(json.dumps(event) for event in (*events, *refused)))
