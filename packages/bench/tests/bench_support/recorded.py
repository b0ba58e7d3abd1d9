"""Responses that were recorded from a real vLLM 0.32.0 (`fixtures/vllm`)."""

from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vllm"


def recorded_body(name: str, folder: Path = FIXTURES) -> str:
    """The body of a recorded exchange: what follows its response headers."""
    return (folder / name).read_text().split("\n< vary: Origin\n\n", 1)[1].strip()


def recorded_stream(name: str) -> list[tuple[float, bytes]]:
    """The lines of a recorded stream: (milliseconds, bytes)."""
    lines = [line for line in (FIXTURES / name).read_text().splitlines() if line.startswith("+")]
    return [
        (float(line[1:].split("ms")[0]), line.split("ms ", 1)[1][1:-1].encode().replace(rb"\n", b"\n"))
        for line in lines
    ]
