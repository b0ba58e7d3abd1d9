"""A program with own folders `components`, `policies`, `stacks` … deploys Bezel's components from its wheels."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from bezel_components.dynamic_plugin.unpickling import load_provider
from bezel_smoke.health import HealthCheckProvider
from tests.support.tools.fresh_environment import FreshEnvironment
from tests.support.tools.own_program import FOLDERS, OwnProgram, renamed_pickle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EARLIER = {
    "bezel_components.providers.model_files": "components.providers.model_files",
    "bezel_smoke.health": "smoke.health",
}
HEALTH = "gASVMQAAAAAAAACMEmJlemVsX3Ntb2tlLmhlYWx0aJSME0hlYWx0aENoZWNrUHJvdmlkZXKUk5QpgZQu"


@pytest.fixture
def shop(tmp_path: Path, wheels: Path) -> Iterator[OwnProgram]:
    environment = FreshEnvironment.make(tmp_path / "environment", wheels, "bezel-smoke")
    made = OwnProgram.make(tmp_path, environment)
    made.start()
    yield made
    made.stop()


@pytest.mark.wide
@pytest.mark.timeout(900)
def test_a_program_with_folders_of_these_names_lives_from_wheels(shop: OwnProgram) -> None:
    seen = shop.engine("preview")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    assert "dynamic/components:ModelFiles model create" in seen.stdout
    made = shop.engine("up", "--yes", "--skip-preview")
    assert made.returncode == 0, made.stdout + made.stderr
    outputs = shop.outputs()
    assert outputs["own"] == [*FOLDERS]
    assert outputs["module"] == "of the shop"
    assert outputs["components"].startswith(str(shop.environment.packages))
    assert shop.inventory()["services"]

    # The state of a deploy before the packages had names of their own.
    assert shop.rename_providers(lambda module: EARLIER[module]) == 4
    again = shop.engine("up", "--yes", "--skip-preview")
    assert again.returncode == 0, again.stdout + again.stderr
    assert not {"replaced", "deleted", "created"} & set(again.stdout.split()), again.stdout
    shop.rename_providers(lambda module: EARLIER.get(module, module))
    refreshed = shop.engine("refresh", "--yes", "--skip-preview")
    assert refreshed.returncode == 0, refreshed.stdout + refreshed.stderr

    # A name that was never there is refused; with the earlier ones everything is destroyed.
    shop.rename_providers(lambda module: EARLIER.get(module, module))
    earlier = shop.state_file.read_text()
    shop.rename_providers(lambda _: "components.providers.never")
    refused = shop.engine("destroy", "--yes", "--skip-preview")
    assert refused.returncode != 0
    assert "components.providers.never" in refused.stdout + refused.stderr
    assert shop.inventory()["services"]
    shop.state_file.write_text(earlier)
    ended = shop.engine("destroy", "--yes", "--skip-preview")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "services" not in shop.inventory()


@pytest.mark.parametrize("module", ["smoke.health", "a.longer.name.of.a.module"])
def test_a_renamed_pickle_has_the_other_name_alone(module: str) -> None:
    renamed = base64.b64decode(renamed_pickle(HEALTH, lambda _: module))
    assert module.encode() in renamed
    assert renamed_pickle(renamed_pickle(HEALTH, lambda _: module), lambda _: "bezel_smoke.health") == HEALTH


def test_the_pickle_of_the_table_is_that_of_the_check() -> None:
    assert type(load_provider(base64.b64decode(HEALTH))) is HealthCheckProvider
