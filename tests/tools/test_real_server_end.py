"""A real server that a test starts leaves no process behind, whether it started or not."""

import re
from pathlib import Path

import pytest

from tests.support.ended import has_ended
from tests.support.real_vllm import SECONDS, TIMEOUT, real_vllm

TESTS = Path(__file__).parents[1]
# Both start another process, as vLLM does its engine, and name it. The second serves its folder.
STUCK = "#!/bin/sh\nsleep 1000 & echo $! > engine\nwait\n"
SERVING = """#!/bin/sh
for each; do case $each in --port=*) port=${each#--port=};; esac; done
sleep 1000 & echo $! > engine
python3 -m http.server --bind 127.0.0.1 "$port"
"""


@pytest.fixture
def installed_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that stands for vLLM's."""
    program = tmp_path / "installed" / "venv" / "bin" / "vllm"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.setenv("BEZEL_REAL_VLLM", str(tmp_path / "installed"))
    return program


@pytest.mark.slow
def test_a_server_that_is_never_healthy_leaves_no_process(installed_server: Path, tmp_path: Path) -> None:
    installed_server.write_text(STUCK)
    with pytest.raises(AssertionError), real_vllm(tmp_path, seconds=8.0):
        pass
    assert has_ended(int((tmp_path / "engine").read_text()))


@pytest.mark.slow
def test_a_server_that_was_healthy_leaves_no_process(installed_server: Path, tmp_path: Path) -> None:
    installed_server.write_text(SERVING)
    (tmp_path / "health").touch()
    with real_vllm(tmp_path, seconds=60.0) as (url, _):
        assert url.startswith("http://127.0.0.1:")
        engine = int((tmp_path / "engine").read_text())
    assert has_ended(engine)


def test_every_test_of_a_real_server_may_take_as_long_as_its_start() -> None:
    assert TIMEOUT > SECONDS
    texts = {path: path.read_text() for path in TESTS.rglob("test_*.py") if path != Path(__file__)}
    users = {str(path): text for path, text in texts.items() if re.search(r"with .*real_vllm\(", text)}
    assert len(users) >= 4
    assert [
        name for name, text in users.items() if not re.search(r"mark\.timeout\((2 \* TIMEOUT|TIMEOUT|900)\)", text)
    ] == []
