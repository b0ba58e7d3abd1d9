"""Prompts of an exact length in tokens, by number, deterministic in every worker.

A prompt is `LEAD`, then its own words (which come first so that no cached prefix serves it), then words that fill it
up. Its own words are picked by a digest of seed, run, every setting that shapes the run, and its number: prompts of
another run differ. A word is one token (`bezel_bench.prompts.token_calibration`), so lengths are counted in words;
the server counts the longest prompt of each load before it is sent.

In a conversation the model's turns are generated words too, unless the server's own responses are asked for: every run
of a plan sends the same requests, and a server that cached its own response matches the prompt before it, not the
response.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.load.plan import Bodies, Body, Load, PromptPlan
from bezel_bench.prompts.datasets import read_text
from bezel_bench.prompts.file_prompts import file_prompts
from bezel_bench.prompts.frames import Frame, Prompts, frame, json_escape
from bezel_bench.prompts.lengths import Lengths, lengths_of
from bezel_bench.prompts.media import with_media
from bezel_bench.prompts.token_calibration import LEAD, Tokenizer, Vocabulary
from bezel_bench.prompts.traces import BLOCK_TOKENS, Traced, read_trace
from bezel_bench.server.http_probe import Ask

_MOST_DISTINCT = 12  # own words at the beginning of a prompt
_FILLERS = 8
# Of prompts from a file, in which no word is drawn: they shape no generated prompt.
_OF_FILE = ("column", "length_column", "min_chars", "max_chars")
# With fewer bits two of some thousand prompts may begin alike.
_BITS = 32


@dataclass(frozen=True)
class _WordPicker:
    """Words selected by a key: the words of a position are predictable only with the key."""

    key: bytes
    token_words: tuple[str, ...]
    table: tuple[bytes, ...]

    def pick_distinct(self, count: int, *place: int) -> bytes:
        return self.pick_at(count, repr(place).encode())

    def pick_at(self, count: int, place: bytes) -> bytes:
        """Return so many words (two or more) of a place, written as a tuple."""
        digest = blake2b(place, key=self.key, digest_size=_MOST_DISTINCT).digest()
        return b"".join(itemgetter(*digest[:count])(self.table))

    def fill(self, count: int, *place: int) -> bytes:
        dice = random.Random(self.key + repr(place).encode())  # noqa: S311 - words, no secrets
        return "".join(f" {word}" for word in dice.choices(self.token_words, k=count)).encode()


@dataclass(frozen=True)
class _Single:
    """One request a number: JSON with its group's prefix (or none), its own words, words that fill it up, and JSON.

    `begins` are those before the own words, by group, and `ends` those after them.
    """

    picker: _WordPicker
    begins: tuple[bytes, ...]
    ends: tuple[bytes, ...]
    grouped: bool
    distinct: int
    asked_tokens: int
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:  # noqa: ARG002 - see Bodies
        group = index % len(self.begins)
        distinct = self.picker.pick_at(self.distinct, b"(%d,)" % index)
        data = self.begins[group] + distinct + self.ends[index % _FILLERS]
        return Body(data, self.asked_tokens, 0, group if self.grouped else -1)


@dataclass(frozen=True)
class _Ranked:
    """One request a number, of `texts` to rank."""

    frame: Frame
    text: _Single
    texts: int
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:  # noqa: ARG002 - see Bodies
        texts = [self.text.body(index * self.texts + number).data for number in range(self.texts)]
        group = index % len(self.text.begins) if self.text.grouped else -1
        return Body(self.frame.body(texts), self.frame.asked_tokens, 0, group)


@dataclass(frozen=True)
class _Varied:
    """Prompts and responses of lengths drawn for each number; None is the same length for all.

    `begin` ends where the number of `max_tokens` follows. `least` words make a prompt distinct.
    """

    begin: bytes
    frame: Frame
    picker: _WordPicker
    overhead: int
    least: int
    seed: str
    inputs: Lengths | None
    outputs: Lengths | None
    input_tokens: int
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:  # noqa: ARG002 - see Bodies
        asked = self.outputs.of(index, f"{self.seed}/out") if self.outputs else self.frame.asked_tokens
        room = (self.inputs.of(index, f"{self.seed}/in") if self.inputs else self.input_tokens) - self.overhead
        distinct = max(self.least, min(_MOST_DISTINCT, room))
        text = _LEAD + self.picker.pick_distinct(distinct, index) + self.picker.fill(max(0, room - distinct), 7, index)
        begin = self.begin + str(asked).encode() + self.frame.begin
        return Body(replace(self.frame, begin=begin).body((text,)), asked)


@dataclass(frozen=True)
class _Conversation:
    """Several turns a number; each repeats the earlier ones."""

    frame: Frame
    picker: _WordPicker
    turns: int
    distinct: int
    first: bytes
    later: bytes
    answer: bytes

    def body(self, index: int, turn: int = 0) -> Body:
        return self._turn(index, turn, [_LEAD + self.answer] * turn)

    def _turn(self, index: int, turn: int, answers: Sequence[bytes]) -> Body:
        texts = [_LEAD + self.picker.pick_distinct(self.distinct, index, 0) + self.first]
        for number, answer in enumerate(answers, 1):
            texts += [answer, _LEAD + self.picker.pick_distinct(self.distinct, index, number) + self.later]
        return Body(self.frame.body(texts), self.frame.asked_tokens, turn)


@dataclass(frozen=True)
class _Replies(_Conversation):
    """The same with the server's own responses."""

    def reply(self, index: int, turn: int, responses: Sequence[str]) -> Body:
        return self._turn(index, turn, [json_escape(text) for text in responses])


@dataclass(frozen=True)
class _Recorded:
    """The requests of a trace: equal blocks have equal words, and what no block covers has words of its own.

    `room` is what the template leaves of a prompt's length. Frames differ by the length of the response.
    """

    frames: Mapping[int, Frame]
    picker: _WordPicker
    entries: tuple[Traced, ...]
    overhead: int
    turns: int = 1

    def body(self, index: int, turn: int = 0) -> Body:  # noqa: ARG002 - see Bodies
        entry = self.entries[index % len(self.entries)]
        room, text = max(0, entry.input_tokens - self.overhead), _LEAD
        for block in entry.blocks:
            text += self.picker.fill(min(room, BLOCK_TOKENS), 5, block)
            room -= min(room, BLOCK_TOKENS)
        text += self.picker.fill(room, 6, index)
        made = self.frames[entry.output_tokens]
        return Body(made.body((text,)), made.asked_tokens)


_LEAD = LEAD.encode()
# Stands for the own words of a prompt; no JSON holds it.
_OWN = b"\0"


def make_prompts(load: Load, ask: Ask, vocabulary: Vocabulary | None = None) -> Prompts:
    """Make the prompts of a load: one request to learn the server's tokens, one to verify a prompt's length.

    Args:
        load: The load.
        ask: Sends the server a request; a server without token counts gets prompts of as many words, which is noted.
        vocabulary: The vocabulary, if already learned from the same server and model: it saves the first request.

    Raises:
        UserError: A prompt would be too short for its required words, or the file cannot be read.
    """
    plan = load.prompts
    if plan.images or plan.audio_seconds:
        texts = make_prompts(replace(load, prompts=replace(plan, images=0, audio_seconds=0.0)), ask, vocabulary)
        media = [f"{plan.images} images of {plan.image_size} pixels"] if plan.images else []
        media += [f"{plan.audio_seconds:g} s of audio"] if plan.audio_seconds else []
        note = f"each prompt has {' and '.join(media)} beside its text; the requested length is the text's"
        return Prompts(with_media(texts.bodies, plan), (*texts.notes, note))
    made = frame(load)
    if plan.kind == "trace":
        return _of_trace(load, vocabulary or learn(load, ask), Tokenizer(ask, load))
    if plan.kind == "lengths":
        return _of_lengths(load, vocabulary or learn(load, ask), Tokenizer(ask, load))
    if plan.kind == "file":
        return file_prompts(load)
    tokenizer = Tokenizer(ask, load)
    learned = vocabulary or learn(load, ask)
    bodies, wanted = _bodies(load, made, learned, tokenizer)
    doubt = learned.doubt
    if not doubt:
        counted = tokenizer.tokens(bodies.body(0, bodies.turns - 1).data)
        if isinstance(counted, str):
            doubt = counted
        elif len(counted) != wanted:
            doubt = f"the server counts {format_count(len(counted), 'tokens')} in a prompt made for {wanted}"
    if load.prompts.served_answers and not doubt:
        doubt = "later turns hold the server's own responses"
    notes = (f"prompt lengths are approximate: {doubt}",) if doubt else ()
    return Prompts(bodies, notes)


def learn(load: Load, ask: Ask) -> Vocabulary:
    """Learn the vocabulary of a load's server, for several loads of the same model and endpoint."""
    made = frame(load)
    return Tokenizer(ask, load).learn(lambda text: made.body((json_escape(text),)))


def _of_trace(load: Load, vocabulary: Vocabulary, tokenizer: Tokenizer) -> Prompts:
    """The requests of a trace, of its lengths and with its shared prefixes.

    Raises:
        UserError: The file cannot be read.
    """
    file = Path(load.prompts.file)
    entries = read_trace(file, read_text(file, "--trace"))
    lengths = {entry.output_tokens for entry in entries}
    frames = {each: frame(replace(load, prompts=replace(load.prompts, output_tokens=each))) for each in lengths}
    picker = _word_picker(load, vocabulary)
    recorded = _Recorded(frames, picker, entries, vocabulary.head + vocabulary.tail)
    doubt = vocabulary.doubt
    if not doubt:
        longest = max(range(len(entries)), key=lambda number: entries[number].input_tokens)
        counted = tokenizer.tokens(recorded.body(longest).data)
        wanted = max(entries[longest].input_tokens, vocabulary.head + vocabulary.tail)
        if isinstance(counted, str) or len(counted) != wanted:
            doubt = counted if isinstance(counted, str) else f"the server counts {len(counted)} tokens, not {wanted}"
    note = (
        f"{format_count(len(entries), 'requests')} of {file.name}: lengths and shared prefixes are "
        "those of the trace, the words are not"
    )
    return Prompts(recorded, (note, *([f"prompt lengths are approximate: {doubt}"] if doubt else [])))


def _of_lengths(load: Load, vocabulary: Vocabulary, tokenizer: Tokenizer) -> Prompts:
    """Prompts whose lengths are drawn, those of their responses too.

    Raises:
        UserError: A distribution cannot be read, or a field of every request fixes the responses' length.
    """
    plan = load.prompts
    fixed = [name for name in ("max_tokens", "max_completion_tokens") if name in load.extra_body]
    if fixed and plan.output_lengths:
        consequence = f"{fixed[0]} of --extra-body gives all responses one length."
        raise UserError(Problem("--output-lengths", plan.output_lengths, consequence, "leave one of them out."))
    made = frame(load)
    before, key, after = made.begin.partition(b'"max_tokens": ')
    split = (before + key, replace(made, begin=after.lstrip(b"0123456789"))) if key else (b"", made)
    inputs = lengths_of("--input-lengths", plan.input_lengths) if plan.input_lengths else None
    outputs = lengths_of("--output-lengths", plan.output_lengths) if plan.output_lengths else None
    picker = _word_picker(load, vocabulary)
    least = math.ceil(_BITS / math.log2(len(vocabulary.token_words)))
    overhead = vocabulary.head + vocabulary.tail
    varied = _Varied(*split, picker, overhead, least, f"{plan.seed}/{plan.run}", inputs, outputs, plan.input_tokens)
    notes = [f"lengths are drawn for each request; a prompt has at least {overhead + least} tokens"]
    doubt = vocabulary.doubt
    if not doubt:
        counted = tokenizer.tokens(varied.body(0).data)
        doubt = counted if isinstance(counted, str) else ""
    return Prompts(varied, (*notes, *([f"prompt lengths are approximate: {doubt}"] if doubt else [])))


def _word_picker(load: Load, vocabulary: Vocabulary) -> _WordPicker:
    table = tuple(f" {vocabulary.token_words[at % len(vocabulary.token_words)]}".encode() for at in range(256))
    return _WordPicker(_key(load), vocabulary.token_words, table)


def _bodies(load: Load, made: Frame, vocabulary: Vocabulary, tokenizer: Tokenizer) -> tuple[Bodies, int]:
    """Return the bodies, and the tokens of the last turn of each."""
    plan = load.prompts
    picker = _word_picker(load, vocabulary)
    room = plan.input_tokens - vocabulary.head - vocabulary.tail
    if plan.kind == "multi_turn" and plan.turns > 1:
        more = _turn_frame(made, vocabulary, tokenizer)
        distinct = _distinct_words(plan, min(room, plan.input_tokens - more), vocabulary)
        conversation = (_Replies if plan.served_answers else _Conversation)(
            made,
            picker,
            plan.turns,
            distinct,
            picker.fill(max(0, room - distinct), 0),
            picker.fill(max(0, plan.input_tokens - more - distinct), 1),
            picker.fill(plan.output_tokens, 2),
        )
        return conversation, plan.turns * plan.input_tokens + (plan.turns - 1) * plan.output_tokens
    shared = plan.prefix_tokens - vocabulary.head if plan.kind == "shared_prefix" else 0
    if shared < 0 and not vocabulary.doubt:
        consequence = f"the server's template puts {vocabulary.head} tokens before a text, which all prompts share."
        repair = f"give more than {vocabulary.head}."
        raise UserError(Problem("--prefix-tokens", plan.prefix_tokens, consequence, repair))
    distinct = _distinct_words(plan, room - shared, vocabulary)
    groups = plan.groups if plan.kind == "shared_prefix" else 1
    prefixes = tuple(_LEAD + picker.fill(max(0, shared), 3, group) for group in range(groups))
    fillers = tuple(picker.fill(max(0, room - shared - distinct), 4, number) for number in range(_FILLERS))
    grouped = plan.kind == "shared_prefix"
    if plan.documents > 1:
        text = _Single(picker, prefixes, fillers, grouped, distinct, made.asked_tokens)
        return _Ranked(made, text, plan.documents), plan.input_tokens
    before, _, after = made.body((_OWN,)).partition(_OWN)
    begins, ends = tuple(before + prefix for prefix in prefixes), tuple(filler + after for filler in fillers)
    return _Single(picker, begins, ends, grouped, distinct, made.asked_tokens), plan.input_tokens


def _distinct_words(plan: PromptPlan, room: int, vocabulary: Vocabulary) -> int:
    """Return the number of distinct words of a text with room for `room` words.

    Raises:
        UserError: Too few to make some thousand texts distinct.
    """
    needed = math.ceil(_BITS / math.log2(len(vocabulary.token_words)))
    if room < needed and not vocabulary.doubt:
        consequence = (
            f"the template and the shared prefix leave room for {max(0, room)} words, so prompts would begin alike and "
            "be served from the cache."
        )
        repair = f"give {plan.input_tokens - room + needed} or more."
        raise UserError(Problem("--input-tokens", plan.input_tokens, consequence, repair))
    return max(needed, min(_MOST_DISTINCT, room))


def _turn_frame(made: Frame, vocabulary: Vocabulary, tokenizer: Tokenizer) -> int:
    """Return the tokens that one more turn adds beside its words and those of the response before it."""
    counted = tokenizer.tokens(made.body((_LEAD, _LEAD, _LEAD)))
    single = vocabulary.head + vocabulary.tail
    return single if isinstance(counted, str) else len(counted) - single


def _key(load: Load) -> bytes:
    shaping = (
        {name: value for name, value in asdict(load.prompts).items() if name not in _OF_FILE},
        repr(load.pattern),
        asdict(load.stop),
        load.target.endpoint,
    )
    return blake2b(repr(shaping).encode(), digest_size=32).digest()
