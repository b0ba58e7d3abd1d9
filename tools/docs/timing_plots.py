# /// script
# requires-python = ">=3.11"
# dependencies = ["matplotlib==3.10.8"]
# ///
"""Draw the curves of `docs/plots/timing.json` as SVG files beside it.

    uv run --script tools/docs/timing_plots.py

The same data gives the same bytes; each file names the data that it was drawn from, so that a test detects a stale one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parents[2] / "docs" / "plots"
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8a6fb0")
mpl.rcParams |= {"svg.hashsalt": "timing", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}


def main() -> None:
    """Draw all of them."""
    text = (FOLDER / "timing.json").read_text()
    data = json.loads(text)
    drawn_from = hashlib.sha256(text.encode()).hexdigest()[:16]
    for name, draw in {
        "users": users,
        "latency": latency,
        "context": context,
        "prefix": prefix,
        "blocks": blocks,
    }.items():
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        draw(figure, data)
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None, "Description": f"timing.json {drawn_from}"})


def users(figure: Figure, data: dict[str, Any]) -> None:
    """Throughput over users, beside its roof."""
    axes = _axes(figure, "users", "output tokens/s", x="log", y="log")
    for colour, prompt, points in _by_prompt(data):
        _line(axes, points, "users", "rate", colour, f"prompts of {prompt:,}")
        _line(axes, points, "users", "roof", colour, None, style=":")
    axes.plot([], [], ":", color="grey", label="the roof")
    axes.legend(fontsize=8)


def latency(figure: Figure, data: dict[str, Any]) -> None:
    """Time to the first token, and for each further one, over users."""
    first, second = figure.subplots(1, 2)
    for axes, key, title in (
        (first, "ttft", "time to the first token, s"),
        (second, "tpot", "time per output token, s"),
    ):
        _label(axes, "users", title, x="log", y="log")
        for colour, prompt, points in _by_prompt(data):
            _line(axes, points, "users", key, colour, f"prompts of {prompt:,}")
    first.legend(fontsize=8)


def context(figure: Figure, data: dict[str, Any]) -> None:
    """Throughput over the length of the prompt."""
    axes = _axes(figure, "tokens of a prompt", "output tokens/s, 32 users", x="log", y="log")
    for colour, (machine, points) in zip(COLOURS, data["context"].items(), strict=False):
        _line(axes, points, "prompt", "rate", colour, machine)
        _line(axes, points, "prompt", "roof", colour, None, style=":")
    axes.legend(fontsize=8)


def prefix(figure: Figure, data: dict[str, Any]) -> None:
    """The time to the first token over the share of the prompt that is cached."""
    axes = _axes(figure, "share of the prompt that all users share", "time to the first token, s (median)")
    _line(axes, data["prefix"], "shared", "ttft", COLOURS[0], None)


def blocks(figure: Figure, data: dict[str, Any]) -> None:
    """Preemptions and throughput over the size of the cache."""
    first, second = figure.subplots(1, 2)
    for axes, key, title in ((first, "preempted", "preemptions"), (second, "rate", "output tokens/s")):
        _label(axes, "blocks of the KV cache", title)
        _line(axes, data["blocks"], "blocks", key, COLOURS[1], None)


def _by_prompt(data: dict[str, Any]) -> list[tuple[str, int, list[dict[str, float]]]]:
    prompts = dict.fromkeys(point["prompt"] for point in data["users"])
    return [
        (colour, prompt, [point for point in data["users"] if point["prompt"] == prompt])
        for colour, prompt in zip(COLOURS, prompts, strict=False)
    ]


def _axes(figure: Figure, x_label: str, y_label: str, *, x: str = "linear", y: str = "linear") -> Axes:
    axes = figure.subplots()
    _label(axes, x_label, y_label, x=x, y=y)
    return axes


def _label(axes: Axes, x_label: str, y_label: str, *, x: str = "linear", y: str = "linear") -> None:
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_xscale(x, **({"base": 2} if x == "log" else {}))
    axes.set_yscale(y)
    if x == "log":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if y == "log":
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _line(
    axes: Axes, points: list[dict[str, float]], x: str, y: str, colour: str, label: str | None, *, style: str = "-"
) -> None:
    marker = "o" if style == "-" else ""
    axes.plot(
        [point[x] for point in points],
        [point[y] for point in points],
        style,
        color=colour,
        label=label,
        marker=marker,
        markersize=3,
    )


if __name__ == "__main__":
    main()
