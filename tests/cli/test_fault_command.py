"""`bezel local fault` as a user types it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel_base.errors import UserError
from bezel_localcloud import control
from bezel_localcloud.command.fault import add_fault
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.faults.kinds import KINDS
from tests.support.e2e import warm_localcloud

pytestmark = pytest.mark.slow  # whole processes

ROOT = Path(__file__).parent.parent.parent
Bezel = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bezel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Bezel:
    """The command in this process: exit code, standard output, standard error."""
    monkeypatch.chdir(ROOT)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["local", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """`--dir` of a cloud that runs."""
    directory = tmp_path_factory.mktemp("faults") / "cloud"
    warm_localcloud.start(directory)
    yield "--dir", str(directory)
    control.stop(directory)


def test_every_kind_and_every_parameter_is_listed(bezel: Bezel) -> None:
    code, out, _ = bezel("fault", "list")
    assert code == 0
    for kind in KINDS.values():
        assert f"\n{kind.name}: " in f"\n{out}"
        assert all(f" {parameter.name}={parameter.default}" in out for parameter in kind.parameters.values())


def test_a_fault_is_put_on_shown_and_taken_off(bezel: Bezel, place: tuple[str, str]) -> None:
    assert bezel("fault", "show", *place) == (0, "no active faults\n", "")
    code, out, _ = bezel("fault", "add", *place, "slow-start", "factor=3")
    assert code == 0
    assert out.startswith("active: slow-start factor=3.0\n")
    assert "bezel local fault clear slow-start" in out
    assert bezel("fault", "show", *place) == (0, "slow-start factor=3.0\n", "")
    assert bezel("fault", "clear", *place, "slow-start") == (0, "cleared: slow-start\n", "")
    assert bezel("fault", "clear", *place) == (0, "cleared: nothing, no fault was active\n", "")


@pytest.mark.parametrize(
    ("arguments", "expected", "text"),
    [
        (("add", "slow-strat"), 2, "fault = slow-strat\n   is not a kind of fault"),
        (("add", "slow-start", "factor=0"), 2, "factor = 0\n   is not a finite number of at least 1"),
        (("add", "slow-start", "factor"), 2, "write factor=VALUE"),
        (("add", "service-deleted"), 1, "No service is deployed"),
        (("clear", "slow-start"), 1, "is not active, so there is nothing to clear"),
        (("clear", "nonsense"), 2, "is not a kind of fault"),
    ],
)
def test_a_mistake_is_reported_with_what_would_be_right(
    bezel: Bezel, place: tuple[str, str], arguments: tuple[str, ...], expected: int, text: str
) -> None:
    code, out, err = bezel("fault", arguments[0], *place, *arguments[1:])
    assert (code, out) == (expected, "")
    assert text in err


def test_a_real_server_cannot_be_made_to_fail(tmp_path: Path) -> None:
    real = Endpoint(tmp_path, 1, "http://127.0.0.1:1", "vllm", 60)
    with pytest.raises(UserError, match="the services of this localcloud run a real one"):
        add_fault(real, "never-healthy", ())
