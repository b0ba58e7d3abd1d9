"""`bezel init` on localcloud, under the real engine: made, unchanged, kept while it is used, destroyed, made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.bootstrap.setup_harness import SetupHarness, forget

# Key rings and keys, which Google never deletes, are no resources of the inventory; nor are pools that are marked.
KEPT = {"enabledApis"}

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[SetupHarness]:
    made = SetupHarness.new(tmp_path)
    yield made
    made.stop()


def test_the_life_of_a_project(setup: SetupHarness) -> None:
    before = setup.exists()
    first = setup.init()
    assert first.code == 0, first.text
    assert "BEZEL_IDENTITY_PROVIDER" in first.text
    assert [name for name in setup.objects() if "/stacks/" in name and name.endswith(".json")]
    assert not (setup.home / "state").exists()

    # Also on a machine that knows nothing but the passphrase.
    passphrase = (setup.home / "passphrase").read_text()
    forget(setup.home)
    setup.home.mkdir()
    (setup.home / "passphrase").write_text(passphrase)
    second = setup.init()
    assert (second.code, "0 changes" in second.text) == (0, True), second.text

    stack = ".pulumi/stacks/bezel/prod.json"
    setup.put(stack)
    refused = setup.destroy()
    assert (refused.code, "bezel/prod" in refused.text) == (1, True), refused.text
    there = setup.exists()
    guarded = setup.pulumi("destroy", "--yes", "--skip-preview")
    assert (guarded.code != 0, "bezel/prod" in guarded.text) == (True, True), guarded.text
    assert {**setup.exists(), "objects": []} == {**there, "objects": []}

    setup.remove(stack)
    destroyed = setup.destroy()
    assert destroyed.code == 0, destroyed.text
    assert "Google keeps the key ring" in destroyed.text
    left = {kind: names for kind, names in setup.exists().items() if before.get(kind) != names}
    assert {*left} <= KEPT, left
    again = setup.init()
    assert again.code == 0, again.text
