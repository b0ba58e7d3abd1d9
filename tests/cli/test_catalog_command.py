"""`bezel catalog` against a billing API on a real socket: paged, refusing, cut off; the file is whole or untouched."""

from __future__ import annotations

import re
import resource
import tomllib
from decimal import Decimal

import pytest

from bezel.cli.catalog.commands import refresh
from bezel.cli.main import main, parse
from bezel.operations.catalog.tables import SECTIONS
from bezel.rest import Backoff, Credentials, GoogleClient, endpoint
from bezel_base.errors import UserError
from bezel_catalog import DataFileError
from bezel_catalog.prices import PRICES, parse_prices
from catalog_support.fake_billing_catalog import COMPUTE, RUN, list_skus, sku
from localcloud_support.discovery_check import problems
from localcloud_support.discovery_documents import document
from tests.support.clock import Clock
from tests.support.rest.fake_google import Answer, serving

TOKEN = "ya29.planted-access-token-0123456789"
BEFORE = PRICES.read_text(encoding="utf-8")
ROWS = parse_prices(BEFORE)
FLEX = "DWS Defined Duration V6e running in Columbus"


class Billing:
    """The API: the SKUs of two services in pages of `size`, and answers to give first, page by page."""

    def __init__(self, skus, size=7):
        self.skus, self.size, self.instead, self.before_a_page = skus, size, {}, lambda: None

    def __call__(self, call):
        match = re.fullmatch(r"/v1/services/([0-9A-F-]+)/skus", call.path)
        if not match:
            return None
        self.before_a_page()
        start = int(call.query.get("pageToken") or 0)
        waiting = self.instead.get((match[1], start))
        if waiting:
            return waiting.pop(0)
        page = self.skus[match[1]][start : start + self.size]
        after = start + self.size
        token = str(after) if after < len(self.skus[match[1]]) else ""
        return Answer(json={"skus": page, "nextPageToken": token})


@pytest.fixture
def api(monkeypatch):
    with serving() as server:
        billing = Billing(list_skus(ROWS))
        server.routes.append(billing)
        monkeypatch.setenv("GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT", f"{server.url}/v1/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
        billing.calls = server.calls
        yield billing


@pytest.fixture
def file(tmp_path):
    copy = tmp_path / "prices.csv"
    copy.write_text(BEFORE, encoding="utf-8")
    return copy


def client(clock):
    return GoogleClient(Credentials(), backoff=Backoff(), clock=clock, sleep=clock.sleep, dice=lambda: 0.5)


def run(file, *, write, clock=None):
    return refresh(write=write, file=file, month="2027-01", client=client(clock or Clock()))


def with_price(usd, **fields):
    """The whole list with another price for the flex-start chip of us-east5."""
    skus = list_skus(ROWS)
    skus[COMPUTE] = [each for each in skus[COMPUTE] if each["description"] != FLEX]
    return {**skus, COMPUTE: [*skus[COMPUTE], sku(FLEX, usd, regions=["us-east5"], name="FLEX", **fields)]}


@pytest.mark.slow
def test_every_page_is_asked_for_and_every_row_confirmed(api, file, capsys):
    assert run(file, write=False) == 0
    assert {call.query["pageSize"] for call in api.calls} == {"5000"}
    assert {call.query["currencyCode"] for call in api.calls} == {"USD"}
    pages = [-(-len(skus) // api.size) for skus in api.skus.values()]
    assert len(api.calls) == sum(pages) > 6
    out = capsys.readouterr().out
    assert f"{len(ROWS)} confirmed, 0 changed, " in out
    assert "was derived, now read at the same price" in out
    assert (
        "new        cloud-run, requests, asia-south1, request-based: 0.4 USD per million requests (SKU REQUESTS)" in out
    )
    assert "Nothing is written" in out
    assert file.read_text() == BEFORE


def test_what_is_asked_and_what_the_fake_answers_are_googles(api, file):
    billing = "cloudbilling.v1"
    method = document(billing)["resources"]["services"]["resources"]["skus"]["methods"]["list"]
    assert endpoint("CLOUD_BILLING", {}) + "services/{}/skus" == document(billing)["rootUrl"] + re.sub(
        "{[^}]*}", "{}", method["flatPath"]
    )
    run(file, write=False)
    assert {name for call in api.calls for name in call.query} <= {
        *method["parameters"],
        *document(billing)["parameters"],
    }
    for skus in api.skus.values():
        assert problems({"skus": skus, "nextPageToken": "7"}, method["response"], billing, "answer", answers=True) == []


@pytest.mark.slow
def test_a_difference_is_shown_and_written_only_when_asked(api, file, capsys):
    api.skus = with_price("1.50")
    assert run(file, write=False) == 0
    shown = capsys.readouterr().out
    assert "changed    tpu, v6e chip, us-east5, flex-start: 1.35 -> 1.5 USD per chip-hour (SKU FLEX)" in shown
    assert file.read_text() == BEFORE
    file.chmod(0o640)
    assert run(file, write=True) == 0
    assert file.stat().st_mode & 0o777 == 0o640
    assert "prices.csv is written." in capsys.readouterr().out
    after = parse_prices(file.read_text())
    assert {row.key for row in after} >= {row.key for row in ROWS}
    (row,) = [row for row in after if (row.region, row.model) == ("us-east5", "flex-start")]
    assert (row.usd_per_unit, row.as_of, row.sku) == (Decimal("1.5"), "2027-01", "FLEX")
    assert [each.name for each in file.parent.iterdir()] == ["prices.csv"]
    assert run(file, write=True) == 0
    assert "agrees with the list: nothing to write" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("usd", "why"), [("0", "its price is 0"), ("-1.35", "its price is -1.35")])
def test_a_price_of_nothing_is_never_written(api, file, capsys, usd, why):
    api.skus = with_price(usd)
    assert run(file, write=True) == 0
    assert f"{why}; the row is unchanged" in capsys.readouterr().out
    assert "tpu,v6e chip,us-east5,flex-start,chip-hour,1.35,2026-08," in file.read_text()


def test_a_price_beyond_all_bounds_stops_the_writing(api, file, capsys):
    api.skus = with_price("135")
    with pytest.raises(UserError, match=r"so it is not written: 1 problem\.[^$]*usd_per_unit = 135"):
        run(file, write=True)
    assert "1.35 -> 135 USD" in capsys.readouterr().out
    assert file.read_text() == BEFORE


def test_a_row_without_a_sku_stays_and_is_named(api, file, capsys):
    api.skus[COMPUTE] = [each for each in api.skus[COMPUTE] if each["description"] != FLEX]
    assert run(file, write=True) == 0
    assert "not found  tpu, v6e chip, us-east5, flex-start: no SKU has its description" in capsys.readouterr().out
    assert "tpu,v6e chip,us-east5,flex-start,chip-hour,1.35,2026-08," in file.read_text()


def test_a_refusal_that_passes_is_waited_for(api, file):
    busy = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}}
    api.instead[(COMPUTE, 7)] = [Answer(429, busy, headers={"retry-after": "3"}), Answer(reset=True)]
    clock = Clock()
    assert run(file, write=True, clock=clock) == 0
    assert clock.slept[0] == 3.0
    assert len(clock.slept) == 2
    assert "2027-01" in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([Answer(text='{"skus": [{"descr')], "the response is not JSON"),
        ([Answer(reset=True)] * 100, "no response"),
        (
            [Answer(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "enable the API"}})],
            "enable the API",
        ),
    ],
    ids=["cut off", "hung up for good", "refused"],
)
def test_a_list_that_is_not_read_whole_changes_nothing(api, file, answers, text):
    api.instead[(COMPUTE, 14)] = list(answers)
    with pytest.raises(UserError, match=f"so nothing was compared: .*{text}") as caught:
        run(file, write=True)
    assert TOKEN not in str(caught.value)
    assert file.read_text() == BEFORE


@pytest.mark.slow
@pytest.mark.parametrize("service", [RUN, COMPUTE])
def test_a_service_without_any_sku_is_reported_and_changes_nothing(api, file, service):
    api.skus[service] = []
    with pytest.raises(UserError, match=f"billing_service = {service}\n.*lists no SKU of this service"):
        run(file, write=True)
    assert file.read_text() == BEFORE


def test_an_edit_that_is_made_meanwhile_is_not_overwritten(api, file):
    edited = BEFORE.replace("0.0001867", "0.0001868")
    api.before_a_page = lambda: file.write_text(edited)
    with pytest.raises(UserError, match="was changed while the list was read, so it is not written"):
        run(file, write=True)
    assert file.read_text() == edited


def test_a_price_file_that_is_none_is_reported_before_anything_is_asked(api, file):
    file.write_text("service,item\n")
    with pytest.raises(DataFileError, match="the columns are service"):
        run(file, write=True)
    assert api.calls == []


@pytest.mark.usefixtures("api", "capsys")  # output kept in memory: the limit holds for every file
def test_a_file_that_cannot_be_written_whole_keeps_the_old_one(file):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match=r"cannot be written: .*it is unchanged"):
            run(file, write=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_text() == BEFORE
    assert [each.name for each in file.parent.iterdir()] == ["prices.csv"]


def test_the_command_tells_a_failure_without_a_traceback(api, capsys, monkeypatch):
    monkeypatch.setenv("GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT", "http://billing.example/v1/")
    assert main(["catalog", "refresh"]) == 1
    assert "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT" in capsys.readouterr().err
    assert api.calls == []


@pytest.mark.usefixtures("api")
def test_the_command_compares_the_file_of_the_package(capsys):
    assert main(["catalog", "refresh"]) == 0
    assert f"{len(ROWS)} confirmed" in capsys.readouterr().out
    assert PRICES.read_text(encoding="utf-8") == BEFORE


def test_a_check_of_the_committed_files_finds_nothing(capsys):
    assert main(["catalog", "check"]) == 0
    out = capsys.readouterr().out
    assert f"{len(ROWS)} prices, {sum(row.is_derived for row in ROWS)} of them derived" in out
    assert "Offered but unpriced, so that a stack there is refused: nvidia-l4 in asia-southeast1" in out


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_shows_each_row_with_date_and_source(section, capsys):
    assert main(["catalog", "show", section]) == 0
    title, header, *lines = capsys.readouterr().out.splitlines()
    assert title == f"{section}:"
    assert header.rstrip().endswith("as of, source")
    assert lines
    assert all(re.search(r"20\d\d-\d\d, \S", line) for line in lines)


def test_all_sections_show_every_row_of_the_files(capsys):
    assert main(["catalog", "show"]) == 0
    out = capsys.readouterr().out
    data = PRICES.parent
    names = [
        name
        for file in ("accelerators", "tpus", "comparison")
        for name in tomllib.loads((data / f"{file}.toml").read_text())
    ]
    names += list(tomllib.loads((data / "models.toml").read_text())["model"])
    for name in names:
        assert f"  {name} " in out
    assert out.count("list price") + out.count(" derived ") >= len(ROWS)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_command_line_names_every_section(section: str) -> None:
    assert parse(["catalog", "show", section]).section == section
