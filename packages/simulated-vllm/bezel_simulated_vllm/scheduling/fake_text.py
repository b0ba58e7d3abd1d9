"""Generator of answers: a sentence that says what answers, then pseudo-random words; and the tokens' probabilities.

All values are functions of a key, so that the same seed gives the same text whatever else the server does.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from bezel_simulated_vllm.scheduling.tokenizer import CHANNEL, CHANNEL_END, encode, word_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

# Shorter than the shortest answer, so that each says it whole.
INTRODUCTION = "Bezel's simulated vLLM answers: no model runs. A real one: `make up SERVER=vllm`. Filler:"
# The beginning of the model's thoughts, which the parser removes.
THOUGHT = "thought\n"
_MASK = (1 << 64) - 1
_SHORTEST, _DOUBLINGS = 40, 4.0
_INTRODUCTION = encode(INTRODUCTION)
_STOPS = (encode(".")[0], encode(",")[0])
_WORDS_PER_STOP = 9


def key_of(prompt: Sequence[int], seed: int, index: int = 0) -> int:
    """Return the key of an answer, a hash of prompt, seed and the number of the choice."""
    text = f"{seed}/{index}/".encode() + ",".join(map(str, prompt[-512:])).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def chance(key: int, position: int, salt: int = 0) -> float:
    """Return the pseudo-random number in [0, 1) of a place in an answer."""
    mixed = (key + (position + 1) * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / (1 << 64)


def token_at(key: int, position: int) -> int:
    """Return the token at a place of a text: mostly a common word, now and then a full stop or a comma."""
    number = chance(key, position)
    if position and number * _WORDS_PER_STOP < 1:
        return _STOPS[number * _WORDS_PER_STOP > 0.5]
    tokens = word_tokens()
    return tokens[int(chance(key, position, 1) ** 2 * len(tokens))]


def answer_token(key: int, position: int) -> int:
    """Return the token at a place of an answer without its thoughts: the introduction, then common words."""
    return _INTRODUCTION[position] if position < len(_INTRODUCTION) else token_at(key, position)


def natural_length(key: int) -> int:
    """Return the tokens of an answer that no limit cuts, its end token included: 40 to 640, with a median of 160."""
    return int(_SHORTEST * 2 ** (_DOUBLINGS * chance(key, -2)))


def thought_tokens(key: int) -> list[int]:
    """Return the tokens of the thoughts that begin an answer, with their marks: 20 to 320 words."""
    tokens = [token_at(key, -3 - place) for place in range(natural_length(key ^ 1) // 2)]
    return [CHANNEL, *encode(THOUGHT), *tokens, CHANNEL_END]


def log_probability(key: int, position: int, rank: int = 0) -> float:
    """Return a pseudo-random logarithm of a probability; lower for higher ranks."""
    return -0.02 - rank * 1.5 + math.log1p(-0.9 * chance(key, position, 2 + rank))
