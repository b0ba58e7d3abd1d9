"""The release that a simulated server is: chosen by an option or a variable, refused by its name if not recorded."""

from __future__ import annotations

import json
import re
import sys

import pytest

from bezel_base.errors import UserError
from bezel_catalog.vllm.servers import recorded_server, recorded_servers
from bezel_simulated_vllm import command
from bezel_simulated_vllm.release import DEFAULT_RELEASE, VARIABLE, check_release, take_release


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        (["--release", "0.32.0", "serve", "m"], ["serve", "m"]),
        (["serve", "m", "--release=v0.32.0"], ["serve", "m"]),
        (["serve", "m"], ["serve", "m"]),
    ],
)
def test_release_is_taken_out_of_the_arguments(arguments, rest):
    assert take_release(arguments, {}) == ("0.32.0", rest)


def test_option_overrides_the_variable():
    with pytest.raises(UserError, match=r"LOCALCLOUD_RELEASE = 0\.1\.0"):
        take_release(["m"], {VARIABLE: "0.1.0"})
    assert take_release(["m", "--release", "0.32.0"], {VARIABLE: "0.1.0"}) == ("0.32.0", ["m"])
    assert take_release(["m"], {VARIABLE: ""}) == (DEFAULT_RELEASE, ["m"])


@pytest.mark.parametrize("name", ["0.31.0", "v0.99.0", "0.32", "latest", "", "vision"])
def test_a_release_without_a_recording_is_refused_by_name(name):
    with pytest.raises(UserError, match=rf"(?s)--release = .*{re.escape(name)}.*not recorded.*0\.32\.0"):
        check_release(name, "--release")


@pytest.mark.parametrize("line", [["--release", "0.31.0", "--version"], ["serve", "m", "--release=0.31.0"]])
def test_command_ends_with_the_name_of_an_unknown_release(line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["simulated-vllm", *line])
    assert command.main() == 2
    assert "0.31.0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("release", recorded_servers())
def test_server_tells_its_release(serve, release):
    with serve("/mnt/models/tiny", release=release) as client:
        assert client.get("/version").json() == {"version": release}
        assert client.get("/openapi.json").json()["info"] == recorded_server(release).document["info"]


@pytest.fixture(scope="module", params=recorded_servers())
def server(request, serve):
    """The release and the client of a server of it."""
    with serve("/mnt/models/tiny", "--max-model-len=512", release=request.param, speed=500.0) as client:
        yield request.param, client


CALLS = {
    "/v1/completions": {"prompt": "a", "max_tokens": 2},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("path", CALLS)
def test_choices_have_versions_of_weights_since_0_33(server, path):
    release, client = server
    later = release != "0.32.0"
    (choice,) = client.post(path, json=CALLS[path]).json()["choices"]
    assert ("weight_versions" in choice) == later
    lines = client.post(path, json=CALLS[path] | {"stream": True}).text.split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert ("kv_transfer_params" in chunks[-1]) == ("weight_versions" in chunks[-1]["choices"][0]) == later


@pytest.mark.slow
@pytest.mark.parametrize("path", CALLS)
def test_versions_of_weights_are_told_on_request(server, path):
    release, client = server
    later = release != "0.32.0"
    body = CALLS[path] | {"return_weight_versions": True, "ignore_eos": True}
    versions = '"weight_versions":[{"version":"default","start":0,"end":2}]'
    assert (versions in client.post(path, json=body).text) == later
    assert client.post(path, json=body | {"stream": True}).text.count(versions) == later


@pytest.mark.slow
def test_a_cut_response_is_incomplete_since_0_33(server):
    release, client = server
    later = release != "0.32.0"
    body = {"input": "a", "max_output_tokens": 3, "prompt_cache_key": "k", "temperature": 0}
    whole = client.post("/v1/responses", json=body | {"ignore_eos": True}).json()
    assert whole["status"] == "incomplete"
    assert {item["status"] for item in whole["output"]} == ({"incomplete"} if later else {"completed"})
    assert whole.get("prompt_cache_key") == ("k" if later else None)
    text = client.post("/v1/responses", json=body | {"ignore_eos": True, "stream": True}).text
    assert ("event: response.incomplete" in text) == later


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "texts"),
    [
        ("/v1/messages", {"model": "x", "max_tokens": 1, "messages": []}, ("NotFoundError", "not_found_error")),
        ("/v1/completions", {"prompt": []}, ('"param":null', "at least one prompt (parameter=prompt)")),
        ("/is_scaling_elastic_ep", None, ('{"is_scaling_elastic_ep":false}', '"phase":"idle"')),
    ],
)
def test_texts_are_those_of_the_release(server, path, body, texts):
    release, client = server
    earlier, later = texts
    text = client.post(path, json=body).text
    assert (earlier in text, later in text) == ((True, False) if release == "0.32.0" else (False, True))


@pytest.mark.slow
def test_cache_configuration_has_the_labels_of_the_release(server):
    release, client = server
    assert ("simple_cpu_offload_num_blocks" in client.get("/metrics").text) == (release != "0.32.0")


@pytest.mark.parametrize(
    ("method", "release", "variables", "overlaps"),
    [
        ("ngram", "0.32.0", {}, False),
        ("ngram", "0.33.0", {}, True),
        ("ngram", "0.33.0", {"VLLM_USE_V2_MODEL_RUNNER": "0"}, False),
        ("suffix", "0.33.0", {}, False),
        ("ngram_gpu", "0.32.0", {}, True),
    ],
)
def test_steps_overlap_with_drafts_as_the_release_schedules_them(settings, method, release, variables, overlaps):
    drafts = json.dumps({"method": method, "num_speculative_tokens": 3})
    arguments = ("/mnt/models/tiny", f"--speculative-config={drafts}", "--max-model-len=512")
    assert settings(*arguments, release=release, variables=variables).async_scheduling is overlaps
