"""The stack `l4-qat` under the real engine: made, left alone, changed, changed by somebody else, taken away."""

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
from tests.support.e2e.rehearsal import Rehearsal, add_version, break_model, make_secret

SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"
README = Path(__file__).parent.parent.parent / "README.md"
PLANTED = "hf_PlantedValueThatMustNotAppear"


@pytest.fixture
def quick(rehearsal: Rehearsal) -> Rehearsal:
    """A stack whose benchmark is short, and whose processes are all started as a user's are."""
    rehearsal.warm = False
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    return rehearsal


def test_the_whole_life(quick: Rehearsal, tmp_path: Path) -> None:
    assert quick.local("preview", "l4-qat").code == 0
    before = weights_only(quick)

    made = quick.local("up", "l4-qat")
    assert made.code == 0, made.text
    assert "l4-qat is in service on localcloud, served by a simulated vLLM" in made.text
    shown = README.read_text().partition("<!-- output of make up")[2].partition("```text\n")[2].partition("```")[0]
    assert shape(made.text[made.text.index("l4-qat is in service") :]) == shape(shown), "README shows another output"
    assert "1.0465 USD per hour" in made.text
    first = quick.outputs()
    assert first["simulated"] is True
    assert first["smoke"]["verdict"]["ok"] is True
    assert first["smoke"]["figures"]["completed"] == 4
    assert first["smoke"]["figures"]["checks"]["counters"] == "passed"
    assert open_to_others(quick.cloud) == []
    variables = quick.variables()
    command = [str(Path(sys.executable).parent / "pulumi"), "stack", "output", "--json", "--stack", "l4-qat"]
    assert json.loads(subprocess.check_output(command, cwd=quick.cloud / "stacks", env=os.environ | variables)) == first
    check_the_benchmark(quick, tmp_path / "run.json", variables)

    unchanged = quick.local("preview", "l4-qat", "--", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
    use = r"NvidiaL4GpuAlloc\w+ in us-east4: 1 GPU used \(Cloud Monitoring, \w+ ago\), 3 GPUs allowed, 1 GPU needed"
    assert re.search(use, unchanged.text), unchanged.text
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
    foretold = quick.local("preview", "l4-qat")
    changed = quick.local("up", "l4-qat")
    assert changed.code == 0, changed.text
    updated = {"service-service", "health", "benchmark"}
    assert foretold.changed_names("update") == changed.changed_names("updated") == updated
    second = quick.outputs()
    assert "--max-num-seqs=4" in second["arguments"]
    assert second["revision"] != first["revision"]
    assert second["smoke"]["figures"]["concurrency"] == 4
    assert second["smoke"]["verdict"] != first["smoke"]["verdict"]

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

    elsewhere = Rehearsal.new(tmp_path / "another checkout", quick.cloud)
    with using(quick.cloud):  # as a run on another stack does
        gone = elsewhere.local("down", "l4-qat")
    assert gone.code == 0, gone.text
    assert "localcloud keeps running: another command uses it" in gone.text
    assert weights_only(quick) == before


def cut_by_a_full_disk(rehearsal: Rehearsal) -> None:
    """Leave of the state's file what a full disk leaves: some of its bytes."""
    (file,) = rehearsal.cloud.glob("state/.pulumi/stacks/*/l4-qat.json")
    file.write_bytes(file.read_bytes()[:5000])


def shape(text: str) -> str:
    """A text without what differs from run to run: numbers, the end of a revision's name, and what was measured.

    On a busy machine the client may be the limit of a load as short as this one, which the summary says.
    """
    lines = [line for line in text.splitlines() if not re.match(r"  (measured|not measured|note)\b", line)]
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


def weights_only(rehearsal: Rehearsal) -> dict[str, object]:
    """What exists before a deploy and after a destroy: the bucket with the weights, which no stack made."""
    resources = rehearsal.exists()
    assert set(resources) <= {"buckets", "objects", "enabledApis"}, resources
    return {kind: names for kind, names in resources.items() if kind != "enabledApis"}


def test_a_planted_secret_is_found_nowhere(quick: Rehearsal) -> None:
    quick.set("secrets", {"HF_TOKEN": "hf-token"})
    assert quick.local("start").code == 0
    with quick.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", PLANTED)
    quick.set("model", "gemma-4-12b-it")  # does not fit, so the plan refuses it: an error with the secret in reach
    refused = quick.local("up", "l4-qat")
    quick.set("model", "gemma-4-12b-it-qat-w4a16")
    assert quick.local("preview", "l4-qat").code == 0
    break_model(quick)
    failed = quick.local("up", "l4-qat")
    quick.set("vllm.max-model-len", 4096)
    run = quick.local("up", "l4-qat")
    assert (refused.code, failed.code, run.code) == (1, 1, 0), run.text
    texts = {"refused": refused.text, "failed": failed.text, "up": run.text, "outputs": json.dumps(quick.outputs())}
    assert quick.local("stop").code == 0
    for file in quick.cloud.rglob("*"):
        # Secret Manager itself has to keep it.
        if file.is_file() and not file.name.startswith("cloud.db"):
            texts[str(file)] = file.read_text(errors="replace")
    assert len(texts) > 20
    assert [name for name, text in texts.items() if PLANTED in text] == []
