"""`weights.create: true`: the stack makes the bucket, stops with the command that fills it, goes on, takes it away."""

import pytest

from bezel_localcloud import control, seed
from bezel_simulated_vllm import synthetic_weights
from tests.support.e2e.rehearsal import Rehearsal

BUCKET = "bezel-local-own"
PATH = "gemma-4-12B-it-qat-w4a16-ct"


@pytest.mark.wide
def test_the_first_up_stops_after_the_bucket_and_the_second_goes_on(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("weights", {"bucket": BUCKET, "create": True})
    preview = rehearsal.local("preview", "l4-qat")
    assert preview.code == 0, preview.text

    first = rehearsal.local("up", "l4-qat")
    assert first.code == 1, first.text
    assert f"gs://{BUCKET}/{PATH}" in first.text
    assert f"bezel weights copy l4-qat --from hf:google/{PATH}" in first.text
    assert "Traceback" not in first.text
    assert rehearsal.exists()["buckets"] == [BUCKET]
    assert "services" not in rehearsal.exists()

    endpoint = control.status(rehearsal.cloud)
    assert endpoint is not None
    seed.seed(endpoint, BUCKET, PATH, synthetic_weights.model_files("gemma-4-12b-it-qat-w4a16"))
    second = rehearsal.local("up", "l4-qat")
    assert second.code == 0, second.text

    gone = rehearsal.local("down", "l4-qat")
    assert gone.code == 0, gone.text
    rehearsal.start_cloud()
    assert set(rehearsal.exists()) == {"enabledApis"}
