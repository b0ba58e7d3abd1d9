"""The site of this repository: built without a network, whole on a phone, and searched from a folder as well."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import running_browser
from tools.site.versions import add_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
BUILD = "import sys; from pathlib import Path; from tools.site.build import ROOT, build_site\n"
BUILD += "build_site(ROOT, Path(sys.argv[1]))"
# Wide tables, long blocks, pictures, layers.
WIDEST = (
    "index",
    "docs/stacks",
    "docs/compare",
    "docs/architecture",
    "docs/simulated-timing",
    "docs/operation-arguments",
)
RESULTS = """() => [...document.querySelectorAll('*')].flatMap(
  one => one.shadowRoot ? [...one.shadowRoot.querySelectorAll('a')].map(link => link.href) : [])"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the working tree, with a release to switch to; built where no network is, if this user may."""
    folder = tmp_path_factory.mktemp("built") / "site"
    made = subprocess.run(
        [sys.executable, "tools/toolchain", "site"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert made.returncode == 0, made.stderr
    alone = ["unshare", "--net", "--map-root-user"]
    is_allowed = subprocess.run([*alone, "true"], capture_output=True, check=False, timeout=60).returncode == 0
    command = [*(alone if is_allowed else []), sys.executable, "-c", BUILD, str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    release = tmp_path_factory.mktemp("release")
    (release / "index.html").write_text("0.0.1")
    add_version(folder, "0.0.1", release)
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address of a server of the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all of these tests."""
    with running_browser() as started:
        yield started


def new_page(browser: Browser, width: int) -> tuple[Page, list[str]]:
    """A page that lists what it asks for, and what its console says."""
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    events: list[str] = []
    page.on("request", lambda request: events.append(request.url))
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("console", lambda message: events.append(message.text))
    return page, events


def test_pages_ask_nobody_else_and_fit_a_phone(address: str, browser: Browser) -> None:
    page, events = new_page(browser, 390)
    for name in WIDEST:
        page.goto(f"{address}/next/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.evaluate("document.querySelector('article').style.width = '500px'")
    assert page.evaluate("document.documentElement.scrollWidth") > 390
    assert [event for event in events if not event.startswith(address)] == []


@pytest.mark.parametrize("place", ["server", "folder"])
def test_search_finds_a_page(site: Path, address: str, browser: Browser, place: str) -> None:
    page, _ = new_page(browser, 1280)
    page.goto(f"{address}/next/index.html" if place == "server" else (site / "next/index.html").as_uri())
    page.click("button:has-text('Search')")
    page.keyboard.type("adapters")
    page.wait_for_function(f"({RESULTS})().some(link => link.includes('docs/adapters.html?h=adapters'))")


def test_the_newest_release_is_shown_and_the_switcher_lists_all(address: str, browser: Browser) -> None:
    page, _ = new_page(browser, 1280)
    page.goto(f"{address}/index.html")
    page.wait_for_url(f"{address}/0.0.1/index.html")
    page.goto(f"{address}/next/docs/start.html")
    page.wait_for_selector(".md-version__item", state="attached")
    assert [item.strip() for item in page.locator(".md-version__item").all_text_contents()] == ["0.0.1", "next"]
