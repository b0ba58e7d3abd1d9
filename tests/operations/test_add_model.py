"""`bezel catalog add-model`: the row that is shown is the one that is written; wrong models leave nothing behind."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.changes.basis import ChangedError
from bezel.operations.context import Context
from bezel_base.errors import Problem, UserError
from bezel_catalog.project_models import FILE, read_project_models
from tests.support.model_sources.tiny import as_json, llama, llama_tensors, sharded_llama, size_of, with_header
from tests.support.weights.fake_hub import COMMIT, TOKEN, FakeHub, serving

MODEL = "acme/Tiny-Llama"
Files = dict[str, bytes]


@dataclass
class Place:
    """A project, a hub with a tiny model, and the folder of another one."""

    hub: FakeHub
    folder: Path
    environ: dict[str, str]

    def context(self) -> Context:
        return Context(self.folder, self.environ, show=lambda _: None)

    def add(self, model: str = MODEL, **values: object) -> None:
        """Plan the row, and write it."""
        plan = plan_add_model(self.context(), AddModelArguments.model_validate({"model": model, **values}))
        assert not plan.refusals
        apply_add_model(self.context(), plan)

    def folder_with(self, files: Files) -> str:
        """A folder with these files."""
        folder = self.folder / "models" / "wrong"
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        return str(folder)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    with serving() as hub:
        hub.models[MODEL] = llama()
        yield Place(hub, tmp_path, {"HF_ENDPOINT": hub.base, "XDG_STATE_HOME": str(tmp_path / "state")})


def test_row_is_shown_then_written(place: Place) -> None:
    plan = plan_add_model(place.context(), AddModelArguments(model=MODEL))
    assert plan.target == "tiny-llama"
    assert "+weight_bytes = 279_168" in (plan.file_change or "")
    assert not (place.folder / FILE).exists()
    outcome = apply_add_model(place.context(), plan)
    assert outcome.verdict == "done"
    shown = [line[1:] for line in (plan.file_change or "").splitlines()[3:]]
    assert (place.folder / FILE).read_text().splitlines() == shown
    model = read_project_models(place.folder)["tiny-llama"]
    assert model.weight_bytes == size_of(llama_tensors())
    assert model.repository == f"{MODEL}@{COMMIT}"
    assert model.architecture.full_kv_heads == 2
    assert f"main is commit {COMMIT} now" in " ".join(plan.notes)


def test_second_row_leaves_the_first_and_its_comments(place: Place) -> None:
    place.add()
    text = (place.folder / FILE).read_text().replace("[model.tiny-llama]", "# ours\n[model.tiny-llama]")
    (place.folder / FILE).write_text(text)
    place.hub.models["acme/other"] = llama(max_position_embeddings=4096)
    place.add("acme/other")
    assert (place.folder / FILE).read_text().startswith(text)
    assert [*read_project_models(place.folder)] == ["tiny-llama", "other"]


def test_same_model_again_changes_nothing(place: Place) -> None:
    place.add()
    before = (place.folder / FILE).read_bytes()
    plan = plan_add_model(place.context(), AddModelArguments(model=f"{MODEL}@v1"))
    assert plan.is_empty
    assert apply_add_model(place.context(), plan).verdict == "unchanged"
    assert (place.folder / FILE).read_bytes() == before


def test_row_with_other_figures_is_replaced_only_where_asked(place: Place) -> None:
    place.add()
    place.hub.commits[MODEL] = "d" * 40
    place.hub.models[MODEL] = llama(max_position_embeddings=4096)
    plan = plan_add_model(place.context(), AddModelArguments(model=MODEL))
    (refusal,) = plan.refusals
    assert "source, config, commit" in refusal
    assert "--replace" in refusal
    place.add(replace=True)
    assert read_project_models(place.folder)["tiny-llama"].architecture.context == 4096
    assert (place.folder / FILE).read_text().count("[model.") == 1


def test_branch_that_moved_since_the_plan_is_not_written(place: Place) -> None:
    plan = plan_add_model(place.context(), AddModelArguments(model=MODEL))
    place.hub.commits[MODEL] = "d" * 40
    with pytest.raises(ChangedError, match="the model's files"):
        apply_add_model(place.context(), plan)
    assert not (place.folder / FILE).exists()


def test_file_that_changed_since_the_plan_is_not_written(place: Place) -> None:
    plan = plan_add_model(place.context(), AddModelArguments(model=MODEL))
    (place.folder / FILE).write_text("# another hand\n")
    with pytest.raises(ChangedError, match=r"catalog\.toml"):
        apply_add_model(place.context(), plan)
    assert (place.folder / FILE).read_text() == "# another hand\n"


def test_code_of_its_own_that_vllm_needs_not_is_told(place: Place) -> None:
    place.hub.models[MODEL] = llama(auto_map={"AutoConfig": "mine.LlamaConfig"})
    plan = plan_add_model(place.context(), AddModelArguments(model=MODEL))
    assert any("auto_map" in note for note in plan.notes)
    assert not plan.refusals


def test_models_of_one_name_get_ids_that_differ(place: Place) -> None:
    place.hub.models["other/tiny-llama"] = llama()
    place.add()
    place.add("other/tiny-llama")
    assert [*read_project_models(place.folder)] == ["tiny-llama", "other-tiny-llama"]


def _without(*names: str) -> Callable[[], Files]:
    return lambda: {name: content for name, content in llama().items() if name not in names}


def _with(**contents: bytes) -> Callable[[], Files]:
    return lambda: {**llama(), **{name.replace("__", "."): content for name, content in contents.items()}}


def _index(**weight_map: str) -> Files:
    files = sharded_llama()
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"] |= weight_map
    return {**files, "model.safetensors.index.json": as_json(index)}


def _only(*names: str) -> Callable[[], Files]:
    return lambda: {**_without("model.safetensors")(), **dict.fromkeys(names, b"GGUF")}


def _row(begin: int, end: int) -> dict[str, object]:
    return {"dtype": "BF16", "shape": [(end - begin) // 2], "data_offsets": [begin, end]}


FOLDERS: dict[str, tuple[Callable[[], Files], str, str]] = {
    "empty": (dict, "has no files", "correct the name"),
    "no config": (_without("config.json"), "has no config.json", "beside the weights"),
    "invalid JSON": (_with(config__json=b'{"a": '), "it is not valid JSON", "correct the file"),
    "a list as JSON": (_with(config__json=b"[]"), "it is not a JSON object", "correct the file"),
    "a number of 200 digits": (
        _with(config__json=b'{"a": ' + b"9" * 200 + b"}"),
        "a whole number of 200 digits",
        "correct the file",
    ),
    "deep JSON": (_with(config__json=b'{"a":' * 2000 + b"1" + b"}" * 2000), "not valid JSON", "correct the file"),
    "a GGUF": (_only("model-Q4_K_M.gguf"), "has its weights in GGUF", "in safetensors"),
    "only .bin": (_only("pytorch_model.bin"), "can run code when it is loaded", "convert it"),
    "no weights": (_only(), "has no weights", "complete model"),
    "a LoRA": (
        lambda: {"adapter_config.json": b"{}", "adapter_model.safetensors": llama()["model.safetensors"]},
        "is a LoRA adapter and no model",
        "bezel:adapters",
    ),
    "diffusers": (
        lambda: {"model_index.json": b"{}", "unet/model.safetensors": llama()["model.safetensors"]},
        "diffusers",
        "transformers library",
    ),
    "a part of diffusers": (
        _with(config__json=as_json({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.30"})),
        "is of the diffusers library",
        "transformers library",
    ),
    "no architecture": (_with(config__json=b'{"model_type": "llama"}'), "names no architecture", "add the class"),
    "unknown architecture": (
        lambda: llama(architectures=["MineForCausalLM"]),
        "MineForCausalLM is not in the registry of vLLM",
        "that vLLM has",
    ),
    "code of its own in place of a class": (
        lambda: llama(architectures=["MineForCausalLM"], auto_map={"AutoConfig": "mine.MineConfig"}),
        "not run (trust_remote_code)",
        "that vLLM has",
    ),
    "code of its own for its configuration": (
        lambda: llama(model_type="mine", auto_map={"AutoConfig": "mine.MineConfig"}),
        "with trust_remote_code only",
        "without auto_map",
    ),
    "missing shard": (
        lambda: {n: c for n, c in sharded_llama().items() if "00002-of" not in n},
        "1 weight files are missing: model-00002-of-00002.safetensors",
        "complete the files",
    ),
    "index of a file that is not there": (lambda: _index(x="other.safetensors"), "other.safetensors", "complete"),
    "index leading outside": (lambda: _index(x="../../etc/passwd"), "outside of the model's folder", "another source"),
    "index of a tensor that is not there": (
        lambda: _index(x="model-00001-of-00002.safetensors"),
        "it names 1 tensors that no file has",
        "copy the files",
    ),
    "index without files": (
        lambda: {**sharded_llama(), "model.safetensors.index.json": b"{}"},
        "it names no file for a tensor",
        "correct the index",
    ),
    "header of 100 GB": (
        _with(model__safetensors=struct.pack("<Q", 100 * 10**9) + bytes(64)),
        "claims a header of 100000000000 bytes",
        "copy the file again",
    ),
    "overlapping offsets": (
        _with(model__safetensors=with_header({"a": _row(0, 8), "b": _row(4, 12)}, bytes(12))),
        "b begins at 4 and overlaps",
        "copy the file again",
    ),
    "empty weights": (_with(model__safetensors=b""), "model.safetensors is empty", "complete the files"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_folder_that_holds_no_model_is_refused(place: Place, case: str) -> None:
    files, consequence, repair = FOLDERS[case]
    _assert_refused(place, place.folder_with(files()), consequence, repair)


def _gate(hub: FakeHub) -> None:
    hub.gated.add(MODEL)


def _forbidden(hub: FakeHub) -> None:
    hub.forbidden.add(MODEL)


def _refused_token(hub: FakeHub) -> None:
    hub.gated.add(MODEL)
    hub.refused_tokens.add("hf_refused")


HUBS: dict[str, tuple[str, str, Callable[[FakeHub], None], str, str]] = {
    "gated without token": (MODEL, "", _gate, "is gated", f"/{MODEL}, and set HF_TOKEN"),
    "token without access": (MODEL, TOKEN, _forbidden, "account of this token is not among them", "accept the terms"),
    "token refused": (MODEL, "hf_refused", _refused_token, "refused with this token", "settings/tokens"),
    "no such model": ("acme/nothing", "", _gate, "does not exist, or is private", "correct the name"),
    "no such revision": (f"{MODEL}@v9", "", lambda _: None, "RevisionNotFound", "the revision"),
    "name with periods": ("acme/..", "", lambda _: None, "neither a folder that exists nor", "OWNER/NAME"),
    "revision with periods": (f"{MODEL}@../x", "", lambda _: None, "neither a folder", "OWNER/NAME"),
    "redirects": (MODEL, "", lambda hub: hub.loops.add(MODEL), "redirects more than 5 times", "check the address"),
    "endless list": (MODEL, "", lambda hub: hub.endless.add(MODEL), "longer than", "check the address"),
    "in the catalogue": ("google/Gemma-4-12B-it", "", lambda _: None, "the catalogue has it", "gemma-4-12b-it"),
    "folder that is not there": ("./nothing", "", lambda _: None, "cannot be read", "make it readable"),
    "bucket without a name": ("gs://", "", lambda _: None, "not the address of a folder", "gs://BUCKET/FOLDER"),
}


@pytest.mark.parametrize("case", HUBS)
def test_model_of_a_hub_that_cannot_be_read_is_refused(place: Place, case: str) -> None:
    model, token, prepare, consequence, repair = HUBS[case]
    prepare(place.hub)
    place.environ |= {"HF_TOKEN": token} if token else {}
    text = _assert_refused(place, model, consequence, repair)
    assert token not in text or not token


def test_wrong_model_on_the_command_line_ends_without_a_traceback(place: Place) -> None:
    folder = place.folder_with(FOLDERS["a GGUF"][0]())
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("bezel")), "catalog", "add-model", folder, "--yes"],
        cwd=place.folder,
        env={**os.environ, **place.environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "Repair: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (place.folder / FILE).exists()


def _assert_refused(place: Place, model: str, consequence: str, repair: str) -> str:
    """Assert that a model is refused with a consequence and a repair; return the text."""
    with pytest.raises(UserError) as refused:
        plan_add_model(place.context(), AddModelArguments(model=model))
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    assert consequence in problem.consequence or consequence in problem.head
    assert repair in problem.repair
    assert not (place.folder / FILE).exists()
    return str(refused.value)
