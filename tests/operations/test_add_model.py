"""`bezel catalog add-model`: the row that is shown is the one that is written; wrong models leave nothing behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.changes.basis import ChangedError
from bezel.operations.context import Context
from bezel.planner.vllm.arguments import default_options
from bezel_base.errors import Problem, UserError
from bezel_catalog.project_models import FILE, read_project_models
from tests.support.model_sources.tiny import as_json, llama, llama_tensors, size_of
from tests.support.model_sources.wrong import MODEL, WRONG_FILES, WRONG_HUBS, Files
from tests.support.weights.fake_hub import COMMIT, FakeHub, serving


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


HERMES = '{{ \'<tool_call>\\n{"name": "\' + call.name }}{{ \'", "arguments": \' }}'
LLAMA3 = HERMES.replace("<tool_call>\\n", "<|python_tag|><|start_header_id|>").replace("arguments", "parameters")


def with_template(template: str | list[object], **tokens: str) -> Files:
    added = {number: {"content": token} for number, token in enumerate(tokens.values())}
    configuration = {"chat_template": template, "added_tokens_decoder": added}
    return llama() | {"tokenizer_config.json": as_json(configuration)}


@pytest.mark.parametrize(
    ("files", "parser", "reason"),
    [
        (with_template(HERMES), "hermes", "writes calls as Hermes 2 Pro"),
        (with_template([{"name": "tool_use", "template": HERMES}, {"name": "default", "template": "x"}]), "hermes", ""),
        ({**llama(), "chat_template.jinja": HERMES.encode()}, "hermes", ""),
        ({**llama(), "additional_chat_templates/tool_use.jinja": HERMES.encode()}, "hermes", ""),
        (with_template(LLAMA3, python="<|python_tag|>"), "llama3_json", "Llama 3.1 to 3.3"),
        (with_template(LLAMA3, other="<|eom_id|>"), "", "needs the token <|python_tag|>, which the tokenizer lacks"),
        (with_template("{{ messages }}"), "", "its chat template writes no calls"),
    ],
)
def test_row_has_the_parser_that_the_template_calls_for(place: Place, files: Files, parser: str, reason: str) -> None:
    folder = place.folder_with(files)
    plan = plan_add_model(place.context(), AddModelArguments(model=folder))
    (note,) = [each for each in plan.notes if each.startswith("tool-call-parser")]
    assert note.startswith(f"tool-call-parser: {parser or 'none is set'}, since ")
    assert reason in note
    apply_add_model(place.context(), plan)
    (model,) = read_project_models(place.folder).values()
    assert model.files
    assert model.files.tool_call_parser == parser
    options = default_options(model, loading={})
    assert options.get("tool-call-parser", "") == parser
    assert options.get("enable-auto-tool-choice", False) is bool(parser)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_models_of_one_name_get_ids_that_differ(place: Place) -> None:
    place.hub.models["other/tiny-llama"] = llama()
    place.add()
    place.add("other/tiny-llama")
    assert [*read_project_models(place.folder)] == ["tiny-llama", "other-tiny-llama"]


@pytest.mark.parametrize("case", WRONG_FILES)
def test_folder_that_holds_no_model_is_refused(place: Place, case: str) -> None:
    files, consequence, repair = WRONG_FILES[case]
    _assert_refused(place, place.folder_with(files()), consequence, repair)


@pytest.mark.parametrize("case", WRONG_HUBS)
def test_model_of_a_hub_that_cannot_be_read_is_refused(place: Place, case: str) -> None:
    model, token, prepare, consequence, repair = WRONG_HUBS[case]
    prepare(place.hub)
    place.environ |= {"HF_TOKEN": token} if token else {}
    text = _assert_refused(place, model, consequence, repair)
    assert token not in text or not token


@pytest.mark.slow
def test_wrong_model_on_the_command_line_ends_without_a_traceback(place: Place) -> None:
    folder = place.folder_with(WRONG_FILES["a GGUF"][0]())
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
