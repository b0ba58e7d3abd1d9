"""The sticky issue: one, of the own author, each section its own command's; closed when all is well."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.forge import ForgeError
from bezel.gitops.upkeep.issue import report_to_issue
from bezel.gitops.upkeep.sections import MARKER, Section, is_well, sections_of, with_section
from tests.support.gitops.fake_forge import BOTS, fake_forge

pytestmark = pytest.mark.slow

DRIFT = Section("drift", "`dev` differs", is_well=False)
WELL = Section("drift", "no drift", is_well=True)
EXPIRY = Section("expiry", "one leftover", is_well=False)


@pytest.fixture(params=["github", "gitea"])
def forge_server(request):
    with fake_forge(request.param) as forge:
        yield forge


def report(forge_server, section):
    return report_to_issue(forge_server.environ(), section)


def open_issues(forge_server):
    return [issue for issue in forge_server.issues if issue["state"] == "open"]


def test_a_finding_opens_one_issue_and_each_command_keeps_to_its_section(forge_server):
    assert report(forge_server, WELL) == ""
    assert forge_server.issues == []
    url = report(forge_server, DRIFT)
    assert report(forge_server, EXPIRY) == report(forge_server, DRIFT) == url
    (issue,) = forge_server.issues
    assert [section.name for section in sections_of(issue["body"])] == ["drift", "expiry"]
    assert "`dev` differs" in issue["body"]
    assert "one leftover" in issue["body"]


def test_the_issue_closes_when_all_is_well_and_a_finding_opens_a_new_one(forge_server):
    report(forge_server, DRIFT)
    report(forge_server, EXPIRY)
    report(forge_server, WELL)
    assert len(open_issues(forge_server)) == 1
    report(forge_server, Section("expiry", "nothing left", is_well=True))
    assert open_issues(forge_server) == []
    report(forge_server, DRIFT)
    assert [issue["number"] for issue in open_issues(forge_server)] == [2]


def test_an_issue_of_another_author_with_the_marker_is_left_alone(forge_server):
    forged = with_section("", Section("drift", "all is well", is_well=True))
    forge_server.add_issue("mallory", "Upkeep", forged)
    forge_server.add_issue(BOTS[forge_server.kind], "a pull request", MARKER, pull=True)
    report(forge_server, DRIFT)
    assert forge_server.issues[0]["body"] == forged
    assert forge_server.issues[1]["body"] == MARKER
    assert DRIFT.text in forge_server.issues[2]["body"]


def test_two_issues_that_were_opened_at_once_become_one(forge_server):
    for section in (DRIFT, EXPIRY):
        forge_server.add_issue(BOTS[forge_server.kind], "Upkeep", with_section("", section))
    report(forge_server, Section("drift", "`prod` differs", is_well=False))
    (issue,) = open_issues(forge_server)
    assert issue["number"] == 1
    assert "`prod` differs" in issue["body"]
    assert "one leftover" in issue["body"]


def test_two_jobs_at_once_leave_one_open_issue(forge_server):
    crossing = threading.Barrier(2, timeout=60)
    first_writes = threading.Semaphore(2)

    def together(call):
        # The first write of each waits for the other's.
        is_write = call.method in {"POST", "PATCH"} and "/issues" in call.path
        if is_write and first_writes.acquire(blocking=False):
            crossing.wait()

    forge_server.on_call = together
    threads = [threading.Thread(target=report, args=(forge_server, section)) for section in (DRIFT, EXPIRY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    report(forge_server, DRIFT)
    (issue,) = open_issues(forge_server)
    assert {section.name for section in sections_of(issue["body"])} >= {"drift"}


def test_a_forge_that_refuses_is_an_error_that_names_the_permission(forge_server):
    forge_server.permissions = frozenset({"contents"})
    with pytest.raises(ForgeError, match="issues: "):
        report(forge_server, DRIFT)
    assert forge_server.issues == []


def test_by_hand_without_a_forge_the_option_is_refused():
    with pytest.raises(ForgeError, match="leave --issue out"):
        report_to_issue({}, DRIFT)


END = "<!-- bezel section end -->"
texts = st.text(max_size=200) | st.sampled_from(
    [
        "<!-- bezel section end -->",
        "<!-- bezel section well other -->\nx\n<!-- bezel section end -->",
        MARKER,
        "--> <!--",
    ]
)


@given(texts, texts, st.booleans(), st.booleans())
def test_no_text_of_a_report_ends_its_section_or_makes_another(first, second, one, two):
    body = with_section("", Section("a", first, is_well=one))
    body = with_section(body, Section("b", second, is_well=two))
    assert [(section.name, section.is_well) for section in sections_of(body)] == [("a", one), ("b", two)]
    assert is_well(body) == (one and two)
    assert with_section(body, Section("a", first, is_well=one)) == body


def test_a_long_report_is_cut_and_closes_what_it_opened():
    text = "<details>\n" + "- a line\n" * 20_000 + "</details>"
    body = "".join(with_section("", Section(name, text, is_well=False)) for name in ("a",))
    assert len(body) < 20_000
    assert body.count("<details>") == body.count("</details>") == 1
    assert "(cut:" in body
