"""Descriptions of models from a hub, a folder and a bucket: the same of the same files, and no byte of the weights."""

import re
from pathlib import Path

import pytest

from bezel.model_sources.places import ModelRefusedError
from bezel.weights.errors import WeightsError
from tests.model_sources.conftest import MODEL, Read
from tests.support.model_sources.tiny import GENERATION, LLAMA, llama, llama_tensors, sharded_llama
from tests.support.weights.fake_hub import COMMIT, TOKEN, FakeHub


def write(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_hub_and_folder_give_the_same_description(read: Read, tmp_path: Path) -> None:
    of_hub, of_folder = read(), read(str(write(tmp_path / "Tiny-Llama", llama())))
    assert of_hub.config == of_folder.config == LLAMA
    assert of_hub.generation == of_folder.generation == GENERATION
    assert of_hub.tensors == of_folder.tensors == llama_tensors()
    assert of_hub.tokenizer == of_folder.tokenizer
    assert of_hub.tokenizer["chat_template"]
    assert (of_hub.source, of_hub.commit, of_hub.revision) == (f"hf:{MODEL}@{COMMIT}", COMMIT, "main")
    assert (of_folder.source, of_folder.hub_id, of_folder.commit) == ("folder Tiny-Llama", "", "")


def test_sharded_weights_are_read_as_one_file_is(hub: FakeHub, read: Read) -> None:
    hub.models["acme/sharded"] = sharded_llama()
    assert read("acme/sharded").tensors == llama_tensors()


@pytest.mark.parametrize("files", [llama, sharded_llama])
def test_reading_requests_no_byte_behind_a_header(hub: FakeHub, read: Read, files) -> None:
    hub.models[MODEL] = files()
    read()
    weights = [(path, ranges) for path, _, ranges in hub.storage if path.endswith(".safetensors")]
    assert weights
    for path, ranges in weights:
        content = hub.models[MODEL][path.rpartition("/")[2]]
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", ranges)
        assert match
        assert int(match[2]) < 8 + int.from_bytes(content[:8], "little")


def test_server_that_ignores_ranges_is_read_nevertheless(hub: FakeHub, read: Read) -> None:
    hub.heeds_ranges = False
    assert read().tensors == llama_tensors()


def test_commit_is_read_once_and_needs_no_network_then(hub: FakeHub, read: Read) -> None:
    first = read()
    downloads = len(hub.storage)
    assert read() == first
    assert len(hub.storage) == downloads  # only the branch was asked for its commit
    hub.models.clear()
    assert read(MODEL, COMMIT).tensors == first.tensors


def test_moved_branch_is_read_anew(hub: FakeHub, read: Read) -> None:
    first = read()
    hub.commits[MODEL] = "d" * 40
    hub.models[MODEL] = llama(max_position_embeddings=4096)
    second = read()
    assert (first.commit, second.commit) == (COMMIT, "d" * 40)
    assert (first.config["max_position_embeddings"], second.config["max_position_embeddings"]) == (8192, 4096)


def test_damaged_file_of_the_cache_is_read_anew(read: Read, tmp_path: Path) -> None:
    first = read()
    (kept,) = (tmp_path / "state" / "bezel" / "models").iterdir()
    kept.write_text('{"tensors": 5}')
    assert read() == first


def test_gated_model_is_read_with_a_token_that_storage_never_gets(hub: FakeHub, read: Read) -> None:
    hub.gated.add(MODEL)
    assert read(token=TOKEN).tensors == llama_tensors()
    assert {authorization for _, authorization, _ in hub.storage} == {""}
    assert f"Bearer {TOKEN}" in {authorization for _, authorization in hub.requests}


@pytest.mark.slow
def test_busy_hub_is_asked_again_within_a_bound(hub: FakeHub, read: Read) -> None:
    hub.busy = [429, 503]
    hub.faults["config.json"] = [500, ("cut", 5)]
    assert read().config == LLAMA
    hub.commits[MODEL] = "d" * 40
    hub.faults["config.json"] = [503] * 20
    with pytest.raises(ModelRefusedError, match=r"could not be read .* 503"):
        read()
    assert len(hub.faults["config.json"]) == 12


def test_revision_of_a_folder_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(ModelRefusedError, match="which has no revisions"):
        read(str(write(tmp_path / "m", llama())), "v1")


def test_mistrals_own_copy_of_the_weights_is_left_out(hub: FakeHub, read: Read) -> None:
    hub.models[MODEL] |= {"consolidated.safetensors": llama()["model.safetensors"]}
    assert read().weight_file_bytes == len(llama()["model.safetensors"])


def test_infinite_number_of_a_configuration_is_read(hub: FakeHub, read: Read) -> None:
    text = llama()["config.json"][:-1] + b', "time_step_limit": [0.0, Infinity]}'
    hub.models[MODEL]["config.json"] = text
    assert read().config["time_step_limit"] == [0.0, float("inf")]


def test_unreadable_folder_is_refused_with_its_path(read: Read, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", llama())
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("nowhere")
    with pytest.raises(ModelRefusedError) as refused:
        read(str(folder))
    assert "cannot be read" in str(refused.value)
    assert "config.json" in str(refused.value)


def test_hub_that_does_not_respond_is_named(hub: FakeHub, read: Read) -> None:
    hub.base = "http://127.0.0.1:9"
    with pytest.raises(Exception, match="does not respond") as refused:
        read()
    assert "HF_ENDPOINT" in str(refused.value)


def test_redirects_that_do_not_end_are_given_up(hub: FakeHub, read: Read) -> None:
    hub.loops.add(MODEL)
    with pytest.raises(Exception, match="redirects more than 5 times"):
        read()


@pytest.mark.slow
@pytest.mark.parametrize("endless", [MODEL, f"/storage/{MODEL}/config.json"])
def test_endless_answer_is_cut(hub: FakeHub, read: Read, endless: str) -> None:
    hub.endless.add(endless)
    if endless == MODEL:
        with pytest.raises(WeightsError, match="longer than"):
            read()
    else:
        assert read().config == LLAMA  # no more is read than the hub lists
