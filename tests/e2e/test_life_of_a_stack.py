"""The stack `l4-qat` under the real engine: made, left alone, changed, changed by somebody else, taken away.

A secret is planted in its container: no text and no file of the whole life has it.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bezel_bench.result.document import load as load_result
from bezel_localcloud.core.files.locks import using
from localcloud_support.open_files import open_to_others
from tests.support.e2e.rehearsal import BUCKET, MODEL, Rehearsal, add_version, break_model, make_secret

SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"
README = Path(__file__).parent.parent.parent / "README.md"
PLANTED = "hf_PlantedValueThatMustNotAppear"


@pytest.fixture
def quick(rehearsal: Rehearsal) -> Rehearsal:
    """A stack whose benchmark is short and whose container has a secret; at first its processes start as a user's."""
    rehearsal.warm = False
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("secrets", {"HF_TOKEN": "hf-token"})
    return rehearsal


def test_the_whole_life(quick: Rehearsal, tmp_path: Path) -> None:
    assert quick.local("start").code == 0
    with quick.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", PLANTED)
    quick.set("model", "gemma-4-12b-it")  # does not fit, so the plan refuses it: an error with the secret in reach
    refused = quick.local("up", "l4-qat")
    assert refused.code == 1, refused.text
    quick.set("model", "gemma-4-12b-it-qat-w4a16")

    made = quick.local("up", "l4-qat")
    assert made.code == 0, made.text
    assert "l4-qat is in service on localcloud, served by a simulated vLLM" in made.text
    shown = README.read_text().partition("<!-- output of make up")[2].partition("```text\n")[2].partition("```")[0]
    summary = made.text[made.text.index("l4-qat is in service") :]
    assert summary.count(f" --dir {quick.cloud}") == 4  # README's has localcloud's usual folder
    for action in ("outputs", "down"):
        summary = summary.replace(f".venv/bin/bezel local {action} l4-qat --dir {quick.cloud}", f"make {action}")
    summary = summary.replace(f" --dir {quick.cloud}", "")
    assert shape(summary) == shape(shown), "README shows another output"
    assert "1.0465 USD per hour" in made.text
    check_the_printed_lines(quick, made.text)
    first = quick.outputs()
    assert first["simulated"] is True
    assert first["smoke"]["verdict"]["ok"] is True
    assert first["smoke"]["figures"]["completed"] == 4
    assert first["smoke"]["figures"]["checks"]["counters"] == "passed"
    weights = quick.exists()["objects"]
    assert all(name.startswith(f"{BUCKET}/{MODEL}/") for name in weights), weights
    assert open_to_others(quick.cloud) == []
    variables = quick.variables()
    command = [str(Path(sys.executable).parent / "pulumi"), "stack", "output", "--json", "--stack", "l4-qat"]
    assert (
        json.loads(subprocess.check_output(command, cwd=quick.cloud / "stacks" / "bezel", env=os.environ | variables))
        == first
    )
    check_the_benchmark(quick, tmp_path / "run.json", variables)

    unchanged = quick.local("preview", "l4-qat", "--", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
    use = r"NvidiaL4GpuAlloc\w+ in us-east4: 1 GPU used \(Cloud Monitoring, \w+ ago\), 3 GPUs allowed, 1 GPU needed"
    assert re.search(use, unchanged.text), unchanged.text
    quick.warm = True  # from here on it does not matter how processes start

    cut_by_a_full_disk(quick)
    text = quick.local("outputs", "l4-qat").text
    assert text.startswith("bezel: the state of l4-qat was truncated")
    assert set(json.loads(text[text.index("{") :])) <= set(first)
    cut_by_a_full_disk(quick)
    restored = quick.local("up", "l4-qat")
    assert restored.code == 0, restored.text
    assert "the state of l4-qat was truncated" in restored.text
    assert quick.outputs() == first
    assert list((quick.cloud / "state").rglob("*.history.json*"))

    quick.set("vllm.max-num-seqs", 4)
    changed = quick.local("up", "l4-qat")
    assert changed.code == 0, changed.text
    assert changed.changed_names("updated") == {"vllm-service-service", "vllm-health", "vllm-benchmark"}
    assert not re.search(r"^ [+-]", changed.text, re.MULTILINE), changed.text
    second = quick.outputs()
    assert "--max-num-seqs=4" in second["arguments"]
    assert second["revision"] != first["revision"]
    assert second["smoke"]["figures"]["concurrency"] == 4
    assert second["smoke"]["verdict"] != first["smoke"]["verdict"]

    break_model(quick)
    quick.set("vllm.max-num-seqs", 5)
    failed = quick.local("up", "l4-qat")
    assert failed.code == 1, failed.text
    assert "max_position_embeddings=4096" in failed.text
    quick.set("vllm.max-num-seqs", 4)
    quick.set("vllm.max-model-len", 4096)
    with quick.api() as api:
        service = api.get(SERVICE).json()
        service["template"]["scaling"] = {"maxInstanceCount": 2}
        assert api.patch(SERVICE, json=service).status_code == 200
    drift = quick.local("preview", "l4-qat", "--", "--refresh", "--diff", "--expect-no-changes")
    assert drift.code != 0
    assert "maxInstanceCount" in drift.text
    assert quick.local("refresh", "l4-qat").code == 0
    mended = quick.local("up", "l4-qat")
    assert mended.code == 0, mended.text
    with quick.api() as api:
        assert api.get(SERVICE).json()["template"]["scaling"].get("maxInstanceCount") == 1
    runs = {"refused": refused, "made": made, "restored": restored, "failed": failed, "mended": mended}
    texts = {name: run.text for name, run in runs.items()} | {"outputs": json.dumps(quick.outputs())}
    assert [name for name, text in texts.items() if PLANTED in text] == []
    assert files_with_the_secret(quick.cloud) == []

    elsewhere = Rehearsal.new(tmp_path / "another checkout", quick.cloud)
    with using(quick.cloud):  # as a run on another stack does
        gone = elsewhere.local("down", "l4-qat")
    assert gone.code == 0, gone.text
    assert "localcloud keeps running: another command uses it" in gone.text
    left = {kind: names for kind, names in quick.exists().items() if kind not in {"enabledApis", "objects"}}
    # What no stack made: the weights, and the secret.
    assert left == {
        "buckets": [BUCKET],
        "secrets": ["projects/bezel-local/secrets/hf-token"],
        "secretVersions": ["projects/bezel-local/secrets/hf-token/versions/1"],
    }
    assert quick.exists()["objects"] == weights
    assert quick.local("stop").code == 0
    assert files_with_the_secret(quick.cloud) == []


def check_the_printed_lines(quick: Rehearsal, made: str) -> None:
    """What `make up` and `bezel endpoint` print to call the stack answers as it is pasted into a shell."""
    request = made[made.index("  curl -N") :].partition("\n\n")[0]
    shown = quick.bezel("endpoint", "l4-qat", **quick.variables()).text
    (models,) = [line for line in shown.splitlines() if "curl" in line]
    for line, answer in ((request, "data: [DONE]"), (models, '"object":"list"')):
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = os.environ | {"PATH": path}
        assert answer in subprocess.check_output(["bash", "-c", line], cwd=quick.folder, env=shell, text=True), line


def cut_by_a_full_disk(rehearsal: Rehearsal) -> None:
    """Leave of the state's file what a full disk leaves: some of its bytes."""
    (file,) = rehearsal.cloud.glob("state/.pulumi/stacks/*/l4-qat.json")
    file.write_bytes(file.read_bytes()[:5000])


def shape(text: str) -> str:
    """A text without what differs from run to run: numbers, the end of a revision's name, and what was measured.

    On a busy machine the client may be the limit of a load as short as this one, which the summary says.
    """
    whole = re.sub(r"\n {10,}", " ", text)  # a value that continues below
    lines = [line for line in whole.splitlines() if not re.match(r"  (measured|not measured|note)\b", line)]
    named = re.sub(r"(\d{5})-[a-z]{3}\b", r"\1", "\n".join(re.sub(r"^(  [a-z ]+?)  +", r"\1  ", one) for one in lines))
    return re.sub(r"\d+(\.\d+)?", "0", named).strip()


def check_the_benchmark(quick: Rehearsal, out: Path, variables: dict[str, str]) -> None:
    """The deployed stack is measured by its name: its plan says what it is, its own caller is let in."""
    load = ("--users", "2", "--requests", "6", "--output-tokens", "8", "--out", str(out))
    measured = quick.bezel("bench", "run", "--stack", "l4-qat", *load, **variables)
    result = load_result(out)
    (cell,) = result.cells
    assert (result.nature, cell.failures) == ("simulated", {}), measured.text
    assert {cell.check(name).state for name in ("counters", "manifest", "roofline", "unique_prompts")} == {"passed"}
    assert result.manifest.price.usd_per_hour == pytest.approx(1.04652)


def files_with_the_secret(cloud: Path) -> list[str]:
    """Files of a cloud that hold the planted secret; Secret Manager itself has to keep it."""
    files = [file for file in cloud.rglob("*") if file.is_file() and not file.name.startswith("cloud.db")]
    assert len(files) > 20
    return [str(file) for file in files if PLANTED.encode() in file.read_bytes()]
