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
def served(request):
    with fake_forge(request.param) as forge:
        yield forge


def report(served, section):
    return report_to_issue(served.environ(), section)


def open_issues(served):
    return [issue for issue in served.issues if issue["state"] == "open"]


def test_a_finding_opens_one_issue_and_each_command_keeps_to_its_section(served):
    assert report(served, WELL) == ""
    assert served.issues == []
    url = report(served, DRIFT)
    assert report(served, EXPIRY) == report(served, DRIFT) == url
    (issue,) = served.issues
    assert [section.name for section in sections_of(issue["body"])] == ["drift", "expiry"]
    assert "`dev` differs" in issue["body"]
    assert "one leftover" in issue["body"]


def test_the_issue_is_closed_when_all_sections_are_well_and_another_finding_opens_a_new_one(served):
    report(served, DRIFT)
    report(served, EXPIRY)
    report(served, WELL)
    assert len(open_issues(served)) == 1
    report(served, Section("expiry", "nothing left", is_well=True))
    assert open_issues(served) == []
    report(served, DRIFT)
    assert [issue["number"] for issue in open_issues(served)] == [2]


def test_an_issue_of_another_author_with_the_marker_is_left_alone(served):
    forged = with_section("", Section("drift", "all is well", is_well=True))
    served.add_issue("mallory", "Upkeep", forged)
    served.add_issue(BOTS[served.kind], "a pull request", MARKER, pull=True)
    report(served, DRIFT)
    assert served.issues[0]["body"] == forged
    assert served.issues[1]["body"] == MARKER
    assert DRIFT.text in served.issues[2]["body"]


def test_two_issues_that_were_opened_at_once_become_one(served):
    for section in (DRIFT, EXPIRY):
        served.add_issue(BOTS[served.kind], "Upkeep", with_section("", section))
    report(served, Section("drift", "`prod` differs", is_well=False))
    (issue,) = open_issues(served)
    assert issue["number"] == 1
    assert "`prod` differs" in issue["body"]
    assert "one leftover" in issue["body"]


def test_two_jobs_at_once_leave_one_open_issue(served):
    crossing = threading.Barrier(2, timeout=10)
    writes = [0]

    def together(call):
        # The first write of each waits for the other's.
        if call.method in {"POST", "PATCH"} and "/issues" in call.path and writes[0] < 2:
            writes[0] += 1
            crossing.wait()

    served.on_call = together
    threads = [threading.Thread(target=report, args=(served, section)) for section in (DRIFT, EXPIRY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    report(served, DRIFT)
    (issue,) = open_issues(served)
    assert {section.name for section in sections_of(issue["body"])} >= {"drift"}


def test_a_forge_that_refuses_is_an_error_that_names_the_permission(served):
    served.permissions = frozenset({"contents"})
    with pytest.raises(ForgeError, match="issues: "):
        report(served, DRIFT)
    assert served.issues == []


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
