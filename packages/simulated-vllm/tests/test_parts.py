"""The small parts: tokenizer, blocks, stop strings, numbers in /metrics, made-up JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_simulated_vllm.address import Address, listen_address
from bezel_simulated_vllm.api.structured import Room, smallest
from bezel_simulated_vllm.scheduling.blocks import BlockPool, chained_hashes
from bezel_simulated_vllm.scheduling.channel import Channel
from bezel_simulated_vllm.scheduling.detokenize import Choice
from bezel_simulated_vllm.scheduling.tokenizer import SPECIAL, TURN_END, decode, encode, token_strings


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_comes_back_from_its_tokens(text):
    assert decode(encode(text)) == text
    assert decode(encode(text, specials=False)) == text


@pytest.mark.slow
@given(st.text(alphabet=" abcxyzABC0123456789.,\n", max_size=120))
def test_ordinary_text_comes_back_too(text):
    assert decode(encode(text)) == text


def test_a_special_token_written_out_is_one_token_only_where_it_may_be():
    assert encode("<turn|>") == [TURN_END]
    assert len(encode("<turn|>", specials=False)) > 1


STORY = (
    "She opened the window and looked across the harbour, where several fishing boats were returning before the "
    "weather changed. Few had expected the meeting to last until evening, but the committee could not agree about "
    "the budget for the new library, and so they postponed the decision again."
)
MANUAL = (
    "The scheduler keeps every sequence that has already started, gives each of them its next token, and fills what is "
    "left of the batch with prompts from the queue. When the cache is exhausted, the sequence that arrived last is "
    "preempted and computed again later."
)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [(STORY, 1.2, 1.4), (MANUAL, 1.2, 1.4), ("xqzvkw jfpqzxv wvbkqjz zzxqwvkpj", 1.5, 3)],
)
def test_english_takes_as_many_tokens_as_with_a_real_vocabulary(text, least, most):
    """Gibberish takes more."""
    assert least <= len(encode(text)) / len(text.split()) <= most


def test_digits_are_tokens_of_their_own():
    assert len(encode("2026")) == 4


def test_tokens_are_shown_as_a_byte_level_vocabulary_shows_them():
    assert token_strings(encode("<bos> the\n")) == ["<bos>", "Ġthe", "Ċ"]
    assert len(set(SPECIAL)) == len(SPECIAL)


def test_an_unknown_token_is_shown_as_such():
    assert decode([2**31]) == "\ufffd"


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=40))
def test_blocks_are_neither_lost_nor_invented(operations):
    pool, sequences = BlockPool(100), []
    for kind, count in operations:
        if kind < 2:
            if pool.take(count):
                sequences.append((count, []))
        elif sequences and kind == 2:
            private, shared = sequences.pop()
            pool.give_back(private)
            pool.release(shared)
        elif sequences:
            private, shared = sequences.pop()
            hashes = list(range(1000, 1000 + min(private, count)))
            new = [value for value in hashes if value not in shared]
            pool.publish(new)
            sequences.append((private - len(new), shared + new))
        used = sum(private for private, _ in sequences) + len({value for _, shared in sequences for value in shared})
        assert pool.available == 100 - used >= 0
    for private, shared in sequences:
        pool.give_back(private)
        pool.release(shared)
    assert (pool.available, pool.usage) == (100, 0)


def test_idle_blocks_stay_known_until_others_need_the_room():
    pool = BlockPool(10)
    assert pool.take(4)
    pool.publish([1, 2, 3, 4])
    pool.release([1, 2, 3, 4])
    assert pool.count_cached([1, 2, 3, 4]) == 4
    assert pool.take(8)
    # The end of a prompt goes first: its beginning is what others share.
    assert pool.count_cached([1, 2, 3, 4]) == 2
    assert not pool.take(3)


def test_a_block_is_known_by_everything_before_it():
    same = chained_hashes([*range(64)] * 2, 64)
    other = chained_hashes([9, *range(1, 64), *range(64)], 64)
    assert len(same) == 2
    assert not set(same) & set(other)
    assert chained_hashes(list(range(64)), 64, "salt") != chained_hashes(list(range(64)), 64)
    assert chained_hashes(list(range(63)), 64) == []


class _Engine:
    def __init__(self) -> None:
        self.stopped = 0

    def stop(self, request) -> None:
        del request
        self.stopped += 1


class _Request:
    finished = None


def write(text: str, *, stops=(), keep=False, streams=True, parses=False):
    """Pieces of a choice that writes `text` token by token."""
    channel, engine = Channel(lambda channel: channel.wake()), _Engine()
    choice = Choice(0, stops, keep, streams, parses, channel, engine)
    choice.request = _Request()
    tokens = encode(text)
    for at, token in enumerate(tokens):
        choice.deliver([token], "length" if at == len(tokens) - 1 else None)
    return channel._pieces, engine, choice


def test_a_stop_string_ends_the_answer_before_it_and_is_named():
    pieces, engine, _ = write("one two three four", stops=["three"])
    assert "".join(piece.text for piece in pieces) == "one two "
    assert (pieces[-1].finish, pieces[-1].stop_reason, engine.stopped) == ("stop", "three", 1)


def test_a_stop_string_across_tokens_never_shows_its_beginning():
    pieces, _, _ = write("one two abcdef three", stops=["abcdef"])
    assert all("a" not in piece.text for piece in pieces)


def test_a_stop_string_is_kept_when_asked():
    pieces, _, _ = write("one two three four", stops=["three"], keep=True)
    assert "".join(piece.text for piece in pieces) == "one two three"


def test_without_a_stop_string_everything_is_written_at_once():
    pieces, _, _ = write("one two three", stops=["never"])
    assert "".join(piece.text for piece in pieces) == "one two three"
    assert (pieces[-1].finish, pieces[-1].stop_reason) == ("length", None)


def test_an_answer_that_is_not_streamed_wakes_its_handler_once():
    pieces, _, choice = write("one two three", streams=False)
    assert [piece.text for piece in pieces] == ["one two three"]
    assert choice.produced == pieces[0].produced == len(encode("one two three"))


THINKING = "<|channel>thought\nlet us see<channel|>the answer"


def test_thoughts_are_distinguished_from_the_answer_and_counted():
    pieces, _, choice = write(THINKING, parses=True)
    assert "".join(piece.thought for piece in pieces) == "let us see"
    assert "".join(piece.text for piece in pieces) == "the answer"
    assert choice.thought_tokens == len(encode("thought\nlet us see"))


def test_without_a_parser_thoughts_are_part_of_the_answer():
    pieces, _, choice = write(THINKING)
    assert "".join(piece.text for piece in pieces) == "thought\nlet us seethe answer"
    assert (choice.thought_tokens, "".join(piece.thought for piece in pieces)) == (0, "")


def test_a_character_of_several_bytes_is_written_when_it_is_whole():
    pieces, _, _ = write("a\u00e9\u20acz")
    assert "".join(piece.text for piece in pieces) == "a\u00e9\u20acz"
    assert all("\ufffd" not in piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}, {"a": 3}),
        ({"type": "array", "items": {"enum": ["x"]}, "minItems": 2}, ["x", "x"]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
    ],
)
def test_the_smallest_value_fits_its_schema(schema, value):
    assert json.loads(json.dumps(smallest(schema, Room()))) == value


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000, "")),
        ("unix:/run/sockets/9f:8080", ("0.0.0.0", 8080, "/run/sockets/9f:8080")),  # the daemon connects to this name
    ],
)
def test_a_listen_address_names_a_port_or_a_socket_file(listen, address):
    """The file's name ends in the port."""
    assert listen_address(listen, "0.0.0.0") == Address(*address)
