"""`bezel ci prices`: each price before and after, stacks that change, and one pull request of the pipeline's own."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from bezel.forge import ForgeError, PullRequest, forge_of
from bezel.gitops.changed.command import UnplannedError
from bezel.gitops.prices.price_update import PriceUpdate
from bezel.gitops.prices.pull_request import BRANCH, base_branch, forge_for, send
from bezel.gitops.prices.stack_effects import PRICE_FILE, StackEffect, compare_plans
from bezel_base.errors import UserError
from bezel_catalog.prices import Price
from bezel_catalog.refresh import Compared
from tests.support.gitops.fake_forge import TOKEN, fake_forge

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OLD = Price("cloud-run", "vcpu", "us-east4", "instance-based", "vcpu-second", Decimal("0.000018"), "2026-09", "page")
NEW = dataclasses.replace(OLD, usd_per_unit=Decimal("0.00002"), as_of="2026-11", source="Catalog", sku="AB-1")
DERIVED = dataclasses.replace(OLD, region="europe-west1", source="derived: page")
READ = dataclasses.replace(DERIVED, source="Catalog", as_of="2026-11")
CHANGED = Compared("changed", "vcpu, us-east4", OLD, NEW)
ADDED = Compared("new", "vcpu, us-west9", None, NEW)
GONE = Compared("not found", "memory, us-east4", OLD, OLD, "no SKU has its description, region and usage type")
REDATED = Compared("confirmed", "requests", OLD, dataclasses.replace(OLD, as_of="2026-11"))
NOW_READ = Compared("confirmed", "vcpu, europe-west1", DERIVED, READ)
EFFECT = StackEffect("l4-qat", "1.0465 USD/h", "", refused_after="bezel:cost: above 1.10")


def test_each_price_is_shown_before_and_after_with_date_source_and_sku() -> None:
    update = PriceUpdate("2026-11", [CHANGED, ADDED, GONE, REDATED, NOW_READ], stacks=(EFFECT,))
    text = update.text()
    before, after = "0.000018 per vcpu-second (2026-09, page)", "0.00002 per vcpu-second (2026-11, Catalog, SKU AB-1)"
    assert f"vcpu, us-east4: {before} -> {after}\n" in text
    assert f"vcpu, us-west9: unpriced -> {after}\n" in text
    assert "memory, us-east4: unknown: no SKU has its description" in text
    assert "vcpu, europe-west1: now read: 0.000018" in text
    assert "stack l4-qat: 1.0465 USD/h -> refused (bezel:cost: above 1.10)" in text
    body = update.body()
    assert f"| vcpu, us-east4 | {before} -> {after} |" in body
    assert "**Unknown now**; the rows keep their last price:" in body
    assert "requests" not in body, "a date alone is not worth a line"
    assert "2 prices are confirmed; their dates become 2026-11." in body
    assert update.title == "Refresh prices of 2026-11: 1 changed, 1 new, 1 now read"


def test_json_has_no_price_where_it_is_unknown() -> None:
    content = PriceUpdate("2026-11", [CHANGED, GONE], stacks="unknown: no plan").as_json()
    assert content["unknown"][0]["after"] is None  # type: ignore[index]
    assert content["unknown"][0]["before"]["usd"] == "0.000018"  # type: ignore[index]
    assert content["changed"][0]["after"]["usd"] == "0.00002"  # type: ignore[index]
    assert content["stacks"] is None
    assert json.dumps(content)


@pytest.mark.parametrize(
    ("rows", "needed"),
    [([REDATED], False), ([GONE], False), ([CHANGED], True), ([ADDED], True), ([NOW_READ], True), ([], False)],
)
def test_dates_alone_and_vanished_prices_need_no_pull_request(rows: list[Compared], needed: bool) -> None:
    update = PriceUpdate("2026-11", rows)
    assert update.is_needed == needed
    assert ("Nothing to do" in update.text()) != needed
    if rows == [GONE]:
        assert "unknown: no SKU" in update.text()
        assert "**Unknown now**" in update.body()


def test_prices_of_another_address_are_marked_as_a_rehearsal() -> None:
    update = PriceUpdate("2026-11", [CHANGED], address="http://127.0.0.1:8085/cloudbilling/v1/")
    assert update.title.startswith("Rehearsal: ")
    assert "Do not merge" in update.body()
    assert "Do not merge" not in PriceUpdate("2026-11", [CHANGED]).body()


def test_texts_of_the_list_are_no_markup_and_the_body_is_bounded() -> None:
    evil = dataclasses.replace(NEW, sku="|`<b>*\n# x")
    body = PriceUpdate("2026-11", [Compared("changed", "a|b", OLD, evil)] * 900).body()
    assert "<b>" not in body
    assert "\n# x" not in body
    assert len(body) < 65_536


def test_stacks_whose_price_or_verdict_changes_are_named(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    plans: Mapping[Path, Mapping[str, Mapping[str, str]]] = {
        old: {
            "same": {"price": "1 USD/h", "cost": "a"},
            "dearer": {"price": "1 USD/h"},
            "refused": {"price": "1 USD/h"},
            "unpriced": {"price": "unknown USD/h"},
        },
        new: {
            "same": {"price": "1 USD/h", "cost": "b"},
            "dearer": {"price": "2 USD/h"},
            "refused": {"problems": "too\n dear"},
            "unpriced": {"price": "3 USD/h"},
        },
    }
    effects = compare_plans(old, new, plans.__getitem__)
    assert [one.line() for one in effects if isinstance(one, StackEffect)] == [
        "1 USD/h -> 2 USD/h",
        "1 USD/h -> refused (too dear)",
        "unknown USD/h -> 3 USD/h",
    ]


def test_stacks_that_cannot_be_planned_are_unknown(tmp_path: Path) -> None:
    def raise_unplanned(_: Path) -> Mapping[str, Mapping[str, str]]:
        raise UnplannedError("no module")

    assert compare_plans(tmp_path, tmp_path, raise_unplanned) == "unknown: no module"


@pytest.mark.parametrize("kind", ["github", "gitea"])
def test_a_second_run_updates_the_same_pull_request_and_no_other_branch(kind: str) -> None:
    with fake_forge(kind) as served:
        served.branches = {"main": {PRICE_FILE: b"old", "other": b"1"}, "work": {"w": b"2"}}
        for content, rows in (("first", [CHANGED]), ("second", [CHANGED, ADDED])):
            with forge_for(served.environ()) as forge:
                made = send(forge, PriceUpdate("2026-11", rows), content, "main")
        assert made.number == 1
        (pull,) = served.pulls
        assert (pull["head"]["ref"], pull["base"]) == (BRANCH, "main")
        assert pull["title"] == "Refresh prices of 2026-11: 1 changed, 1 new"
        assert served.branches["main"] == {PRICE_FILE: b"old", "other": b"1"}
        assert served.branches["work"] == {"w": b"2"}
        assert served.branches[BRANCH] == {PRICE_FILE: b"second", "other": b"1"}
        assert TOKEN not in json.dumps([pull["body"], pull["title"]])


def test_a_token_without_the_right_names_it_and_opens_nothing() -> None:
    with fake_forge("github") as served:
        served.permissions = frozenset({"pull-requests"})
        with forge_for(served.environ()) as forge, pytest.raises(ForgeError, match="contents: write") as refused:
            send(forge, PriceUpdate("2026-11", [CHANGED]), "x", "main")
        assert not served.pulls
        assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("choice", "environ", "event", "expected"),
    [
        ("release", {"GITHUB_REF": "refs/heads/main"}, {}, "release"),
        ("", {"GITHUB_REF": "refs/heads/trunk"}, {"repository": {"default_branch": "main"}}, "trunk"),
        ("", {"GITHUB_REF": "refs/tags/v1"}, {"repository": {"default_branch": "main"}}, "main"),
    ],
)
def test_the_pull_request_goes_to_the_branch_of_the_run(
    choice: str, environ: dict[str, str], event: object, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "event.json").write_text(json.dumps(event))
    assert base_branch(choice, environ | {"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}) == expected


@pytest.mark.parametrize("environ", [{}, {"GITHUB_REF": f"refs/heads/{BRANCH}"}])
def test_no_branch_and_the_own_branch_are_refused(environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="--into"):
        base_branch("", environ)


def test_without_a_forge_only_a_dry_run_works() -> None:
    assert forge_of({}) is None
    with pytest.raises(UserError, match="--dry-run"):
        forge_for({})
    shown = PriceUpdate("2026-11", [CHANGED], dry_run=True).text()
    assert "A pull request would be opened or updated: Refresh prices" in shown
    opened = PriceUpdate("2026-11", [CHANGED], pull_request=PullRequest(4, "t", "http://forge/4"))
    assert "pull request 4: http://forge/4" in opened.text()
    assert "[4](http://forge/4)" in opened.markdown()
