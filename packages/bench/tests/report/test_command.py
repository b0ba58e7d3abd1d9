"""`bezel bench report`: writes what was asked for and nothing else; says what is wrong before it writes anything."""

import json
import struct
from pathlib import Path

import pytest

from bench_support.results import failed_result, line, sweep
from bezel_bench.commands.main import main
from bezel_bench.report.charts import png
from bezel_bench.result.document import save


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result's file."""
    save(line("12B on L4", "nvidia-l4", 1.0), tmp_path / "result.json")
    return tmp_path / "result.json"


def report(*arguments: Path | str) -> int:
    return main(["report", *map(str, arguments)])


@pytest.mark.slow
def test_a_page_and_tables_are_written(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, text = (result.with_name(name) for name in ("r.html", "r.md"))
    assert report(result, "--out", page, "--markdown", text) == 0
    assert page.read_text().startswith("<!doctype html>")
    assert text.read_text().startswith("## 12B on L4")
    assert capsys.readouterr().out.count("written: ") == 2


def test_json_is_the_report_of_the_operation_and_names_what_was_written(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(result, "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["title"], alone["written"]) == ("12B on L4", [])
    text = result.with_name("r.md")
    assert report(result, "--json", "--markdown", text) == 0
    assert json.loads(capsys.readouterr().out) == {**alone, "written": [str(text)]}


def test_a_picture_that_no_figure_is_named_like_writes_nothing(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = result.with_name("r.html")
    assert report(result, "--out", page, "--png", result.with_name("heat.png")) == 1
    error = capsys.readouterr().err
    assert "heat.png\n   a picture must be named after its figure.\n" in error
    assert "choose of this report's: throughput.png, latency.png" in error
    assert not page.exists()


def test_no_result_is_written_over(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = result.read_bytes()
    assert report(result, "--out", result) == 1
    assert "would be overwritten" in capsys.readouterr().err
    assert result.read_bytes() == before


@pytest.mark.slow
def test_nothing_to_write_and_no_result_are_reported(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(result) == 1
    assert "add --out FILE.html" in capsys.readouterr().err
    other = result.with_name("other.json")
    other.write_text("{}")
    assert report(other, "--out", result.with_name("r.html")) == 1
    assert "is not a result of" in capsys.readouterr().err
    assert report(result, "--out", result.with_name("none") / "r.html") == 1
    assert "choose another path" in capsys.readouterr().err


def test_a_failed_benchmark_is_reported_without_failing_the_report(tmp_path: Path) -> None:
    save(failed_result(), tmp_path / "failed.json")
    assert report(tmp_path / "failed.json", "--out", tmp_path / "r.html") == 0
    assert "1 checks failed" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_a_font_that_is_missing_is_noticed_before_labels_are_lost() -> None:
    assert png._trial("No Such Family") == png._trial("")
    assert png._trial(png._family()) != png._trial("")


@pytest.mark.slow
def test_figures_of_every_shape_can_be_slides(tmp_path: Path) -> None:
    save(sweep(), tmp_path / "sweep.json")
    names = ("heat", "cost", "ttft")
    files = [tmp_path / f"{name}.png" for name in names]
    assert report(tmp_path / "sweep.json", "--png", *files) == 0
    contents = {file.read_bytes() for file in files}
    assert len(contents) == len(files)
    assert all(content.startswith(b"\x89PNG") for content in contents)
    assert {struct.unpack(">II", content[16:24]) for content in contents} == {(1920, 1080)}
