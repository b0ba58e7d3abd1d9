"""Text of an answer in pieces: the same however it was cut, without credentials, and shown as soon as it may be."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bezel.operations.answer_text.cleaning import Cleaning, clean
from bezel.operations.answer_text.printing import Printing
from bezel_base.text.printable import printable

SECRETS = ("my own pass phrase", "pass phrase of mine", "abcabd-secret")
TOKENS = (
    "hf_AbcdefghijklmnopAbcdefgh",
    "AIzaSyAbcdefghijklmnop",
    "ya29.AbcdefghijklmnopAbcdefgh",
    "ghp_AbcdefghijklmnopAbcdefgh",
    "sk-AbcdefghijklmnopAbcdefgh",
    "bezel-k7m2p9q4-AbcdefghijklmnopAbcdefgh",
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2ln",
    *SECRETS,
)
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\nGHIJKL==\n-----END RSA PRIVATE KEY-----\n"
ESCAPES = ("\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b(B", "\x9b31m", "\x1bc", "\r\n", "\r")
PARTS = st.one_of(
    st.sampled_from([*TOKENS, *ESCAPES, KEY, "-----BEGIN", "-----BEGIN CERTIFICATE-----\n", "\x1b", " ", "\n"]),
    st.sampled_from(["words, and", "日本語", "x = 1;", "é", "abcab", "my own", "\u202e", "\x00"]),
    st.text(max_size=6),
)
TEXTS = st.lists(PARTS, max_size=8).map("".join)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places})
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@pytest.mark.slow
@given(TEXTS, st.lists(st.integers(0, 500), max_size=12))
def test_what_is_shown_does_not_depend_on_where_the_pieces_end(text: str, places: list[int]) -> None:
    cleaning = Cleaning(SECRETS)
    shown = "".join(cleaning.take(piece) for piece in cut(text, places)) + cleaning.end()
    assert shown == clean(text, SECRETS)


@pytest.mark.slow
@given(TEXTS, st.sampled_from(TOKENS), TEXTS, st.lists(st.integers(0, 500), max_size=12))
def test_no_credential_is_ever_shown(before: str, token: str, after: str, places: list[int]) -> None:
    assume(token not in before + after)  # where it may be a part of another word
    cleaning, shown = Cleaning(SECRETS), ""
    for piece in cut(f"{before} {token} {after}", places):
        shown += cleaning.take(piece)
        assert token not in shown
    assert token not in shown + cleaning.end()


@pytest.mark.parametrize("token", TOKENS)
def test_credentials_without_anything_in_between_are_hidden_too(token: str) -> None:
    assert token not in clean(f"{token * 3} {token}", SECRETS)


@pytest.mark.slow
@given(st.lists(st.one_of(st.sampled_from(["words, ", "日本語 ", "x = 1; ", "\n"])), max_size=10).map("".join))
def test_other_text_stays_as_it_is(text: str) -> None:
    assert clean(text, SECRETS) == text


@pytest.mark.parametrize(
    "text", ["password = get_password()", "Bearer YOUR_TOKEN", "a" * 64, "-----BEGIN CERTIFICATE-----\nx"]
)
def test_what_is_only_named_like_a_credential_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize("end", ["", "and on"])
def test_a_private_key_is_hidden_whole_or_up_to_its_cut_end(end: str) -> None:
    assert clean(f"It is\n{KEY}{end}") == f"It is\n[redacted]\n{end}"
    assert clean(f"It is\n{KEY[:50]}") == "It is\n[redacted]"


@pytest.mark.parametrize("sequence", ESCAPES)
def test_a_sequence_is_dropped_as_where_the_text_is_whole(sequence: str) -> None:
    text = f"a{sequence}b"
    printing = Printing()
    assert "".join(map(printing.take, text)) == printable(text)


def test_a_word_is_shown_once_it_has_ended_and_other_scripts_at_once() -> None:
    cleaning = Cleaning()
    assert [cleaning.take(piece) for piece in ("Tok", "en", " by", " tok")] == ["", "", "Token ", "by "]
    assert cleaning.take("en") == ""
    assert cleaning.end() == "token"
    assert [Cleaning().take(piece) for piece in ("日本", "語")] == ["日本", "語"]
