"""What a new user gets wrong stops in preview: the value, what it would cause, how to repair it, and no traceback."""

import shutil

import pytest

from tests.support.e2e.rehearsal import BUCKET, MODEL, Rehearsal, Run

PLANTED = "hf_PlantedValueThatMustNotAppear"
WRONG = {
    "unknown key": ("acelerator", "nvidia-l4", ["acelerator", "accelerator"]),
    "unknown accelerator": ("accelerator", "nvidia-l5", ["nvidia-l5", "nvidia-l4"]),
    "context above the model's": ("vllm.max-model-len", 300000, ["300000", "262144"]),
    "too little memory": ("resources.memory", "8Gi", ["8Gi", "16"]),
    "probe beyond the platform's limit": (
        "probe",
        {"period_seconds": 240, "failure_threshold": 30},
        ["7200", "1800"],
    ),
    "region without the accelerator": ("region", "europe-north1", ["europe-north1", "us-east4"]),
    "speculation without a draft model": ("vllm.spec-method", "mtp", ["spec-method", "spec-model"]),
    "unpriced region": ("region", "asia-southeast1", ["asia-southeast1", "price is unknown", "Missing price row"]),
}


@pytest.mark.wide_except("unknown key", "too little memory")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_input_stops_in_preview(shared_rehearsal: Rehearsal, name: str) -> None:
    path, value, expected = WRONG[name]
    good = shared_rehearsal.folder / "Pulumi.l4-qat.yaml"
    shutil.copy(good, shared_rehearsal.folder / "good")
    try:
        shared_rehearsal.set(path, value)
        run = shared_rehearsal.local("preview", "l4-qat")
    finally:
        shutil.copy(shared_rehearsal.folder / "good", good)
    assert run.code == 1, run.text
    for phrase in expected:
        assert phrase in run.text
    assert "Repair:" in run.text
    assert "Traceback" not in run.text
    assert "cloudrunv2" not in run.text


@pytest.mark.usefixtures("first_preview")  # so that there is a stack
def test_a_refused_secret_gets_nowhere(shared_rehearsal: Rehearsal) -> None:
    """Whatever is run: no event, history, state, copy or log of a cloud holds what the stack file should not."""
    good = shared_rehearsal.folder / "Pulumi.l4-qat.yaml"
    shutil.copy(good, shared_rehearsal.folder / "good")
    try:
        shared_rehearsal.set("variables", {"HF_TOKEN": PLANTED})
        for action, code in (("preview", 1), ("up", 1), ("refresh", 0), ("recover", 0)):
            run = shared_rehearsal.local(action, "l4-qat")
            assert (run.code, PLANTED in run.text) == (code, False), run.text
    finally:
        shutil.copy(shared_rehearsal.folder / "good", good)
    files = [file for file in shared_rehearsal.cloud.rglob("*") if file.is_file()]
    assert [str(file) for file in files if PLANTED.encode() in file.read_bytes()] == []


def test_the_right_input_does_not_stop(first_preview: Run) -> None:
    assert first_preview.code == 0, first_preview.text
    assert "cloudrunv2" in first_preview.text


@pytest.mark.usefixtures("first_preview")  # which puts the weights into the bucket
def test_a_bucket_without_the_model_is_found_in_preview(shared_rehearsal: Rehearsal) -> None:
    with shared_rehearsal.api() as api:
        config = f"/storage/v1/b/{BUCKET}/o/{MODEL}%2Fconfig.json"
        content = api.get(config, params={"alt": "media"}).content
        assert api.delete(config).is_success
        try:
            run = shared_rehearsal.local("preview", "l4-qat")
        finally:
            query = {"uploadType": "media", "name": f"{MODEL}/config.json"}
            assert api.post(f"/upload/storage/v1/b/{BUCKET}/o", params=query, content=content).is_success
    assert run.code == 1
    assert "config.json" in run.text
    assert f"gs://{BUCKET}/{MODEL}" in run.text
    assert "bezel weights copy l4-qat --from hf:" in run.text
    assert "Traceback" not in run.text


def test_a_stack_without_a_file_is_named_with_those_that_exist(shared_rehearsal: Rehearsal) -> None:
    run = shared_rehearsal.local("up", "l4-qta")
    assert run.code == 2
    assert "no Pulumi.l4-qta.yaml" in run.text
    assert "l4-qat" in run.text
    assert "Traceback" not in run.text


def test_a_protected_stack_is_not_taken_down_by_halves(shared_rehearsal: Rehearsal) -> None:
    run = shared_rehearsal.local("down", "rtx6000-mtp")
    assert run.code == 1
    assert "rtx6000-mtp is protected from deletion" in run.text
    assert "bezel:deletion_protection: never" in run.text
    assert "estroying" not in run.text
    assert "Traceback" not in run.text


@pytest.mark.usefixtures("first_preview")
def test_a_state_cut_with_the_one_before_it_stops_the_deploy(shared_rehearsal: Rehearsal) -> None:
    """One that is cut alone is put back: `test_life_of_a_stack`."""
    file = shared_rehearsal.cloud / "state" / ".pulumi" / "stacks" / "bezel" / "l4-qat.json"
    whole = file.read_text()
    for cut in (file, file.with_name(f"{file.name}.bak")):
        cut.write_text(whole[:20])
    try:
        run = shared_rehearsal.local("up", "l4-qat")
    finally:
        file.write_text(whole)
    assert (run.code, "Traceback" in run.text) == (1, False), run.text
    assert "so is l4-qat.json.bak beside it, so the resources of l4-qat are unknown" in run.text
    assert "bezel local recover l4-qat" in run.text
