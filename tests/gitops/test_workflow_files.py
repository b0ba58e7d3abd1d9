"""Workflow files hold no logic and no right too many: what they do are commands that a person can run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bezel.gitops.project_setup.forge_settings import OPTIONAL, VARIABLES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(path.name for path in FOLDER.glob("*.yml"))
CHECKOUT = re.compile(r"actions/checkout@[0-9a-f]{40}")
# Languages of tests, for jobs without rights in any cloud; a cache of one job could bring another one's code.
LANGUAGE = re.compile(r"actions/setup-(go|node)@[0-9a-f]{40}")
NO_CACHE = {"go": "cache", "node": "package-manager-cache"}
# A release builds and publishes with what the runner has; everything else is a recipe or a command of the pipeline.
COMMAND = re.compile(
    r"(make (?:-C \.\./judge )?[\w-]+|\.ci/run|\.ci/first-steps|\.ci/python \"\$VERSION\" make [\w-]+"
    r"|git worktree add --detach \.\./judge \"\$(?:BASE|BEFORE)\""
    r"|(?:\.\./judge/)?\.venv/bin/bezel ci [^|&;<>`\n]*|false)"
)
NOTICE = re.compile(r'echo "[^"$`\\]*"')
WITHOUT_LOGIN = {"check.yml", "release.yml"}


def content(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    read: dict[Any, Any] = yaml.safe_load((FOLDER / name).read_text())
    return {("on" if key is True else key): value for key, value in read.items()}


def slips(name: str, workflow: dict[str, Any]) -> Iterator[str]:
    """What in a workflow is against the rules."""
    if workflow.get("permissions") != {}:
        yield "permissions are given to every job"
    events = workflow["on"] if isinstance(workflow["on"], list | dict) else [workflow["on"]]
    if "pull_request_target" in events or "workflow_run" in events:
        yield "a pull request's code could run with the repository's rights"
    for job_name, job in workflow["jobs"].items():
        if not isinstance(job.get("timeout-minutes"), int):
            yield f"{job_name}: no time limit"
        if "uses" in job:
            yield f"{job_name}: a workflow from elsewhere"
        rights = job.get("permissions", {})
        logs_in = any("bezel ci login" in step.get("run", "") for step in job.get("steps", ()))
        if (rights.get("id-token") == "write") != logs_in:
            yield f"{job_name}: an identity without a login, or a login without an identity"
        for step in job.get("steps", ()):
            yield from (f"{job_name}: {slip}" for slip in step_slips(name, step))


def step_slips(name: str, step: dict[str, Any]) -> Iterator[str]:
    language = LANGUAGE.fullmatch(step.get("uses", "")) if name in WITHOUT_LOGIN else None
    if language:
        if step.get("with", {}).get(NO_CACHE[language[1]]) is not False:
            yield f"a cache of {language[1]}"
        return
    if "uses" in step:
        if not CHECKOUT.fullmatch(step["uses"]):
            yield f"an action other than actions/checkout by its SHA: {step['uses']}"
        if step.get("with", {}).get("persist-credentials") is not False:
            yield "the checkout keeps the token"
        return
    command = step.get("run", "")
    if "${{" in command:
        yield f"an expression in a command: {command}"
    if name != "release.yml" and not (COMMAND.fullmatch(command) or NOTICE.fullmatch(command)):
        yield f"logic instead of a command: {command}"


@pytest.mark.parametrize("name", FILES)
def test_a_workflow_holds_commands_and_least_rights(name):
    assert list(slips(name, content(name))) == []


@pytest.mark.parametrize(
    ("place", "change", "slip"),
    [
        ("step", {"run": 'if [ "$A" ]; then make check; fi'}, "logic instead"),
        ("step", {"run": "make check && make test"}, "logic instead"),
        ("step", {"run": ".venv/bin/bezel ci preview ${{ github.head_ref }}"}, "an expression"),
        ("step", {"run": 'echo "$GITHUB_TOKEN"'}, "logic instead"),
        ("step", {"uses": "actions/checkout@v5", "run": ""}, "by its SHA"),
        ("step", {"uses": f"actions/cache@{'0' * 40}", "run": ""}, "other than actions/checkout"),
        ("step", {"uses": f"actions/setup-go@{'0' * 40}", "with": {"cache": False}}, "other than actions/checkout"),
        ("step", {"uses": f"actions/checkout@{'0' * 40}", "run": ""}, "keeps the token"),
        ("job", {"timeout-minutes": None}, "no time limit"),
        ("job", {"permissions": {"id-token": "write"}}, "an identity without"),
        ("step", {"run": ".venv/bin/bezel ci login"}, "login without"),
        ("flow", {"permissions": {"contents": "read"}}, "given to every job"),
        ("flow", {"on": {"pull_request_target": None}}, "repository's rights"),
    ],
)
def test_each_rule_is_noticed(place, change, slip):
    step: dict[str, Any] = {"run": "make check"}
    job: dict[str, Any] = {"timeout-minutes": 5, "steps": [step]}
    flow: dict[str, Any] = {"on": "push", "permissions": {}, "jobs": {"one": job}}
    assert list(slips("some.yml", flow)) == []
    {"step": step, "job": job, "flow": flow}[place].update(change)
    assert any(slip in text for text in slips("some.yml", flow))


def test_jobs_install_the_languages_of_their_tests_first() -> None:
    languages = {
        ".ci/run": {"go", "node"}, '.ci/python "$VERSION" make check': {"go", "node"},
        "make test-long": {"go", "node"}, "make gitops": {"go"},
    }  # fmt: skip
    tried = set()
    for name in sorted(WITHOUT_LOGIN):
        for job in content(name)["jobs"].values():
            installed = set()
            for step in job["steps"]:
                if match := LANGUAGE.fullmatch(step.get("uses", "")):
                    installed.add(match[1])
                if (command := step.get("run")) in languages:
                    assert installed == languages[command], (name, command)
                    tried.add(command)
    assert tried == {*languages}


@pytest.mark.parametrize(
    ("language", "options", "slip"),
    [
        ("go", {"cache": False}, ""),
        ("node", {"package-manager-cache": False}, ""),
        ("go", {}, "a cache of go"),
        ("node", {"cache": False}, "a cache of node"),
    ],
)
def test_a_language_is_installed_without_a_cache(language: str, options: dict[str, object], slip: str) -> None:
    step = {"uses": f"actions/setup-{language}@{'0' * 40}", "with": options}
    assert list(step_slips("check.yml", step)) == ([slip] if slip else [])
    assert list(step_slips("check.yml", {**step, "uses": f"actions/setup-{language}@v7"})) != []


@pytest.mark.slow
def test_a_fork_gets_neither_identity_nor_secret():
    for name in set(FILES) - WITHOUT_LOGIN:
        workflow = content(name)
        if "pull_request" not in workflow["on"]:
            continue
        for job_name, job in workflow["jobs"].items():
            text = yaml.safe_dump(job)
            if "id-token" in text or "secrets." in text or "write" in str(job.get("permissions")):
                condition = "github.event.pull_request.head.repo.full_name == github.repository"
                assert condition in job.get("if", ""), f"{name}: {job_name}"


def test_deploys_of_one_stack_wait_in_turn_and_prod_has_its_environment():
    job = content("deploy.yml")["jobs"]["deploy"]
    group = "deploy-${{ matrix.stack || github.run_id }}"
    assert job["concurrency"] == {"group": group, "cancel-in-progress": False, "queue": "max"}
    assert job["environment"] == "${{ matrix.environment }}"


def test_the_branchs_required_check_waits_for_every_job_of_the_preview():
    jobs = content("preview.yml")["jobs"]
    assert set(jobs["verdict"]["needs"]) == set(jobs) - {"verdict", "not-set-up"}


def test_a_workflow_reads_the_variables_that_a_set_up_prints():
    used = {name for file in FILES for name in re.findall(r"\bvars\.(\w+)", (FOLDER / file).read_text())}
    assert used == {*VARIABLES, OPTIONAL}


JUDGING = re.compile(r"bezel ci (?:changed|preview|comment|login|judge|deploy)\b")


def steps_of(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for job_name, job in content(name)["jobs"].items():
        yield job_name, job.get("steps", [])


@pytest.mark.parametrize("name", ["preview.yml", "deploy.yml"])
def test_the_judge_is_checked_out_beside_the_change_and_judges_it(name):
    for job, steps in steps_of(name):
        commands = [step.get("run", "") for step in steps]
        for command in filter(JUDGING.search, commands):
            assert command.startswith("../judge/.venv/bin/bezel ci"), f"{job}: {command}"
            before = commands[: commands.index(command)]
            assert "make -C ../judge setup" in before, job
            (checkout,) = (step for step in steps if "git worktree" in step.get("run", ""))
            # A branch or a tag may be called `origin/main`, too.
            assert [*checkout["env"].values()] == [
                "refs/remotes/origin/${{ github.base_ref }}"
                if name == "preview.yml"
                else "${{ vars.BEZEL_JUDGE || github.event.before }}"
            ]


def test_nothing_of_a_merge_is_run_before_what_judges_it_is_compared():
    (steps,) = (steps for job, steps in steps_of("deploy.yml") if job == "deploy")
    commands = [step.get("run", "") for step in steps]
    assert commands.index('../judge/.venv/bin/bezel ci judge "$STACK"') < commands.index("make setup")
