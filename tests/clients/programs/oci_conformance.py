"""The OCI conformance suite on a registry: `oci_conformance.py PROGRAM FOLDER`.

The suite's own variables configure it. Prints each of its test cases as a call, under the workflow of the specification
that it belongs to.
"""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

# Parts of a case's name -> workflow; the first that is in it counts.
WORKFLOWS = {
    "delete": "content management",
    "tag-list": "content discovery",
    "tag list": "content discovery",
    "referrers": "content discovery",
    "head": "pull",
    "pull": "pull",
    "get": "pull",
    "range": "pull",
    "missing": "pull",
    "ping": "pull",
}
OUTCOMES = {"passed": "passed", "skipped": "not served"}


def main() -> None:
    """Run the suite."""
    program, folder = sys.argv[1], Path(sys.argv[2])
    variables = {"OCI_RESULTS_DIR": str(folder), "OCI_LOG": "error"}
    subprocess.run([program], env=os.environ | variables, capture_output=True, timeout=300, check=False, cwd=folder)
    for case in ET.parse(folder / "junit.xml").iter("testcase"):  # noqa: S314 -- written by the suite just now
        name = case.get("name", "").removeprefix("OCI Conformance Test/")
        workflow = next((flow for part, flow in WORKFLOWS.items() if part in name.rpartition("/")[2]), "push")
        client = f"OCI conformance suite 1.1, {workflow}"
        outcome = OUTCOMES.get(case.get("status", ""), "failed")
        text = "" if outcome == "passed" else " ".join((node.text or "").strip()[:300] for node in case)
        print(json.dumps({"client": client, "call": name, "outcome": outcome, "text": text}))


if __name__ == "__main__":
    main()
