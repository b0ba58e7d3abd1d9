"""Made-up answers: which token comes at which place, how long an answer is, how probable a token was.

Everything is a function of a key, so that the same seed gives the same text whatever else the server does.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

from bezel.simulated_vllm.scheduling.tokenizer import CHANNEL, CHANNEL_END, encode, word_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

# How the model's thoughts begin; the parser takes it away.
THOUGHT = "thought\n"
_MASK = (1 << 64) - 1
_SHORTEST, _DOUBLINGS = 40, 4.0
_STOPS = (encode(".")[0], encode(",")[0])
_WORDS_PER_STOP = 9


def key_of(prompt: Sequence[int], seed: int, index: int = 0) -> int:
    """The key of an answer: prompt, seed and the number of the choice."""
    text = f"{seed}/{index}/".encode() + ",".join(map(str, prompt[-512:])).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def chance(key: int, position: int, salt: int = 0) -> float:
    """A number in [0, 1) that belongs to a place of an answer."""
    mixed = (key + (position + 1) * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) / (1 << 64)


def token_at(key: int, position: int) -> int:
    """The token at a place of an answer: mostly a common word, now and then a full stop or a comma."""
    number = chance(key, position)
    if position and number * _WORDS_PER_STOP < 1:
        return _STOPS[number * _WORDS_PER_STOP > 0.5]
    words = word_tokens()
    return words[int(chance(key, position, 1) ** 2 * len(words))]


def natural_length(key: int) -> int:
    """How many tokens an answer has, its end token included, if nothing cuts it short: 40 to 640, 160 in the middle."""
    return int(_SHORTEST * 2 ** (_DOUBLINGS * chance(key, -2)))


def thought(key: int) -> list[int]:
    """The tokens with which an answer begins where thinking is switched on: 20 to 320 words between their marks."""
    words = [token_at(key, -3 - place) for place in range(natural_length(key ^ 1) // 2)]
    return [CHANNEL, *encode(THOUGHT), *words, CHANNEL_END]


def log_probability(key: int, position: int, rank: int = 0) -> float:
    """A made-up logarithm of a probability; lower for higher ranks."""
    return -0.02 - rank * 1.5 + math.log1p(-0.9 * chance(key, position, 2 + rank))
