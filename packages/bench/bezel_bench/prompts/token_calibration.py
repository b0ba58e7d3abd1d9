"""Token calibration with one request: which words are one token of a server, and what its template adds.

vLLM's `POST /tokenize` returns `{"count", "tokens"}` for a prompt or for messages, template included. All words are
sent at once, each between two of the same separator word, which is repeated several times at the end: the id repeated
in a row is the separator's, and the ids between two separators are a word's tokens. That holds for any tokenizer that
does not merge across words; a violation shows when whole prompts are counted (`bezel_bench.prompts.prompts`).
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bezel_bench.load.plan import Load
from bezel_bench.server.http_probe import Ask

WORDS = tuple(Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split())
"""Short and common words, most of them one token in most tokenizers."""
LEAD = "Read"
"""Begins each text, so that every word has a space in front."""
_SEPARATOR = "the"
_RUN = 8  # additional separators at the end
_TABLE = 256  # words are picked by the bytes of a digest
_MIN_WORDS = 32
# Assumed without /tokenize: a template's marks around a text are some ten tokens.
_ASSUMED_FRAME = 10
# Fields of a request that change its rendered template; /tokenize takes them too.
_SHAPING = ("add_special_tokens", "chat_template", "chat_template_kwargs", "mm_processor_kwargs", "tools")


@dataclass(frozen=True)
class Vocabulary:
    """Words and template size for making prompts.

    Attributes:
        token_words: Words that are each one token with a space in front.
        head: Tokens of a prompt before its first word: the template's and `LEAD`.
        tail: Tokens after its last word.
        doubt: Why lengths are approximate, "" if they are exact.
    """

    token_words: tuple[str, ...] = WORDS[:_TABLE]
    head: int = _ASSUMED_FRAME
    tail: int = 0
    doubt: str = ""


class Tokenizer:
    """Counts prompts as the server of a load does.

    Args:
        ask: Sends that server a request.
        load: The load whose requests are counted.
    """

    def __init__(self, ask: Ask, load: Load) -> None:
        self._ask = ask
        self._model = load.target.model
        self._shaping = {name: value for name, value in load.extra_body.items() if name in _SHAPING}

    def tokens(self, body: bytes) -> list[int] | str:
        """Return the ids of a request's prompt, or the reason why they are unavailable."""
        request = json.loads(body)
        prompt = {name: request[name] for name in ("messages", "prompt") if name in request}
        if not prompt:
            prompt = {"prompt": request["input"] if "input" in request else request["documents"][0]}
        response = self._ask("/tokenize", {"model": self._model, **self._shaping, **prompt})
        tokens = response.json().get("tokens")
        if not isinstance(tokens, list) or not tokens:
            return f"the server counts no tokens (POST /tokenize: {response.refusal()})"
        return tokens

    def learn(self, body_of: Callable[[str], bytes]) -> Vocabulary:
        """Learn the vocabulary with one request; where that fails, return an assumed one with the reason."""
        others = [word for word in WORDS if word != _SEPARATOR]
        text = " ".join([LEAD, _SEPARATOR, *(f"{word} {_SEPARATOR}" for word in others), *[_SEPARATOR] * _RUN])
        tokens = self.tokens(body_of(text))
        if isinstance(tokens, str):
            return Vocabulary(doubt=f"{tokens}: a word of a prompt is counted as one token")
        run, separator = max((len(list(same)), token) for token, same in itertools.groupby(tokens))
        # A template's own words come first: the last separators, as many as were sent, are those of the text.
        positions = [at for at, token in enumerate(tokens) if token == separator][-len(others) - 1 - _RUN :]
        spans = [after - before - 1 for before, after in itertools.pairwise(positions)]
        single = [word for word, span in zip(others, spans, strict=False) if span == 1]
        if run != _RUN + 1 or len(single) < _MIN_WORDS:
            return Vocabulary(doubt=f"too few of {len(WORDS)} words are one token for the server: lengths are in words")
        return Vocabulary(tuple(single[:_TABLE]), positions[0], len(tokens) - positions[-1] - 1)
