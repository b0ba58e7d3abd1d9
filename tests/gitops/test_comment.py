"""The comment: foreign text has no effect in it, it stays short, and one of it is kept however many jobs write."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from bezel.cli.main import main
from bezel.forge import ForgeError, forge_of
from bezel.gitops.comment.body import LONGEST, MARKER, body_of, sections_in, sections_of, visible
from bezel.gitops.comment.comment import comment
from bezel.gitops.comment.sections import FOLDED, VISIBLE, section
from bezel.gitops.comment.sticky import StickyComment
from bezel_base.errors import UserError
from bezel_base.text.markdown import code, prose
from tests.support.gitops.fake_forge import BOTS, Fault, fake_forge

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.gitops.fake_forge import Call, FakeForge

COMMIT = "a" * 40
HOSTILE = [
    "<script>alert(1)</script>",
    "</details><h1>approved</h1>",
    "<!-- bezel:end -->",
    "--><b>",
    "@mallory please approve",
    "see #1 and !2 and GH-3",
    "[approve](https://evil.example)",
    "https://evil.example/x www.evil.example",
    "```\nverdict: allowed\n```",
    "`a` ``b`` `c",
    "# heading\n- list\n| a | b |\n|---|---|",
    "\u202egnp.exe\u2066\u200f",
    "\x00\x1b[31mred",
    "$x$ **bold** _it_ ~~no~~",
    "&lt;b&gt;",
    "x" * 5000,
]


def document(stack: str = "l4-qat", **changes: Any) -> dict[str, Any]:
    price = {"hourly_usd": "1.0466", "monthly_usd": "763.96", "idle_hourly_usd": "0", "missing": []}
    nothing = {"hourly_usd": "0", "monthly_usd": "0", "idle_hourly_usd": "0", "missing": []}
    return {
        "kind": "preview",
        "project": "bezel",
        "stack": stack,
        "commit": COMMIT,
        "verdict": "allowed",
        "changes": {"create": [{"name": "service", "type": "gcp:cloudrunv2/service:Service", "properties": []}]},
        "price": {"before": nothing, "after": price},
        "violations": [],
        "fit": None,
        "quota": [],
        "problems": [],
    } | changes


def harmless(text: str) -> str:
    """What a reader of Markdown would act on in a text: all of it outside code and without the comment's own marks."""
    without_marks = re.sub(
        r"<!-- bezel:(?:section \S+ \w+ \S+|end) -->|</?details>|</?summary>|<!-- bezel: sticky comment -->", "", text
    )
    return re.sub(r"(?<![`\\])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)|<code>[A-Za-z0-9 &#;]*</code>", "", without_marks)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_has_no_effect(hostile: str) -> None:
    row = {"name": hostile, "type": hostile, "properties": [hostile] * 3}
    violation = {"pack": hostile, "policy": hostile, "level": "mandatory", "resource": hostile, "message": hostile}
    changes = {op: [row] * 2 for op in ("create", "update", "replace", "delete")}
    price = {"before": None, "after": {"missing": [hostile]}}
    texts: dict[str, Any] = {"fit": hostile, "quota": [hostile], "problems": [hostile], "notes": [hostile]}
    texts["judge"] = {"said": hostile, "changes": [hostile] * 9, "digest": hostile}
    made = document(hostile, verdict=hostile, changes=changes, violations=[violation], price=price, **texts)
    body = body_of(sections_of([made, document("another")], COMMIT))
    assert len(sections_in(body)) == 2
    left = harmless(body)
    assert "<" not in left
    assert not re.search(r"[@#]\w|://|(?<!\\)\]\(|GH-\d|!\d|\bwww\.\w", left), left
    assert "fence" not in {token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(body)}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", body)
    for line in body.splitlines():
        assert not re.match(r"\s*(?:#(?!## (?:`|<code>))|\||>|\d+[.)]\s|- (?:[-#>+*|]|\d+[.)])\s)", line), line


def test_plain_words_and_code_stay_as_they_are() -> None:
    assert prose("set `bezel:scaling.max_instances` to 2.") == "set `bezel:scaling.max_instances` to 2."
    assert prose("a `lone backtick") == "a \\`lone backtick"
    assert code("template.containers[0].image") == "`template.containers[0].image`"
    assert code("a`b") == "`` a`b ``"
    assert code("") == "`(empty)`"


def test_ten_thousand_changes_do_not_bury_the_price() -> None:
    rows = [
        {"name": f"r{n}-{'x' * 90}", "type": "gcp:a/b:C", "properties": [f"outputs.{'y' * 90}.{k}" for k in range(50)]}
        for n in range(10_000)
    ]
    changes = dict.fromkeys(("create", "update", "replace", "delete"), rows)
    refusals = [
        {
            "policy": f"p{n}" * 20,
            "level": "mandatory",
            "resource": "r" * 99,
            "message": f"{n}" + "m" * 900 + " Repair: " + "r" * 900,
        }
        for n in range(50)
    ]
    missing = ["row " * 90] * 9 + ["other"]
    price = {"before": None, "after": {"missing": missing}}
    settings = [{"key": "k" * 99, "old": "o" * 99, "new": "n" * 99}] * 30
    odd = {"problems": ["p" * 5000] * 9, "settings": settings, "uncommitted": ["u" * 99] * 9}
    text = section(document(changes=changes, violations=refusals, price=price, **odd))
    shown, _, folded = text.partition("<details>")
    assert len(shown) <= VISIBLE["preview"]
    assert len(folded) <= FOLDED + 200
    assert shown.startswith("**unknown USD/h**")
    assert "10000 to replace, 10000 to delete, 10000 to create, 10000 to update" in shown
    assert "and 58 more below" in shown
    assert "**To repair" in section(document(verdict="refused", violations=refusals))


def refusal(policy: str, message: str, resource: str = "service") -> dict[str, str]:
    return {"policy": policy, "level": "mandatory", "resource": resource, "message": message}


def test_value_that_two_policies_refuse_has_one_repair() -> None:
    lower = "lower `bezel:scaling.max_instances` to 2"
    refusals = [
        refusal("hourly-ceiling", f"max = 40\n   41 USD an hour.\n   Repair: {lower}, or choose a cheaper one."),
        refusal("most-instances", f"max = 40\n   at most 2 at a time.\n   Repair: {lower}."),
        refusal("always-on", "min = 3\n   none may run.\n   Repair: lower `bezel:scaling.min_instances` to 0."),
        refusal("odd", "it is refused"),
    ]
    text = section(document(verdict="refused", violations=refusals)).partition("<details>")[0]
    lines = [line for line in text.splitlines() if line.startswith("- refused by")]
    assert lines[0] == (
        "- refused by `hourly-ceiling`, `most-instances` (`service`): max = 40: 41 USD an hour; at most 2 at a time. "
        "**Repair:** lower `bezel:scaling.max_instances` to 2."
    )
    assert lines[1].endswith("**Repair:** lower `bezel:scaling.min_instances` to 0.")
    assert lines[2] == "- refused by `odd` (`service`): it is refused."


def test_problems_of_one_error_are_listed_one_by_one() -> None:
    error = "Stack s cannot be planned: 2 problems.\n\n1. a = 1\n   b.\n   Repair: c.\n\n2. d = 2\n   e.\n   Repair: f."
    text = section(document(verdict="failed", problems=[error, "2. is no number of a list"])).partition("<details>")[0]
    assert "- problem: a = 1: b. **Repair:** c.\n- problem: d = 2: e. **Repair:** f." in text
    assert "- problem: 2\\. is no number of a list" in text


def test_changed_settings_are_named_with_both_values() -> None:
    rows = [{"key": f"scaling.k{number}", "old": "1", "new": "40"} for number in range(9)]
    text = section(document(settings=rows))
    assert (
        "- settings: `scaling.k0` 1 → 40, `scaling.k1` 1 → 40, `scaling.k2` 1 → 40, `scaling.k3` 1 → 40 and 5 more"
        in text
    )
    assert "- setting `scaling.k8` 1 → 40" in text
    assert "settings" not in section(document(settings=[]))


def test_verdict_of_uncommitted_changes_says_so() -> None:
    dirty = section(document(uncommitted=["Pulumi.dev.yaml", "a`b", "c"]))
    assert "**allowed** of a checkout with uncommitted changes (`Pulumi.dev.yaml` and 2 more);" in dirty
    assert "commit the changes" in dirty
    assert "approve and merge" not in dirty
    assert "uncommitted" not in section(document(uncommitted=[]))


def judged_part(*changes: str) -> dict[str, Any]:
    return {"judge": {"said": "the base 1a2b3c4d judges", "changes": [*changes], "digest": f"sha256:{'1' * 64}"}}


def test_what_judges_comes_first_as_old_and_new() -> None:
    line = "policies/hardware_cost.prod.json monthly-ceiling.limits.prod 1600 → 16000"
    text = section(document(**judged_part(line, "bezel/engine/project/git.py is changed")))
    lines = [row for row in text.splitlines() if row]
    assert lines[:3] == [
        "**Judge: the base 1a2b3c4d judges.**",
        f"- `{line}`",
        "- `bezel/engine/project/git.py is changed`",
    ]
    assert "USD/h" in lines[3]
    assert "stops until its owner has approved what judges" in text
    assert "sha256:111" in text
    assert "Judge" not in section(document())


@pytest.mark.parametrize(("first", "stops"), [(True, False), (False, True), ("yes", True)])
def test_a_comment_names_the_approval_of_what_judges_where_one_is_asked(first: object, stops: bool) -> None:
    part = judged_part("pyproject.toml is changed")
    part["judge"]["first_deploy"] = first
    text = section(document(**part))
    assert ("stops until its owner has approved what judges" in text, "approved by `sha256:" in text) == (stops, stops)


def test_many_changes_of_what_judges_stay_short() -> None:
    text = section(document(**judged_part(*(f"policies/{number}.json is new" for number in range(3000)))))
    assert "- and 2995 more below" in text
    assert len(text) < VISIBLE["preview"] + 1500 + FOLDED


@pytest.mark.parametrize("damage", [None, [], "x", {}, {"said": 1}, {"said": "x"}, {"said": "x", "changes": [1, None]}])
def test_a_damaged_part_about_what_judges_is_passed_over(damage: object) -> None:
    assert "USD/h" in section(document(judge=damage))


def test_a_deploy_that_stopped_has_changed_nothing() -> None:
    changes = {"create": [{"name": "a", "type": "t", "properties": []}]}
    assert "1 to create" in section(document(kind="deployment", verdict="refused", changes=changes))
    assert "1 created" in section(document(kind="deployment", verdict="deployed", changes=changes))


def test_the_address_of_a_deployment_is_shown_as_code() -> None:
    url = "https://service-1.us-east4.run.app"
    assert f"Address: `{url}`" in section(document(kind="deployment", verdict="deployed", url=url))
    for other in (None, 7, {"x": 1}):
        assert "Address" not in section(document(kind="deployment", verdict="deployed", url=other))
    hostile = section(document(kind="deployment", verdict="deployed", url=f"https://x`\n# Title @team {'y' * 900}"))
    assert "\n# Title" not in hostile
    assert len(hostile.partition("<details>")[0]) <= VISIBLE["deployment"]


def test_stacks_of_two_projects_have_a_section_each_whatever_their_names() -> None:
    names = [("bezel", "dev"), ("web", "dev"), ("web/dev", "x"), ("web", "dev/x"), ("", "dev")]
    some = [document(stack, project=project, verdict="failed") for project, stack in names]
    body = body_of(sections_of(some, COMMIT))
    assert {key[:2] for key in sections_in(body)} == {*names}
    assert body_of(sections_in(body)) == body
    assert "### `bezel/dev`" in body
    alone = body_of(sections_of(some[:1], COMMIT))
    assert "### `dev`" in alone


def test_many_stacks_stay_below_the_forges_limit() -> None:
    rows = [{"name": f"r{n}", "type": "t" * 80, "properties": ["p" * 80] * 8} for n in range(100)]
    some = [document(f"stack-{n}", changes={"update": rows}) for n in range(40)]
    body = body_of(sections_of(some, COMMIT))
    assert len(body) <= LONGEST
    assert len(sections_in(body)) == 40
    assert body.count("USD/month") == 40
    many = [document(f"stack-{n}", changes={"update": rows}) for n in range(150)]
    body = body_of(sections_of(many, COMMIT))
    assert len(body) <= LONGEST
    assert "further parts do not fit" in body


def test_what_is_no_document_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"kind": "lock", "stack": "x"}))
    with pytest.raises(UserError, match="no report to comment on"):
        comment([tmp_path], {})
    for name, content, phrase in (
        ("a.json", '{"kind": "lock"}', "its kind is 'lock'"),
        ("b.json", "[", "not JSON"),
        ("c.json", '{"kind": "preview", "stack": "x"}', "no verdict"),
        ("none.json", None, "cannot be read"),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        with pytest.raises(UserError, match=phrase):
            comment([tmp_path / name], {})


@pytest.mark.parametrize(
    "damage",
    [
        {"price": None},
        {"price": {"before": 3, "after": []}},
        {"changes": ["x"]},
        {"changes": {"create": "x", "update": [None, 3, {}], "other": []}},
        {"violations": {"a": 1}},
        {"violations": [None, {}]},
        {"problems": "text"},
        {"quota": [None, 1]},
        {"fit": 3},
        {"seconds": "x", "kind": "rehearsal"},
    ],
)
def test_a_damaged_document_is_shown_as_far_as_it_can_be(damage: dict[str, Any]) -> None:
    assert "allowed" in section(document(**damage))


# On the forge.


@pytest.fixture(params=["github", "gitea"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with fake_forge(request.param) as server:
        yield server


def keeper(fake: FakeForge, folder: Path, run: str = "7") -> StickyComment:
    forge = forge_of(fake.environ(folder, pull=5) | {"GITHUB_RUN_ID": run})
    assert forge is not None
    return StickyComment(forge, 5, sleep=lambda _seconds: None, dice=lambda: 0.0)


def comments_of_bot(fake: FakeForge) -> list[dict[str, Any]]:
    return [made for made in fake.comments.get(5, []) if made["user"]["login"] == BOTS[fake.kind]]


def test_one_comment_is_created_then_updated_then_left(fake: FakeForge, tmp_path: Path) -> None:
    first, second = sections_of([document()], COMMIT), sections_of([document(verdict="refused")], COMMIT)
    actions = [keeper(fake, tmp_path).keep(sections).action for sections in (first, second, second)]
    assert actions == ["created", "updated", "unchanged"]
    (made,) = comments_of_bot(fake)
    assert "**refused**" in made["body"]
    assert "**allowed**" not in made["body"]


def test_a_forged_comment_is_neither_trusted_nor_edited(fake: FakeForge, tmp_path: Path) -> None:
    forged = body_of(sections_of([document("prod", verdict="allowed")], COMMIT))
    fake.add_comment(5, "mallory", forged)
    fake.add_comment(5, f"{BOTS[fake.kind]}x", forged)
    fake.add_comment(5, BOTS[fake.kind], f"mallory wrote:\n{forged}")  # quoted by another workflow
    before = [dict(made) for made in fake.comments[5]]
    keeper(fake, tmp_path).keep(sections_of([document(verdict="refused")], COMMIT))
    assert fake.comments[5][:3] == before
    (own_comment,) = [made for made in comments_of_bot(fake) if made["body"].startswith(MARKER)]
    assert "`prod`" not in own_comment["body"]


def test_jobs_of_a_run_add_their_parts_and_an_older_commit_is_dropped(fake: FakeForge, tmp_path: Path) -> None:
    for stack in ("b", "a"):
        keeper(fake, tmp_path).keep(sections_of([document(stack)], COMMIT))
    (made,) = comments_of_bot(fake)
    assert [key.stack for key in sections_in(made["body"])] == ["a", "b"]
    keeper(fake, tmp_path).keep(sections_of([document("c")], "b" * 40))
    assert [key.stack for key in sections_in(made["body"])] == ["c"]


def test_two_jobs_at_once_end_with_one_comment_that_has_both_parts(fake: FakeForge, tmp_path: Path) -> None:
    both_have_read = threading.Barrier(2)
    lists = {"a": 0, "b": 0}

    def meet(call: Call) -> None:
        # Both have listed the comments before either creates one.
        if call.method == "POST" and call.path.endswith("/comments"):
            both_have_read.wait(60)

    fake.on_call = meet
    failures: list[BaseException] = []

    def job(stack: str) -> None:
        folder = tmp_path / stack
        folder.mkdir()
        try:
            keeper(fake, folder, run=f"7{len(lists)}").keep(sections_of([document(stack)], COMMIT))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=job, args=(stack,)) for stack in lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert failures == []
    (made,) = comments_of_bot(fake)
    assert sorted(key.stack for key in sections_in(made["body"])) == ["a", "b"]


def test_a_part_that_another_job_overwrote_is_written_again(fake: FakeForge, tmp_path: Path) -> None:
    one = keeper(fake, tmp_path)

    def overwrite(_seconds: float) -> None:
        if len(fake.calls) < 8:  # another job read before, and writes now
            comments_of_bot(fake)[0]["body"] = body_of(sections_of([document("b")], COMMIT))

    one.sleep = overwrite
    one.keep(sections_of([document("a")], COMMIT))
    assert [key.stack for key in sections_in(comments_of_bot(fake)[0]["body"])] == ["a", "b"]


def test_two_runs_of_one_commit_do_not_fight(fake: FakeForge, tmp_path: Path) -> None:
    one = keeper(fake, tmp_path)
    newer = body_of(sections_of([document("a", verdict="refused")], COMMIT))

    def overwrite(_seconds: float) -> None:
        comments_of_bot(fake)[0]["body"] = newer

    one.sleep = overwrite
    one.keep(sections_of([document("a")], COMMIT))
    assert comments_of_bot(fake)[0]["body"] == newer


def test_a_creation_of_unknown_outcome_makes_no_second_comment(fake: FakeForge, tmp_path: Path) -> None:
    fake.after.append(Fault("POST", "/issues/5/comments", 502))
    keeper(fake, tmp_path).keep(sections_of([document()], COMMIT))
    assert len(comments_of_bot(fake)) == 1


def test_a_comment_that_is_overwritten_for_ever_is_a_failure(fake: FakeForge, tmp_path: Path) -> None:
    one = keeper(fake, tmp_path)
    one.sleep = lambda _seconds: comments_of_bot(fake)[0].update(body=f"{MARKER}\nnothing")
    with pytest.raises(ForgeError, match="again and again"):
        one.keep(sections_of([document()], COMMIT))


def run(
    fake: FakeForge | None, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str, **event: Any
) -> tuple[int, str]:
    """The command in a run's environment; its exit code and the run's summary."""
    for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH", "GITHUB_REF", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (fake.environ(folder, **event) if fake else {}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    (folder / "report.json").write_text(json.dumps(document()))
    return main(["ci", "comment", str(folder / "report.json"), *options]), (folder / "summary.md").read_text()


def test_by_hand_the_comment_is_printed(monkeypatch, tmp_path: Path, capsys) -> None:
    code_, summary = run(None, monkeypatch, tmp_path)
    out = capsys.readouterr().out
    assert code_ == 0
    assert "1.05 USD/h (+1.05)" in out
    assert "<!--" not in out
    assert "names no forge" in out
    assert "1.05 USD/h (+1.05)" in summary


def test_a_pull_request_of_a_fork_gets_the_summary_alone(fake, monkeypatch, tmp_path: Path, capsys) -> None:
    code_, summary = run(fake, monkeypatch, tmp_path, pull=5, fork=True)
    assert code_ == 0
    assert "comes from a fork" in capsys.readouterr().out
    assert "1.05 USD/h" in summary
    assert "comes from a fork" in summary
    assert fake.comments == {}
    assert all(call.method == "GET" for call in fake.calls)


def test_an_older_commits_run_leaves_the_comment_alone(fake, monkeypatch, tmp_path: Path, capsys) -> None:
    fake.heads[5] = "b" * 40
    assert run(fake, monkeypatch, tmp_path, pull=5)[0] == 0
    assert "newer commit, bbbbbbbb" in capsys.readouterr().out
    assert fake.comments == {}


def test_a_run_without_a_pull_request_prints(fake, monkeypatch, tmp_path: Path, capsys) -> None:
    assert run(fake, monkeypatch, tmp_path)[0] == 0
    assert "belongs to no pull request" in capsys.readouterr().out


def test_a_missing_permission_fails_with_its_name(fake, monkeypatch, tmp_path: Path, capsys) -> None:
    fake.permissions = frozenset({"contents", "pull-requests"})
    fake.faults.append(Fault("POST", "/issues/5/comments", 403, body='{"message": "Resource not accessible"}'))
    (tmp_path / "summary.md").write_text("")
    assert run(fake, monkeypatch, tmp_path, pull=5)[0] == 1
    error = capsys.readouterr().err
    assert "permissions: { pull-requests: write }" in error
    assert "ghs_" not in error


def test_the_report_says_what_was_done(monkeypatch, tmp_path: Path, capsys) -> None:
    run(None, monkeypatch, tmp_path, "--format", "json")
    report = json.loads(capsys.readouterr().out)
    assert (report["kind"], report["action"]) == ("comment", "printed")
    assert visible(report["body"]).startswith("Commit `aaaaaaaa`")


def test_each_of_several_regions_has_its_price_under_the_sum() -> None:
    after = document()["price"]["after"]
    one = after | {"regions_hourly_usd": {"us-east4": "1.05"}}
    two = after | {"regions_hourly_usd": {"us-east4": "1.05", "europe-west4": "1.20"}}
    text = section(document(price={"before": one, "after": two}))
    assert "\n\nus-east4 1.05 USD/h (unchanged), europe-west4 0.00 → 1.20 USD/h (+1.20)\n" in text
    assert "us-east4" not in section(document(price={"before": one, "after": one}))
    hostile = after | {"regions_hourly_usd": {"<b>a</b>": "1", "us-east4": "1"}}
    assert "<b>" not in harmless(section(document(price={"before": one, "after": hostile})))
