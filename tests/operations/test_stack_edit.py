"""Edits of stack files: exactly the shown text is written, every wrong input is named, and nothing is half-written."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bezel.engine.outcomes import RefusedError
from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.changes.plan import Plan
from bezel.operations.context import Context
from bezel.operations.stack.edit import INSIDE, EditArguments, apply_edit, check_scope, plan_edit
from bezel.operations.stack_edits.file_writes import write_file
from bezel.operations.touches import BeyondStackError
from bezel.planner.base.settings import Settings
from bezel_base.errors import UserError

ROOT = Path(__file__).parents[2]
PROGRAM = "from bezel_stacks import stack\n"
FILE = "Pulumi.dev.yaml"
BOMB = ", ".join(["a0: &a0 [1, 1, 1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """A project with one stack; no cloud and no backend."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text((ROOT / "Pulumi.yaml").read_text())
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / FILE).write_text((ROOT / "Pulumi.l4-qat.yaml").read_text())
    return Context(folder, {}, show=lambda _line: None)


def plan_of(context: Context, *settings: str, stack: str = "dev", **more: Any) -> Plan:
    return plan_edit(context, EditArguments(stack=stack, set=settings, **more))


def text(context: Context, name: str = FILE) -> str:
    return (context.folder / name).read_bytes().decode()


def config(context: Context, name: str = FILE) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(text(context, name))["config"]
    return values


def lines_but(content: str, word: str) -> list[str]:
    return [line for line in content.splitlines() if word not in line]


def test_edit_writes_what_was_shown_and_keeps_comments_and_order(context: Context) -> None:
    before = text(context)
    plan = plan_of(context, "scaling.max_instances=2", "cost.max_hourly_usd=2.5", "labels.expires-at=2026-12-31")
    assert (text(context), plan.refusals) == (before, ())
    assert plan.price_before is not None
    assert plan.price_after is not None
    assert plan.price_before.usd_per_hour is not None
    assert plan.price_after.usd_per_hour == plan.price_before.usd_per_hour * 2
    assert "+    max_instances: 2" in (plan.file_change or "")
    assert "cost.max_hourly_usd 1.1 -> 2.5" in plan.summary
    assert apply_edit(context, plan).verdict == "done"
    assert config(context)["bezel:labels"]["expires-at"] == "2026-12-31"
    kept = [line for line in before.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in text(context).splitlines() if line.lstrip().startswith("#")] == kept
    assert {file.name for file in context.folder.iterdir()} == {FILE, "Pulumi.yaml", "__main__.py"}
    assert plan_of(context, "scaling.max_instances=2").is_empty


def test_edit_of_the_regions_shows_the_price_of_all(context: Context) -> None:
    plan = plan_of(context, "regions=[us-east4, europe-west4]", "cost.max_hourly_usd=2.5", unset=("region",))
    assert plan.refusals == ()
    assert plan.price_before
    assert plan.price_after
    assert plan.price_before.usd_per_hour is not None
    assert plan.price_after.usd_per_hour == plan.price_before.usd_per_hour * 2
    both = plan_of(context, "regions=[us-east4, europe-west4]")
    assert any("bezel:region is set too (us-east4)" in refusal for refusal in both.refusals)


def test_edit_shows_all_problems_with_their_repair_and_refuses(context: Context) -> None:
    plan = plan_of(context, "scaling.max_instances=0", "model=gemma-4-12b-it-qat-w4a17")
    assert len(plan.refusals) == 2
    assert all("Repair: " in each for each in plan.refusals)
    assert any("gemma-4-12b-it-qat-w4a16" in each for each in plan.refusals)
    with pytest.raises(ConfirmationError):
        Confirmations().offer(plan, "agent")


def test_new_file_is_a_copy_with_its_own_settings(context: Context) -> None:
    (context.folder / FILE).write_text(f"{text(context)}  bezel:service_name: chat\nencryptionsalt: v1:abc\n")
    plan = plan_of(context, "region=europe-west4", stack="eu", new=True, copy_of="dev")
    assert not (context.folder / "Pulumi.eu.yaml").exists()
    assert (plan.price_before and plan.price_before.usd_per_hour) == 0
    apply_edit(context, plan)
    made = config(context, "Pulumi.eu.yaml")
    assert made["bezel:region"] == "europe-west4"
    assert "bezel:service_name" not in made
    assert "encryptionsalt" not in text(context, "Pulumi.eu.yaml")
    with pytest.raises(RefusedError, match="this has changed: the stack's file"):
        apply_edit(context, plan)


def test_new_file_of_settings_alone_names_what_is_missing(context: Context) -> None:
    assert "bezel:accelerator" in "".join(
        plan_of(context, "model=gemma-4-12b-it-qat-w4a16", stack="x", new=True).refusals
    )
    whole = ("model=gemma-4-12b-it-qat-w4a16", "accelerator=nvidia-l4", "region=us-east4")
    assert plan_of(context, *whole, stack="x", new=True).refusals == ()


@pytest.mark.parametrize(
    ("settings", "unset", "message"),
    [
        (("gcp:project=other",), (), "a person writes it into Pulumi.dev.yaml"),
        (("pulumi:tags=x",), (), "expected a setting of the namespace bezel"),
        (("encryptionsalt=v1:abc",), (), "the engine's own key"),
        (("config.bezel:model=x",), (), "the engine's own key|a setting of the namespace"),
        (("../../etc/passwd=1",), (), "expected the path of a setting"),
        (("scaling..max_instances=1",), (), "expected the path of a setting"),
        (("=1",), (), "expected the path of a setting"),
        (("scaling.max_instances",), (), "it has no value"),
        (("labels.team=",), (), "it has no value"),
        (("labels.team=#ops",), (), "YAML takes it for nothing"),
        (("labels.team=*shared",), (), "undefined alias"),
        (("labels.team=&a [*a]",), (), "not a value in YAML|refers to itself"),
        ((f"labels={{{BOMB}}}",), (), "more than 50,000 values"),
        (("model=!!python/object/apply:os.system [id]",), (), "remove the tag"),
        (("lease={zones: !!set {a}}",), (), "no setting has the type"),
        (("model=--- a\n--- b",), (), "single document"),
        (("model=a\0b",), (), "not a value in YAML"),
        ((f"labels={'[' * 5000}",), (), "not a value in YAML"),
        (("secrets.HF_TOKEN={secure: v1:abc}",), (), "bezel secret set"),
        (("scaling={max_instances: 2}", "scaling.min_instances=1"), (), "one of them would be lost"),
        (("scaling.max_instances=2",), ("scaling.max_instances",), "one of them would be lost"),
        (("cost=5",), (), "a section of settings in Pulumi.dev.yaml"),
        ((), ("rollout",), "does not set it"),
        ((), ("gcp:project",), "expected a setting of the namespace"),
        ((), (), "nothing to change"),
    ],
)
def test_setting_that_cannot_be_written_is_refused(
    context: Context, settings: tuple[str, ...], unset: tuple[str, ...], message: str
) -> None:
    before = text(context)
    with pytest.raises(UserError, match=message) as refused:
        plan_of(context, *settings, unset=unset)
    assert "Repair: " in str(refused.value)
    assert text(context) == before


@pytest.mark.parametrize("stack", ["../dev", "/etc/passwd", "..", "-x", "a/b", "x\0", "x" * 200, "DEV", ""])
def test_name_that_no_new_stack_can_have_is_refused(context: Context, stack: str) -> None:
    with pytest.raises(UserError, match="nothing is overwritten" if stack == "DEV" else "a stack's name has at most"):
        plan_of(context, "region=us-east4", stack=stack, new=True, copy_of="dev")
    assert len(list(context.folder.parent.rglob("Pulumi.*"))) == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stack": "dve"}, "did you mean dev"),
        ({"stack": "../project/Pulumi.dev"}, "a stack's name has at most"),
        ({"copy_of": "dev"}, "only a new file is copied"),
        ({"stack": "x", "new": True, "copy_of": "../dev"}, "a stack's name has at most"),
        ({"stack": "x", "new": True, "copy_of": "prod"}, "there is no Pulumi.prod.yaml"),
    ],
)
def test_edit_of_a_file_that_is_not_there_is_refused(context: Context, more: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(context, "rollout=gated", **more)


def write_bytes(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def link(file: Path) -> None:
    file.rename(file.parent.parent / "outside.yaml")
    file.symlink_to("../outside.yaml")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda file: write_bytes(file, b"config:\n  bezel:model: \xff\n"), "not UTF-8"),
        (lambda file: write_bytes(file, b"config: [\n"), "not valid YAML"),
        (
            lambda file: write_bytes(file, b"config:\n  bezel:model: !!python/name:os.system x\n"),
            "no setting has the type",
        ),
        (lambda file: write_bytes(file, b"config:\n  bezel:model: a\n  bezel:model: b\n"), "listed twice"),
        (lambda file: write_bytes(file, b"config:\n  bezel:model: &m m\n  bezel:region: *m\n"), "by hand"),
        (lambda file: write_bytes(file, b"config:\n  bezel:model: {secure: v1:x}\n"), "encrypted by the stack's key"),
        (lambda file: write_bytes(file, b"#" * (1 << 20) + b"\nconfig: {}\n"), "1048576 is not edited"),
        (lambda file: file.chmod(0o444), "read-only"),
        (link, "outside of the project's folder"),
    ],
    ids=["encoding", "yaml", "tag", "twice", "anchor", "encrypted", "huge", "read-only", "link"],
)
def test_file_that_cannot_be_edited_stays_as_it_is(
    context: Context, spoil: Callable[[Path], Any], message: str
) -> None:
    file = context.folder / FILE
    spoil(file)
    before = file.read_bytes()
    with pytest.raises(UserError, match=message) as refused:
        plan_of(context, "model=gemma-4-12b-it-qat-w4a16")
    assert "Repair: " in str(refused.value)
    assert file.read_bytes() == before


@pytest.mark.parametrize(("start", "end"), [("", "\r\n"), ("\ufeff", "\n"), ("\ufeff", "\r\n")])
def test_line_ends_and_byte_order_mark_stay(context: Context, start: str, end: str) -> None:
    content = start + text(context).replace("\n", end)
    (context.folder / FILE).write_bytes(content.encode())
    apply_edit(context, plan_of(context, "rollout=gated"))
    after = text(context)
    assert after.startswith(start)
    assert after.count(end) == after.count("\n")
    assert lines_but(after, "rollout") == lines_but(content, "rollout")


@pytest.mark.parametrize("changed", [FILE, "catalog.toml", "Pulumi.yaml", "gone"])
def test_plan_is_refused_after_file_catalogue_or_answer_changed(context: Context, changed: str) -> None:
    plan = plan_of(context, "rollout=gated")
    file = context.folder / changed
    if changed == "gone":
        (context.folder / FILE).unlink()
    elif changed == "Pulumi.yaml":
        file.write_text(file.read_text().replace('default: "dev"', 'default: "prod"'))
    else:
        file.write_text((file.read_text() if file.exists() else "") + "\n# later\n")
    before = sorted((each.name, each.read_bytes()) for each in context.folder.iterdir())
    with pytest.raises(RefusedError, match=r"this has changed: .*nothing was changed"):
        apply_edit(context, plan)
    assert sorted((each.name, each.read_bytes()) for each in context.folder.iterdir()) == before


def test_plan_of_another_project_or_stack_writes_nothing(context: Context, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for file in context.folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    plan = plan_of(context, "rollout=gated")
    with pytest.raises(RefusedError, match="the project's folder"):
        apply_edit(replace(context, folder=other), plan)
    waiting = Confirmations()
    token = waiting.offer(plan, "agent").token
    with pytest.raises(ConfirmationError, match="the token confirms stack_edit dev"):
        waiting.take(token, "agent", operation="stack_edit", target="prod")
    assert "rollout" not in text(context)


def test_of_two_edits_at_once_one_is_written(context: Context) -> None:
    plans = [plan_of(context, f"labels.team=t{number}") for number in range(8)]

    def is_written(plan: Plan) -> bool:
        try:
            return apply_edit(Context(context.folder, {}), plan).verdict == "done"
        except RefusedError:
            return False

    with ThreadPoolExecutor(8) as agents:
        assert sum(agents.map(is_written, plans)) == 1
    assert config(context)["bezel:labels"]["team"].startswith("t")


@pytest.mark.parametrize("before", ["config: {a: 1}\n", None])
def test_a_writer_loses_to_an_edit_since_it_read_the_file(context: Context, before: str | None) -> None:
    """As `bezel scale`, which previews between the two."""
    file = context.folder / FILE
    present = text(context)
    with pytest.raises(RefusedError, match="the file has changed since it was planned"):
        write_file(file, before, "config: {a: 2}\n")
    assert text(context) == present
    write_file(file, present, "config: {a: 2}\n")
    assert text(context) == "config: {a: 2}\n"


def test_program_that_declares_its_services_has_no_settings_to_edit(context: Context) -> None:
    (context.folder / "__main__.py").write_text("import bezel_services\n")
    (context.folder / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (context.folder / FILE).write_text("config: {}\n")
    for more in ({}, {"stack": "x", "new": True}):
        with pytest.raises(UserError, match="declares its services itself"):
            plan_of(context, "rollout=gated", **more)


def test_folder_that_cannot_be_written_leaves_the_file(context: Context) -> None:
    plan = plan_of(context, "rollout=gated")
    before = text(context)
    (context.folder / f".{FILE}.{os.getpid()}").mkdir()  # where the new content would be written first
    with pytest.raises(UserError, match="it is unchanged"):
        apply_edit(context, plan)
    assert text(context) == before


def test_secret_of_a_setting_is_not_shown(context: Context) -> None:
    token = "hf_" + "a" * 34
    shown = plan_of(context, f"variables.HF_TOKEN={token}").text()
    assert token not in shown
    assert "refused: " in shown


BEYOND = {
    "address",
    "service_name",
    "image",
    "weights",
    "adapters",
    "vpc",
    "secrets",
    "network",
    "smoke",
    "observability",
}


def test_every_setting_says_whether_a_server_of_some_stacks_changes_it(context: Context) -> None:
    assert set(Settings.model_fields) == INSIDE | BEYOND
    check_scope(context, EditArguments(stack="dev", set=("scaling.max_instances=2",), unset=("rollout",)))
    for each in sorted(BEYOND):
        with pytest.raises(BeyondStackError, match="serves that stack only"):
            check_scope(context, EditArguments(stack="dev", set=(f"{each}.x=their-bucket",)))
        with pytest.raises(BeyondStackError, match="serves that stack only"):
            check_scope(context, EditArguments(stack="dev", unset=(each,)))
