"""A deploy that fails says why, stays red until it is mended, and can be mended."""

from rehearsal import BUCKET, MODEL, Rehearsal, break_model


def test_a_bucket_without_the_model_is_found_in_preview(rehearsal: Rehearsal) -> None:
    assert rehearsal.local("preview", "l4-qat").code == 0
    with rehearsal.api() as api:
        assert api.delete(f"/storage/v1/b/{BUCKET}/o/{MODEL}%2Fconfig.json").is_success
    run = rehearsal.local("preview", "l4-qat")
    assert run.code == 1
    assert "config.json" in run.text
    assert f"gs://{BUCKET}/{MODEL}" in run.text
    assert "bezel weights copy l4-qat --from hf:" in run.text
    assert "Traceback" not in run.text


def test_a_start_that_fails_is_explained_every_time_until_it_is_mended(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    assert rehearsal.local("preview", "l4-qat").code == 0
    break_model(rehearsal)

    for _ in range(2):
        run = rehearsal.local("up", "l4-qat")
        assert run.code == 1, run.text
        assert "HEALTH_CHECK_CONTAINER_ERROR" in run.text  # the platform's words
        assert "max_position_embeddings=4096" in run.text  # the container's
        assert "Correct the arguments named there" in run.text  # what mends it
        assert "in service" not in run.text

    rehearsal.set("vllm.max-model-len", 4096)
    rehearsal.set("vllm.max-num-batched-tokens", 2048)
    mended = rehearsal.local("up", "l4-qat")
    assert mended.code == 0, mended.text
    assert rehearsal.outputs()["smoke"]["verdict"]["ok"] is True
