"""A refresh that is killed between two pages of the list leaves the price file and its folder as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bezel_catalog.prices import parse_prices
from catalog_support.fake_billing_catalog import list_skus
from tests.support.rest.fake_google import Answer, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RUN = "import sys; from bezel.cli.main import main; sys.exit(main(['catalog', 'refresh', '--write']))"


@pytest.fixture
def package(tmp_path):
    for package in ("bezel", "packages/base/bezel_base", "packages/catalog/bezel_catalog"):
        target = tmp_path / Path(package).name
        shutil.copytree(ROOT / package, target, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def start(package, url):
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT": f"{url}/v1/",
        "GOOGLE_OAUTH_ACCESS_TOKEN": "planted",
    }
    return subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=package, env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("killed", [True, False])
def test_a_kill_between_pages_writes_nothing_and_no_kill_writes_all(package, killed):
    data = package / "bezel_catalog" / "data"
    before = (data / "prices.csv").read_text()
    rows = parse_prices(before)
    names, skus, go_on = sorted(path.name for path in data.iterdir()), list_skus(rows), threading.Event()

    def route(call):
        service = call.path.split("/")[3]
        if call.query.get("pageToken"):
            go_on.wait(60)
            return Answer(json={"skus": []})
        return Answer(json={"skus": skus[service], "nextPageToken": "2"})

    with serving() as server:
        server.routes.append(route)
        process = start(package, server.url)
        try:
            until(lambda: len(server.calls) >= 2)  # the first page is read, the second one asked for
            if killed:
                process.kill()
            go_on.set()
            code = process.wait(60)
        finally:
            process.kill()
            process.stdout.close()
            process.wait(60)
    after = (data / "prices.csv").read_text()
    assert (code == 0) is not killed
    assert (after == before) is killed
    assert {row.key for row in parse_prices(after)} >= {row.key for row in rows}
    assert sorted(path.name for path in data.iterdir()) == names
