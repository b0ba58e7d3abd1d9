"""Requests of a file's entries: in order, over and over; of a conversation its first turns, one request each.

Owns which entries are sent. Leaves out what the file holds (`bezel_bench.prompts.datasets`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.load.plan import Body, Load, PromptPlan
from bezel_bench.prompts.datasets import read_entries
from bezel_bench.prompts.entries import Entry
from bezel_bench.prompts.frames import Frame, Prompts, frame, json_escape


@dataclass(frozen=True)
class _Entries:
    """The requests of a file, each with its requested tokens."""

    bodies: tuple[tuple[bytes, int], ...]
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:
        data, asked_tokens = self.bodies[index % (len(self.bodies) // self.turns) * self.turns + turn]
        return Body(data, asked_tokens, turn)


@dataclass(frozen=True)
class _RecordedTalks:
    """The conversations of a file with the server's own responses."""

    entries: tuple[Entry, ...]
    frames: Mapping[int | None, Frame]
    turns: int

    def body(self, index: int, turn: int = 0) -> Body:
        entry = self.entries[index % len(self.entries)]
        return _body(entry, self.frames, turn, self.turns)

    def reply(self, index: int, turn: int, responses: Sequence[str]) -> Body:
        entry = self.entries[index % len(self.entries)]
        made = self.frames[entry.output_tokens]
        messages: list[Mapping[str, Any]] = []
        for number, text in enumerate([*responses, None]):
            before = entry.turn(number - 1) if number else ()
            messages += [one for one in entry.turn(number)[len(before) :] if one["role"] != "assistant"]
            messages += [] if text is None else [{"role": "assistant", "content": text}]
        return Body(made.of_messages(messages), made.asked_tokens, turn)


def file_prompts(load: Load) -> Prompts:
    """The entries of a file as requests.

    Raises:
        UserError: The file cannot be read, has no entry of the wanted kind, or has messages that the endpoint does not
            take.
    """
    plan, name = load.prompts, Path(load.prompts.file).name
    every = read_entries(Path(plan.file), plan.column, plan.length_column)
    entries = [entry for entry in every if _is_sent(entry, plan)]
    if not entries:
        consequence = f"none of {format_count(len(every), 'entries')} has the turns (--turns) and the length asked for."
        repair = "lower --turns or --min-chars, or raise --max-chars."
        raise UserError(Problem("--file", plan.file, consequence, repair))
    made = frame(load)
    lengths = {entry.output_tokens for entry in entries}
    frames = {each: made if each is None else _frame_of(load, each) for each in lengths}
    if not made.chat:
        for number, entry in enumerate(entries, 1):
            if entry.text is None or plan.turns > 1:
                consequence = f"entry {number} has several messages, and this endpoint takes one text."
                raise UserError(Problem("--endpoint", load.target.endpoint, consequence, "leave --endpoint out."))
    sent, left_out = (format_count(number, "entries") for number in (len(entries), len(every) - len(entries)))
    notes = [f"{sent} of {name}, repeated in order: a repeated one may come from a cache"]
    if len(every) > len(entries):
        notes.append(f"{left_out} of {name} left out, by their turns or their length")
    if plan.served_answers:
        return Prompts(_RecordedTalks(tuple(entries), frames, plan.turns), tuple(notes))
    bodies = [_body(entry, frames, turn, plan.turns) for entry in entries for turn in range(plan.turns)]
    return Prompts(_Entries(tuple((one.data, one.asked_tokens) for one in bodies), plan.turns), tuple(notes))


def _is_sent(entry: Entry, plan: PromptPlan) -> bool:
    if entry.questions < plan.turns:
        return False
    length = entry.characters(plan.turns - 1 if plan.turns > 1 else None)
    return plan.min_chars <= length and (plan.max_chars is None or length <= plan.max_chars)


def _frame_of(load: Load, output_tokens: int) -> Frame:
    return frame(replace(load, prompts=replace(load.prompts, output_tokens=output_tokens)))


def _body(entry: Entry, frames: Mapping[int | None, Frame], turn: int, turns: int) -> Body:
    """The request of a turn; of an entry that is sent as one request, that of all its messages."""
    made = frames[entry.output_tokens]
    if turns == 1 and entry.text is not None:
        return Body(made.body((json_escape(entry.text),)), made.asked_tokens)
    return Body(made.of_messages(entry.messages if turns == 1 else entry.turn(turn)), made.asked_tokens, turn)
