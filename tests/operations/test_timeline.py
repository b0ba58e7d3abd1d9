"""Timeline of a diagnosis: the oldest first, the past apart, times absolute and relative, the next step a command."""

from __future__ import annotations

from typing import Any

import pytest

from bezel.operations.diagnosis.rules import Finding
from bezel.operations.diagnosis.timeline import steps_of, timeline_of
from bezel.operations.diagnosis.timeline_text import timeline_lines

NOW = 1_790_000_000.0  # 2026-09-21T14:13:20Z
READY = {"llm-00002-abc": "2026-09-21T13:20:00Z", "llm-00003-xyz": ""}


def finding(**changes: Any) -> Finding:
    values = {
        "kind": "gpu_memory",
        "source": "log",
        "cause": "the GPU ran out of memory",
        "repair": "lower vllm.max-num-seqs.",
        "evidence": "ERROR torch.OutOfMemoryError",
        "at": "2026-09-21T14:11:00Z",
        "is_past": False,
    }
    return Finding(**values | changes)


FINDINGS = (
    finding(),
    finding(cause="the queue is long", source="metrics", at=None, evidence="queue 9", repair="see `bezel metrics`."),
    finding(cause="the disk was full", at="2026-09-21T13:00:00.5Z", is_past=True),
)


def test_a_timeline_is_in_the_order_of_time() -> None:
    timeline = timeline_of(FINDINGS, READY, NOW)
    assert [(each.finding, each.phase, each.age_seconds) for each in timeline] == [
        (3, "past", 4399),
        (None, "past", 3200),
        (1, "now", 140),
        (2, "now", None),
    ]
    assert timeline[1].event == "llm-00002-abc was found ready"


def test_the_text_sets_the_past_apart_and_ends_with_commands() -> None:
    text = "\n".join(timeline_lines(timeline_of(FINDINGS, READY, NOW), FINDINGS, steps_of(FINDINGS, "dev")))
    past, _, rest = text.partition("\nnow:\n")
    present, _, steps = rest.partition("\nnext:\n")
    assert "  2026-09-21 13:00:00 UTC, 73 min ago  log\n    the disk was full\n" in past
    assert "  2026-09-21 14:11:00 UTC, 2 min ago  log\n    [1] the GPU ran out of memory\n" in present
    assert "  at this reading  metrics\n    [2] the queue is long\n      > queue 9" in present
    assert steps.splitlines() == [
        "  [1] lower vllm.max-num-seqs.",
        "        bezel plan dev",
        "        bezel deploy dev",
        "  [2] see `bezel metrics`.",
        "        bezel metrics dev",
    ]


def test_a_text_fits_a_terminal_of_80_columns() -> None:
    long = finding(cause="a long cause " * 20, evidence="a long line " * 30, repair="do this " * 40)
    lines = list(timeline_lines(timeline_of((long,), {}, NOW), (long,), steps_of((long,), "dev")))
    assert max(len(line) for line in lines) < 80


def test_nothing_past_has_no_next_step() -> None:
    assert steps_of((finding(is_past=True),), "dev") == ()
    assert list(timeline_lines((), (), ())) == []


@pytest.mark.parametrize(
    ("repair", "commands"),
    [
        ("raise vllm.max-num-seqs (`bezel plan` checks it).", ("bezel plan 'my stack'", "bezel deploy 'my stack'")),
        ("`bezel secret set hf` asks for its value. Afterwards run the same command again: it creates one.",
         ("bezel secret set hf", "bezel deploy 'my stack'")),
        ("`.venv/bin/bezel local recover STACK --adopt`.", ("bezel local recover 'my stack' --adopt",)),
        ("delete it (`gcloud run services delete llm`).", ("bezel logs 'my stack' --since 2026-09-21T14:10:00Z",)),
        ("create it with `bezel secret set NAME`.", ("bezel logs 'my stack' --since 2026-09-21T14:10:00Z",)),
    ],
    ids=["a setting", "a command, then a deploy", "the stack's name", "nothing that deletes", "nothing to fill in"],
)  # fmt: skip
def test_a_repair_has_commands_that_can_be_typed(repair: str, commands: tuple[str, ...]) -> None:
    (step,) = steps_of((finding(repair=repair),), "my stack")
    assert (step.action, step.commands) == (repair, commands)


def test_a_finding_without_a_time_is_read_in_the_log_of_an_hour() -> None:
    (step,) = steps_of((finding(at="no time", repair="read the log."),), "dev")
    assert step.commands == ("bezel logs dev --since 1h",)
