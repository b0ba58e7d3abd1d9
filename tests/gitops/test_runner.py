"""The tests' own forge and runner treat a workflow as a forge does, so that tests of the real files say something."""

import os

import pytest

from localcloud_support.issuer import Issuer
from tests.support.gitops.machine import runner_of
from tests.support.gitops.working_copy import WorkingCopy

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.gitops]

WORKFLOW = """\
name: trial
on: {push: {branches: [main]}}
permissions: {}
jobs:
  list:
    runs-on: ubuntu-24.04
    outputs: {matrix: "${{ steps.list.outputs.matrix }}"}
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
      - id: list
        run: cat matrix.txt >> "$GITHUB_OUTPUT"
  each:
    needs: list
    if: needs.list.outputs.matrix != '{"stack":[]}'
    runs-on: ubuntu-24.04
    permissions: {id-token: write}
    strategy: {fail-fast: false, matrix: "${{ fromJSON(needs.list.outputs.matrix) }}"}
    steps:
      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
      - env: {STACK: "${{ matrix.stack }}", COLOUR: "${{ vars.COLOUR }}"}
        run: test -e "$STACK" && echo "$STACK is $COLOUR at $GITHUB_SHA $ACTIONS_ID_TOKEN_REQUEST_TOKEN"
  left-out:
    needs: list
    if: vars.NOT_SET != ''
    runs-on: ubuntu-24.04
    steps:
      - run: echo never
  verdict:
    needs: [list, each, left-out]
    if: always()
    runs-on: ubuntu-24.04
    steps:
      - env: {ENDED: "${{ toJSON(needs) }}", TOKEN: "${{ github.token }}"}
        run: echo "$ENDED" && test -z "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" && test -n "$TOKEN"
"""


@pytest.fixture(scope="module")
def copy(forge, act, tmp_path_factory):
    copy = WorkingCopy.of(tmp_path_factory.mktemp("copy") / "tree", forge.address(), [])
    forge.repository("POST", "/actions/variables/COLOUR", {"value": "a 'green' one"})
    folder = tmp_path_factory.mktemp("runner") / "work"
    with Issuer() as issuer, runner_of(forge, folder, act, os.environ, issuer=issuer.environment()):
        yield copy


def test_needs_matrices_variables_conditions_and_identity_reach_the_jobs(forge, copy):
    copy.write(".github/workflows/trial.yml", WORKFLOW)
    copy.write("matrix.txt", 'matrix={"stack":["one","two"]}\n')
    copy.write("one", "")
    copy.write("two", "")
    commit = copy.commit("Add two")
    copy.push("main")
    run = forge.wait_for_end("trial.yml", 60, head_sha=commit)
    jobs, log = forge.jobs(run["id"]), forge.log_of(run["id"])
    assert {name: job["conclusion"] for name, job in jobs.items()} == {
        "list": "success", "each": "success", "left-out": "skipped", "verdict": "success",
    }, log  # fmt: skip
    assert f"one is a 'green' one at {commit} request-token-of-job-0" in log
    assert f"two is a 'green' one at {commit} request-token-of-job-0" in log
    assert run["conclusion"] == "success"


def test_one_failed_entry_of_a_matrix_is_a_failed_job_and_a_red_commit(forge, copy):
    copy.write("matrix.txt", 'matrix={"stack":["one","missing"]}\n')
    commit = copy.commit("Name a missing one")
    copy.push("main")
    run = forge.wait_for_end("trial.yml", 60, head_sha=commit)
    conclusions = {name: job["conclusion"] for name, job in forge.jobs(run["id"]).items()}
    assert conclusions["each"] == "failure", forge.log_of(run["id"])
    assert (conclusions["verdict"], run["conclusion"]) == ("success", "failure")
    statuses = forge.repository("GET", f"/commits/{commit}/status")["statuses"]
    states = {status["context"]: status["status"] for status in statuses}
    assert states["trial / each (push)"] == "failure"


def test_an_empty_matrix_is_a_skipped_job(forge, copy):
    copy.write("matrix.txt", 'matrix={"stack":[]}\n')
    commit = copy.commit("Name none")
    copy.push("main")
    run = forge.wait_for_end("trial.yml", 60, head_sha=commit)
    assert forge.jobs(run["id"])["each"]["conclusion"] == "skipped", forge.log_of(run["id"])
    assert run["conclusion"] == "success"
