"""The page in a real browser: every chart drawn, no request, nothing on the console; wide, narrow, dark, on paper."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from bench_support.results import HOSTILE, drafts, failed_result, line, saturated_result, staged_result, sweep
from bezel_bench.report.charts.palette import DARK, LIGHT, rgb
from bezel_bench.report.page import as_page
from bezel_bench.report.report import report_of
from tests.support.browser import running_browser

pytestmark = pytest.mark.slow
PAGES = {
    "sweep": [sweep],
    "drafts": [drafts],
    "failed": [failed_result],
    "staged": [staged_result],
    "hostile": [lambda: failed_result(text=HOSTILE)],
    "saturated": [lambda: saturated_result(tails=(26.0, 27.0, 4000.0, 39.0))],
    "pair": [lambda: line("12B on L4", "nvidia-l4", 1.0), lambda: line("12B on RTX", "rtx-pro-6000", 3.1, price=None)],
}
NARROW, PHONE, WIDE = 360, 390, 1280
# What leaves the page to the right, or is wider than what it scrolls in, at any depth, folded parts opened.
CUT = """() => {
  document.querySelectorAll('details').forEach(one => { one.open = true; });
  const wide = document.documentElement.clientWidth, cut = [];
  for (const one of document.querySelectorAll('svg, table:not(.pairs), td, th, text')) {
    const box = one.getBoundingClientRect();
    if (box.width > 0 && box.left >= 0 && box.right > wide + 1) cut.push(one.outerHTML.slice(0, 90));
  }
  for (const one of document.querySelectorAll('.draw, .scroll'))
    if (one.scrollWidth > one.clientWidth + 1 && !one.querySelector('table.pairs'))
      cut.push(one.outerHTML.slice(0, 90));
  return cut;
}"""
# What a reader cannot see or would stumble over, found in the page itself.
FAULTS = """() => {
  const faults = [], wide = document.documentElement.clientWidth;
  const shown = [...document.querySelectorAll('figure svg')].filter(one => one.getBoundingClientRect().width > 0);
  if (document.documentElement.scrollWidth > wide) faults.push('the page is too wide');
  for (const figure of document.querySelectorAll('figure')) {
    const drawn = shown.filter(one => figure.contains(one));
    if (drawn.length !== 1) faults.push(`${figure.id}: ${drawn.length} pictures`);
    else if (!drawn[0].querySelector('path, rect')) faults.push(`${figure.id}: an empty picture`);
    if (!figure.querySelector('figcaption + details table')) faults.push(`${figure.id}: bare`);
  }
  for (const picture of shown) {
    const name = picture.closest('figure').id, frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
          || box.bottom > frame.bottom + 1) faults.push(`${name}: "${text}" leaves the picture`);
      if (box.height < 11) faults.push(`${name}: "${text}" is ${box.height} px high`);
    }
    texts.forEach(([text, one], place) => texts.slice(place + 1).forEach(([other, two]) => {
      if (one.left < two.right - 1 && two.left < one.right - 1 && one.top < two.bottom - 4 && two.top < one.bottom - 4)
        faults.push(`${name}: "${text}" lies on "${other}"`);
    }));
  }
  return faults;
}"""


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    """One browser for all of these tests; a blank page keeps the process that draws."""
    with running_browser() as started:
        made = started.new_context()
        made.new_page()
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages."""
    made = tmp_path_factory.mktemp("reports")
    for name, results in PAGES.items():
        (made / f"{name}.html").write_text(as_page(report_of([make() for make in results])))
    return made


@pytest.fixture
def open_page(context: BrowserContext, folder: Path) -> Iterator[Callable[..., Page]]:
    """`opened(name, width, scheme)`: the page; it must have asked for nothing and said nothing in the end."""
    heard: list[str] = []
    asked: list[str] = []
    pages = []

    def show(name: str, width: int = WIDE, scheme: str = "light") -> Page:
        page = context.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("dialog", lambda dialog: heard.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        return page

    yield show
    for page in pages:
        page.close()
    assert heard == []
    assert len(asked) == len(pages)
    assert all(url.startswith("file:") for url in asked)


@pytest.mark.wide_except("sweep-360", "drafts-1280")
@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", PAGES)
def test_every_chart_is_drawn_and_no_text_is_lost(open_page: Callable[..., Page], name: str, width: int) -> None:
    page = open_page(name, width)
    assert page.locator("figure").count() >= 2
    assert page.evaluate(FAULTS) == []


@pytest.mark.wide_except("sweep-360", "hostile-360")
@pytest.mark.parametrize(("name", "width"), list(zip(PAGES, itertools.cycle([NARROW, PHONE]), strict=False)))
def test_nothing_is_cut_on_a_phone(open_page: Callable[..., Page], name: str, width: int) -> None:
    assert open_page(name, width).evaluate(CUT) == []


def test_a_table_that_is_cut_would_be_found(open_page: Callable[..., Page]) -> None:
    page = open_page("sweep", PHONE)
    page.evaluate("() => document.querySelectorAll('table').forEach(one => one.classList.remove('stacked'))")
    assert page.evaluate(CUT)


def test_a_stacked_table_names_each_of_its_values(open_page: Callable[..., Page]) -> None:
    page = open_page("sweep", PHONE)
    names = page.evaluate("""() => [...document.querySelectorAll('#loads td')]
      .filter(one => getComputedStyle(one, '::before').content.length < 3).length""")
    assert names == 0
    assert page.locator("#loads table[role=table] tr[role=row] td[role=cell]").count() > 10


def test_a_text_that_is_lost_or_covered_would_be_found(open_page: Callable[..., Page]) -> None:
    page = open_page("failed")
    page.evaluate("""() => { const [one, two] = document.querySelectorAll('#ttft svg.wide text');
      for (const name of ['x', 'y', 'text-anchor']) two.setAttribute(name, one.getAttribute(name));
      document.querySelector('#itl svg.wide text').setAttribute('x', '900');
      document.querySelector('#itl svg.narrow').style.display = 'block'; }""")
    faults = " ".join(page.evaluate(FAULTS))
    assert "lies on" in faults
    assert "leaves the picture" in faults
    assert "itl: 2 pictures" in faults


def test_light_and_dark_follow_the_reader_and_paper_is_light(open_page: Callable[..., Page]) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    page = open_page("sweep", scheme="dark")
    assert page.evaluate(ground) == f"rgb{rgb(DARK['ground'])}"
    assert page.evaluate(FAULTS) == []
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ground) == f"rgb{rgb(LIGHT['ground'])}"
    assert open_page("sweep").evaluate(ground) == f"rgb{rgb(LIGHT['ground'])}"


def test_on_paper_nothing_is_cut_at_its_right_edge(open_page: Callable[..., Page]) -> None:
    # A4 without its margins, in pixels of 1/96 inch.
    page = open_page("sweep", 695)
    page.emulate_media(media="print")
    cut = page.evaluate("""() => [...document.querySelectorAll('figure svg, th, td, p, li, h3')]
      .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('details'))
      .map(one => one.outerHTML.slice(0, 90))""")
    assert cut == []
    assert page.evaluate("() => getComputedStyle(document.querySelector('nav')).display") == "none"


def test_a_keyboard_reaches_the_figures_their_tables_and_what_scrolls(open_page: Callable[..., Page]) -> None:
    page = open_page("sweep", NARROW)
    focus = "() => document.activeElement.tagName + ' ' + (document.activeElement.getAttribute('class') || '')"
    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "A skip"
    page.keyboard.press("Enter")
    page.locator("#heat .draw").focus()
    page.keyboard.press("Tab")
    assert page.evaluate(focus).startswith("SUMMARY")
    page.keyboard.press("Enter")
    assert page.locator("#heat details table").is_visible()


def test_every_picture_and_every_table_has_a_name_for_who_does_not_see_it(open_page: Callable[..., Page]) -> None:
    page = open_page("pair")
    nameless = page.evaluate("""() => [...document.querySelectorAll('svg, [role=region], section')]
      .filter(one => !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby'))).length""")
    assert nameless == 0
    assert page.locator("h1").count() == 1
    assert page.evaluate("() => document.documentElement.lang") == "en"
    assert page.get_by_role("img", name="Throughput over users").count() >= 1


def test_hostile_text_runs_nothing_and_is_read_as_it_is(open_page: Callable[..., Page]) -> None:
    page = open_page("hostile")
    assert page.locator("script, img").count() == 0
    assert "<script>alert(1)</script>" in page.locator("h1").inner_text()
