"""Ways to lift what judges: each is named before the merge, where the base judges, and stops the deploy after it."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bezel.engine.changes.preview import packs_of
from bezel.engine.outcomes import RefusedError
from bezel.engine.project.project import Project
from bezel.gitops.judge import record
from bezel.gitops.judge.base import BaseJudge, base_judge
from bezel.gitops.judge.gate import Judgement, judge_deploy, record_allowed
from bezel.gitops.judge.record import is_first_deploy
from bezel_base.errors import UserError
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.gitops.working_copy import WorkingCopy

pytestmark = pytest.mark.slow
NOT_FILES = ("is a link", "is a submodule")
LIMITS = "policies/hardware_cost.dev.json"
PRICES = "packages/catalog/bezel_catalog/data/prices.csv"
STACK = "config:\n  bezel:environment: dev\n  bezel:scaling: {max_instances: 1}\n  bezel:cost: {max_hourly_usd: 1}\n"
FILES = {
    LIMITS: '{"monthly-ceiling": {"limits": {"dev": 1600}}}',
    "policies/hardware_cost/PulumiPolicy.yaml": "runtime: {name: python, options: {virtualenv: ../../.venv}}\n",
    "policies/bezel_policies/hardware_cost/rules.py": "LIMIT = 1\n",
    "policies/security/PulumiPolicy.yaml": "runtime: python\n",
    PRICES: "service,item,region,model,unit,usd_per_unit\ncloud-run,gpu,us-east4,m,gpu-second,0.1\n",
    "bezel/__init__.py": "",
    "bezel/engine/project/git.py": "GIT = 1\n",
    "bootstrap/bezel_bootstrap/access.py": "ACCESS = 1\n",
    "uv.lock": '[[package]]\nname = "httpx"\nversion = "0.28"\n',
    "pyproject.toml": '[project]\nname = "x"\n',
    "Makefile": "setup:\n",
    ".ci/run": "make test\n",
    "tools/toolchain/__main__.py": "",
    ".github/workflows/preview.yml": "name: preview\n",
    "Pulumi.yaml": "name: bezel\nruntime: python\n",
    "Pulumi.dev.yaml": STACK,
    "Pulumi.other.yaml": STACK,
    "__main__.py": "",
    "components/bezel_components/service.py": "",
    "docs/gitops.md": "# Deploy\n",
}


def edits(path: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return edit


def writes(path: str, text: str = "x\n") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    return write


def links(path: str, target: str) -> Callable[[Path], None]:
    def link(folder: Path) -> None:
        content = (folder / path).read_text()
        (folder / path).unlink()
        (folder / "docs" / "copy").write_text(content.replace("1600", "16000"))
        (folder / path).symlink_to(target)

    return link


def embeds(path: str) -> Callable[[Path], None]:
    def embed(folder: Path) -> None:
        (folder / path).mkdir()
        other = WorkingCopy(folder / path, "")
        other.git("init", "--quiet")
        other.write("rules.py", "")
        other.commit("Elsewhere")

    return embed


def moves_pack(folder: Path) -> None:
    rules = folder / "policies" / "bezel_policies" / "hardware_cost"
    rules.rename(rules.with_name("hardware_cost_old"))


WAYS = {
    "limit": (edits(LIMITS, "1600", "16000"), f"{LIMITS} monthly-ceiling.limits.dev 1600 → 16000"),
    "exemption": (edits(LIMITS, "}}}", '}, "exempt": ["t"]}}'), 'monthly-ceiling.exempt (none) → ["t"]'),
    "pack": (
        edits("policies/bezel_policies/hardware_cost/rules.py", "1", "2"),
        "policies/bezel_policies/hardware_cost/rules.py is changed",
    ),
    "pack deleted": (
        lambda folder: shutil.rmtree(folder / "policies/security"),
        "policies/security/PulumiPolicy.yaml is deleted",
    ),
    "pack renamed": (moves_pack, "policies/bezel_policies/hardware_cost/rules.py is deleted"),
    "pack's interpreter": (
        edits("policies/hardware_cost/PulumiPolicy.yaml", "../../.venv", "../../evil"),
        "runtime.options.virtualenv ../../.venv → ../../evil",
    ),
    "price row": (edits(PRICES, "0.1", "0.0000001"), "gpu-second usd_per_unit 0.1 → 0.0000001"),
    "price row deleted": (edits(PRICES, "cloud-run,gpu,us-east4,m,gpu-second,0.1\n", ""), "usd_per_unit 0.1 → (none)"),
    "lock": (edits("uv.lock", "0.28", "0.29"), "uv.lock package.httpx.version 0.28 → 0.29"),
    "dependencies": (edits("pyproject.toml", '"x"\n', '"x"\ndependencies = ["evil"]\n'), "pyproject.toml project.dep"),
    "judge": (edits("bezel/engine/project/git.py", "1", "2"), "bezel/engine/project/git.py is changed"),
    "foundation's rights": (
        edits("bootstrap/bezel_bootstrap/access.py", "1", "2"),
        "bootstrap/bezel_bootstrap/access.py is changed",
    ),
    "workflow": (edits(".github/workflows/preview.yml", "preview", "nothing"), "preview.yml name preview → nothing"),
    "new workflow": (writes(".github/workflows/preview.yaml"), ".github/workflows/preview.yaml is new"),
    "composite action": (writes(".github/actions/a/action.yml"), ".github/actions/a/action.yml is new"),
    "recipe": (edits("Makefile", "setup:", "setup: evil"), "Makefile is changed"),
    "check": (edits(".ci/run", "make test", "true"), ".ci/run is changed"),
    "toolchain": (writes("tools/toolchain/__main__.py"), "tools/toolchain/__main__.py is changed"),
    "runtime": (edits("Pulumi.yaml", "runtime: python", "runtime: go"), "Pulumi.yaml runtime python → go"),
    "main": (edits("Pulumi.yaml", "runtime", "main: other\nruntime"), "Pulumi.yaml main (none) → other"),
    "language plugin": (
        edits("Pulumi.yaml", "runtime", "plugins: {languages: [{name: python, path: evil}]}\nruntime"),
        "Pulumi.yaml plugins.languages.python.path (none) → evil",
    ),
    "other project file": (writes("Pulumi.json", '{"name": "bezel"}'), "Pulumi.json is new"),
    "bezel.toml": (writes("bezel.toml", "[stacks]\n"), "bezel.toml is new"),
    "shadowed SDK": (writes("pulumi/policy/__main__.py"), "pulumi/policy/__main__.py is new"),
    "sitecustomize": (writes("sitecustomize.py"), "sitecustomize.py is new"),
    "conftest in a pack": (writes("policies/conftest.py"), "policies/conftest.py is new"),
    "path file": (writes("bezel.pth", "/evil\n"), "bezel.pth is new"),
    "interpreter": (writes(".python-version", "3.13\n"), ".python-version is new"),
    "uv's settings": (writes("uv.toml", 'index-url = "http://127.0.0.1:9"\n'), "uv.toml is new"),
    "attributes": (writes(".gitattributes", "*.json text eol=crlf\n"), ".gitattributes is new"),
    "mode": (lambda folder: (folder / ".ci/run").chmod(0o755), ".ci/run mode 100644 → 100755"),
    "link": (links(LIMITS, "../docs/copy"), f"{LIMITS} is a link"),
    "linked workflow": (links(".github/workflows/preview.yml", "../../docs/copy"), "preview.yml is a link"),
    "submodule": (embeds("policies/elsewhere"), "policies/elsewhere is a submodule"),
    "stack's limit": (edits("Pulumi.dev.yaml", "max_hourly_usd: 1", "max_hourly_usd: 9"), "cost.max_hourly_usd 1 → 9"),
    "stack's price": (
        edits("Pulumi.dev.yaml", "max_hourly_usd: 1", "max_hourly_usd: 1, prices: [{item: gpu, usd_per_unit: 0.01}]"),
        "Pulumi.dev.yaml cost.prices.0.usd_per_unit (none) → 0.01",
    ),
    "stack's limit by its other name": (
        edits("Pulumi.dev.yaml", "bezel:cost: {max_hourly_usd: 1}", "bezel:config:cost: {max_hourly_usd: 9}"),
        "cost.max_hourly_usd 1 → 9",
    ),
    "environment by its other name": (
        edits("Pulumi.dev.yaml", "bezel:environment: dev", "environment: prod"),
        "environment dev → prod",
    ),
    "stack's limit twice": (
        edits("Pulumi.dev.yaml", "  bezel:cost", "  cost: {max_hourly_usd: 9}\n  bezel:cost"),
        "Pulumi.dev.yaml (cannot be read) (none) → ",
    ),
    "environment": (edits("Pulumi.dev.yaml", "environment: dev", "environment: prod"), "environment dev → prod"),
    "stack file linked": (links("Pulumi.dev.yaml", "docs/copy"), "Pulumi.dev.yaml is a link"),
}
HARMLESS = {
    "stack file": edits("Pulumi.dev.yaml", "max_instances: 1", "max_instances: 2"),
    "another spelling": edits("Pulumi.dev.yaml", "bezel:cost", "cost"),
    "new stack": writes("Pulumi.new.yaml", STACK.replace("dev", "prod")),
    "another stack's limit": edits("Pulumi.other.yaml", "max_hourly_usd: 1", "max_hourly_usd: 9"),
    "document": edits("docs/gitops.md", "Deploy", "Deploy more"),
    "program": edits("__main__.py", "", "import os\n"),
    "component": writes("components/bezel_components/another.py"),
    "test": writes("tests/test_x.py"),
    "nothing": lambda _: None,
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A repository with one commit on `main`."""
    copy = WorkingCopy(tmp_path_factory.mktemp("template"), "")
    for name, text in FILES.items():
        copy.write(name, text)
    copy.git("init", "--quiet", "--template=")  # no samples of hooks, which each copy would have
    copy.commit("Begin")
    return copy.folder


@pytest.fixture
def copy(template, tmp_path):
    shutil.copytree(template, tmp_path / "clone", symlinks=True)
    return WorkingCopy(tmp_path / "clone", "")


@pytest.fixture
def bucket():
    with fake_bucket() as served:
        yield served.client()


def branch(copy: WorkingCopy, edit: Callable[[Path], None]) -> Project:
    copy.git("checkout", "--quiet", "-b", "change")
    edit(copy.folder)
    copy.commit("Change")
    return Project(copy.folder)


def judge_and_record(bucket, project: Project, copy: WorkingCopy, approved: str = "", stack: str = "dev") -> Judgement:
    """The comparison of a deploy of HEAD, which is recorded where it is allowed."""
    judged = judge_deploy(bucket, project, stack, copy.git("rev-parse", "HEAD"), approved)
    if judged.allowed:
        record_allowed(bucket, project.name, stack, judged)
    return judged


def lines(judge: BaseJudge | Judgement) -> list[str]:
    part = judge.as_json()
    return [] if part is None else [str(line) for line in part["changes"]]  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_lift_the_judge_is_named_and_the_base_judges(way, copy):
    edit, line = WAYS[way]
    judge = base_judge(branch(copy, edit), "dev", "main", {})
    assert any(line in text for text in lines(judge)), lines(judge)
    if any(text.partition(" ")[2].startswith(NOT_FILES) for text in lines(judge)):
        with pytest.raises(RefusedError):
            judge.check("dev")
    if line.partition(" ")[0] == "environment" or way.startswith("stack"):
        return  # the packs are the same
    with judge.folder() as place:
        assert place != copy.folder
        for name in (LIMITS, "policies/security/PulumiPolicy.yaml", "bezel/engine/project/git.py", PRICES):
            assert (place / name).read_text() == FILES[name]
        assert not (place / "pulumi").exists()


# The test above names each way by the same comparison; the others try what a deploy does with its outcome.
@pytest.mark.wide_except("limit", "pack renamed", "price row", "lock", "mode", "link", "submodule", "stack's limit",
                         "stack's limit twice", "environment", "stack file linked")  # fmt: skip
@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_lift_the_judge_stops_the_deploy_until_it_is_approved(way, copy, bucket):
    edit, line = WAYS[way]
    project = Project(copy.folder)
    first = judge_and_record(bucket, project, copy)
    assert (first.allowed, "first deploy" in first.statement) == (True, True)
    edit(copy.folder)
    copy.commit("Merge")
    stopped = judge_and_record(bucket, project, copy)
    assert not stopped.allowed
    is_link = line.endswith(NOT_FILES)
    assert any(line in text for text in lines(stopped)) or (is_link and not stopped.digest), lines(stopped)
    assert not judge_and_record(bucket, project, copy, f"sha256:{'0' * 64}").allowed
    approved = judge_and_record(bucket, project, copy, stopped.digest or "sha256:any")
    assert approved.allowed is not is_link
    # What was approved is what judges from then on.
    again = judge_and_record(bucket, project, copy)
    assert (again.allowed, again.is_worth_saying) == (not is_link, is_link)


@pytest.mark.parametrize("way", HARMLESS)
def test_a_change_of_what_is_judged_is_neither_named_nor_stopped(way, copy, bucket):
    project = Project(copy.folder)
    assert judge_and_record(bucket, project, copy).allowed
    judge = base_judge(branch(copy, HARMLESS[way]), "dev", "main", {})
    judge.check("dev")
    with judge.folder() as place:
        assert (judge.as_json(), place) == (None, copy.folder)
    merged = judge_and_record(bucket, project, copy)
    assert (merged.allowed, merged.is_worth_saying) == (True, False)
    if way == "new stack":
        assert judge_and_record(bucket, project, copy, stack="new").statement.startswith(
            "the same as for the last allowed deploy"
        )


@pytest.mark.parametrize("kind", ["new", "used", "absent", "local"])
def test_a_preview_says_whether_the_deploy_asks_for_an_approval(kind, copy):
    """The sentence of the preview and the decision of the deploy after it are the same."""
    project = Project(copy.folder)
    with fake_bucket() as served:
        if kind == "used":
            judge_and_record(served.client(), project, copy)
        backend = {"local": "file:///states", "absent": "gs://absent"}.get(kind, "gs://states")
        is_first = is_first_deploy(backend, {"STORAGE_EMULATOR_HOST": served.server.url}, project.name, "dev")
        judge = base_judge(branch(copy, WAYS["limit"][0]), "dev", "main", {})
        part = replace(judge, is_first_deploy=is_first).as_json()
        assert part
        assert part["first_deploy"] is is_first is (kind == "new")
        assert ("asks for no approval" in str(part["said"]), "until it is approved" in str(part["said"])) == (
            kind == "new",
            kind != "new",
        )
        if kind in ("new", "used"):
            assert judge_and_record(served.client(), project, copy).allowed is is_first


def test_a_change_is_not_judged_by_its_own_code(copy):
    judge = base_judge(branch(copy, WAYS["judge"][0]), "dev", "main", {})
    with pytest.raises(RefusedError) as caught:
        judge.check("dev")
    assert "bezel/engine/project/git.py" in str(caught.value)
    assert "git worktree add" in str(caught.value)


@pytest.mark.parametrize("way", ["language plugin", "other project file"])
def test_a_change_does_not_choose_who_starts_the_packs(way, copy):
    project = branch(copy, WAYS[way][0])
    judge = replace(base_judge(project, "dev", "main", {}), code=copy.folder)
    with pytest.raises(RefusedError, match="in place of its packs"):
        judge.check("dev")


@pytest.mark.parametrize("added", ["config: {model: {default: x}}\n", "# a comment\n"])
def test_a_change_of_the_programs_defaults_may_be_judged(copy, added):
    project = branch(copy, edits("Pulumi.yaml", "runtime", f"{added}runtime"))
    base_judge(project, "dev", "main", {}).check("dev")


def test_a_stack_without_a_record_is_compared_with_the_last_commit(copy, bucket):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    edits("Pulumi.other.yaml", "environment: dev", "environment: prod")(copy.folder)
    copy.commit("Move")
    assert lines(judge_and_record(bucket, project, copy, stack="other")) == ["Pulumi.other.yaml environment dev → prod"]


RAISED = ["Pulumi.dev.yaml environment dev → prod", "Pulumi.dev.yaml cost.max_hourly_usd 1 → 9999"]


def raises_dev(folder: Path) -> None:
    edits("Pulumi.dev.yaml", "environment: dev", "environment: prod")(folder)
    edits("Pulumi.dev.yaml", "max_hourly_usd: 1", "max_hourly_usd: 9999")(folder)


def without_stacks(bucket) -> None:
    """Rewrite the records as earlier versions of Bezel have written them."""
    for entry in bucket.list(f"{record.FOLDER}/"):
        parts = json.loads(bucket.read(entry.name)[0])
        del parts["stacks"]
        bucket.replace(entry.name, json.dumps(parts).encode(), entry.generation)


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_deploy_of_one_stack_does_not_allow_anothers_keys(copy, bucket, is_earlier):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy, stack="other")
    if is_earlier:
        without_stacks(bucket)
    raises_dev(copy.folder)
    for text in ("one", "two"):  # the keys are carried through every record between
        edits("Makefile", "setup:", f"setup: {text}")(copy.folder)
        copy.commit(text)
        stopped = judge_and_record(bucket, project, copy, stack="other")
        assert lines(stopped) == ["Makefile is changed"]
        assert judge_and_record(bucket, project, copy, stopped.digest, stack="other").allowed
    stopped = judge_and_record(bucket, project, copy)
    assert (stopped.allowed, lines(stopped)) == (False, RAISED)
    assert judge_and_record(bucket, project, copy, stopped.digest).allowed
    assert not judge_and_record(bucket, project, copy).is_worth_saying
    assert not judge_and_record(bucket, project, copy, stack="other").is_worth_saying


def test_a_stack_whose_file_was_gone_for_a_while_is_not_new(copy, bucket):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy, stack="other")
    text = (copy.folder / "Pulumi.dev.yaml").read_text()
    (copy.folder / "Pulumi.dev.yaml").unlink()
    edits("Makefile", "setup:", "setup: more")(copy.folder)
    copy.commit("Remove")
    judge_and_record(
        bucket, project, copy, judge_and_record(bucket, project, copy, stack="other").digest, stack="other"
    )
    writes("Pulumi.dev.yaml", text)(copy.folder)
    raises_dev(copy.folder)
    copy.commit("Return")
    assert lines(judge_and_record(bucket, project, copy)) == RAISED


def test_a_new_stack_between_two_deploys_brings_no_price(copy, bucket):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    prices = "max_hourly_usd: 5, prices: [{item: gpu, usd_per_unit: 0.01}]"
    writes("Pulumi.new.yaml", STACK.replace("max_hourly_usd: 1", prices))(copy.folder)
    writes("Pulumi.plain.yaml", STACK.replace("dev", "prod"))(copy.folder)
    edits("Makefile", "setup:", "setup: more")(copy.folder)
    copy.commit("Add")
    assert judge_and_record(bucket, project, copy, judge_and_record(bucket, project, copy).digest).allowed
    assert len(lines(judge_and_record(bucket, project, copy, stack="new"))) == 2
    assert not judge_and_record(bucket, project, copy, stack="plain").is_worth_saying


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_clone_without_history_lets_no_key_pass(copy, bucket, tmp_path, is_earlier):
    judge_and_record(bucket, Project(copy.folder), copy, stack="other")
    if is_earlier:
        without_stacks(bucket)
    raises_dev(copy.folder)
    copy.commit("Raise")
    copy.git("clone", "--quiet", "--depth", "1", f"file://{copy.folder}", str(tmp_path / "shallow"))
    shallow = WorkingCopy(tmp_path / "shallow", "")
    stopped = judge_and_record(bucket, Project(shallow.folder), shallow)
    unknown = [line.replace(" dev →", " (none) →").replace(" 1 →", " (none) →") for line in RAISED]
    assert (stopped.allowed, lines(stopped)) == (False, unknown if is_earlier else RAISED)


def test_the_bases_code_may_judge(copy, tmp_path):
    project = branch(copy, WAYS["judge"][0])
    copy.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "judge"), "main")
    judge = replace(base_judge(project, "dev", "main", {}), code=tmp_path / "judge")
    judge.check("dev")
    (tmp_path / "judge/bezel/engine/project/git.py").write_text("GIT = 2\n")
    with pytest.raises(RefusedError):
        judge.check("dev")


def test_an_old_branch_is_judged_by_the_tip_of_its_base(copy):
    project = branch(copy, HARMLESS["stack file"])
    copy.git("checkout", "--quiet", "main")
    edits(LIMITS, "1600", "800")(copy.folder)
    copy.commit("Lower the limit")
    copy.git("checkout", "--quiet", "change")
    judge = base_judge(project, "dev", "main", {})
    assert judge.commit == copy.git("rev-parse", "main")
    assert judge.changes == []
    assert '"dev": 1600' in (copy.folder / LIMITS).read_text()
    with judge.folder() as place:
        assert '"dev": 800' in (place / LIMITS).read_text()


def test_uncommitted_limits_judge_nothing(copy):
    edits(LIMITS, "1600", "16000")(copy.folder)
    writes("sitecustomize.py")(copy.folder)
    judge = base_judge(Project(copy.folder), "dev", "main", {})
    assert {*judge.uncommitted} == {LIMITS, "sitecustomize.py"}
    with pytest.raises(RefusedError, match="sitecustomize"):
        replace(judge, code=copy.folder).check("dev")
    with judge.folder() as place:
        assert (place / LIMITS).read_text() == FILES[LIMITS]


def test_a_report_beside_the_project_is_no_part_of_the_judge(copy):
    writes("preview.json")(copy.folder)
    writes("notes.txt")(copy.folder)
    judge = replace(base_judge(Project(copy.folder), "dev", "main", {}), code=copy.folder)
    judge.check("dev")
    assert judge.as_json() is None


@pytest.mark.parametrize(
    ("environ", "base"),
    [({"GITHUB_BASE_REF": "gone"}, None), ({"GITHUB_BASE_REF": "main"}, "main"), ({}, "main")],
)
def test_a_run_of_a_pull_request_needs_its_base_and_a_hand_run_takes_main(copy, environ, base):
    project = branch(copy, HARMLESS["stack file"])
    if base is None:
        with pytest.raises(UserError, match="base of the pull request"):
            base_judge(project, "dev", "", environ)
    else:
        assert base_judge(project, "dev", "", environ).commit == copy.git("rev-parse", base)


def test_a_tag_with_the_name_of_the_base_is_not_the_base(copy):
    main = copy.git("rev-parse", "main")
    copy.git("update-ref", "refs/remotes/origin/main", main)
    project = branch(copy, WAYS["limit"][0])
    copy.git("tag", "origin/main")
    copy.git("tag", "main")
    assert base_judge(project, "dev", "", {"GITHUB_BASE_REF": "main"}).commit == main


def test_a_replaced_object_hides_no_change(copy):
    project = branch(copy, WAYS["limit"][0])
    copy.git("replace", f"change:{LIMITS}", f"main:{LIMITS}")
    assert WAYS["limit"][1] in lines(base_judge(project, "dev", "main", {}))


def test_a_pack_that_is_named_in_the_checkout_is_taken_from_the_base(copy, tmp_path):
    project = branch(copy, WAYS["pack"][0])
    with base_judge(project, "dev", "main", {}).folder() as place:
        own_pack, other = copy.folder / "policies" / "hardware_cost", tmp_path / "elsewhere"
        assert packs_of(project, [own_pack, other], place) == [place / "policies" / "hardware_cost", other]
        assert {pack.parent for pack in packs_of(project, [], place)} == {place / "policies"}
    assert packs_of(project, [own_pack]) == [own_pack]


@pytest.fixture
def guest(copy):
    """A repository that does not hold Bezel's code, with an environment that git does not know."""
    copy.git("rm", "--quiet", "-r", "bezel")
    copy.commit("Leave the code out")
    writes(".venv/lib/installed.py")(copy.folder)
    return copy


def interpreter(place: Path) -> str:
    return (place / ".venv/bin/python").read_text()


@pytest.mark.parametrize("path", [".venv/bin/python", ".venv/lib/python3/site-packages/evil.pth", ".venv/pyvenv.cfg"])
def test_a_committed_environment_does_not_run_the_packs(guest, monkeypatch, path):
    project = guest_branch(guest, writes(path))
    judge = base_judge(project, "dev", "main", {})
    assert any(f"{path} is new" in line for line in lines(judge))
    judge.check("dev")
    with judge.folder() as place:
        assert str(guest.folder / ".venv") not in interpreter(place)
        assert f"{sys.prefix}/bin/python" in interpreter(place)
    monkeypatch.setattr(sys, "prefix", str(guest.folder / ".venv"))
    with pytest.raises(RefusedError, match=path):
        judge.check("dev")


def test_an_installed_environment_runs_the_bases_packs(guest, monkeypatch):
    project = guest_branch(guest, WAYS["limit"][0])
    judge = base_judge(project, "dev", "main", {})
    assert judge.uncommitted == ()
    with judge.folder() as place:
        assert str(guest.folder / ".venv/bin/python") in interpreter(place)
    monkeypatch.setattr(sys, "prefix", str(guest.folder / ".venv"))
    judge.check("dev")


def test_another_environment_in_the_project_is_its_code_too(guest, monkeypatch):
    judge = base_judge(guest_branch(guest, writes("env/lib/evil.py")), "dev", "main", {})
    judge.check("dev")
    monkeypatch.setattr(sys, "prefix", str(guest.folder / "env"))
    with pytest.raises(RefusedError, match=r"env/lib/evil\.py"):
        judge.check("dev")


def guest_branch(guest: WorkingCopy, edit: Callable[[Path], None]) -> Project:
    """A branch whose commit leaves the installed environment out."""
    guest.git("checkout", "--quiet", "-b", "change")
    before = {file for file in guest.folder.rglob("*") if file.is_file()}
    edit(guest.folder)
    made = {file for file in guest.folder.rglob("*") if file.is_file() and ".git" not in file.parts} - before
    guest.git("add", "--update")
    for file in made:
        guest.git("add", "--force", str(file))
    guest.git("commit", "--quiet", "--message", "Change")
    return Project(guest.folder)


def test_a_checkout_without_any_base_says_that_it_judges_itself(copy):
    copy.git("branch", "--move", "main", "trunk")
    part = base_judge(Project(copy.folder), "dev", "", {}).as_json()
    assert part is not None
    assert "this checkout judges itself" in str(part["said"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"version": 1',
        b'{"version": 2, "commit": "a", "files": {}, "keys": {}}',
        b'{"version": 1, "commit": "a", "files": {}, "keys": {}, "stacks": {"dev": 1}}',
    ],
)
def test_a_record_that_cannot_be_read_allows_nothing(copy, bucket, content):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    (entry,) = bucket.list(f"{record.FOLDER}/")
    bucket.replace(entry.name, content, entry.generation)
    stopped = judge_and_record(bucket, project, copy)
    assert (stopped.allowed, "damaged, or of another version" in stopped.statement) == (False, True)
    assert judge_and_record(bucket, project, copy, stopped.digest).allowed
    assert judge_and_record(bucket, project, copy).statement.startswith("the same as")


def test_a_missing_record_is_no_first_deploy_where_something_was_deployed(copy, bucket):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    edits("Pulumi.yaml", "name: bezel", "name: other")(copy.folder)
    copy.commit("Rename")
    renamed = judge_and_record(bucket, Project(copy.folder), copy)
    assert (renamed.allowed, "no record of what judged them" in renamed.statement) == (False, True)
    (entry,) = bucket.list(f"{record.FOLDER}/")
    bucket.delete(entry.name, entry.generation)
    bucket.create("deploys/bezel/dev.json", b"{}")
    copy.git("reset", "--quiet", "--hard", "HEAD~1")
    assert not judge_and_record(bucket, project, copy).allowed


def test_stacks_share_the_newest_record_and_an_older_merge_stops(copy, bucket):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    edits(LIMITS, "1600", "1000")(copy.folder)
    copy.commit("Lower")
    stopped = judge_and_record(bucket, project, copy)
    assert judge_and_record(bucket, project, copy, stopped.digest, stack="other").allowed
    assert judge_and_record(bucket, project, copy).allowed
    copy.git("checkout", "--quiet", "HEAD~1")
    assert not judge_and_record(bucket, project, copy).allowed
    assert not judge_and_record(bucket, project, copy, stopped.digest).allowed


def test_a_clone_without_history_names_the_files(copy, bucket, tmp_path):
    project = Project(copy.folder)
    judge_and_record(bucket, project, copy)
    WAYS["limit"][0](copy.folder)
    copy.commit("Raise")
    copy.git("clone", "--quiet", "--depth", "1", f"file://{copy.folder}", str(tmp_path / "shallow"))
    shallow = WorkingCopy(tmp_path / "shallow", "")
    stopped = judge_and_record(bucket, Project(shallow.folder), shallow)
    assert lines(stopped) == [f"{LIMITS} is changed"]
    assert stopped.digest == judge_and_record(bucket, project, copy).digest
