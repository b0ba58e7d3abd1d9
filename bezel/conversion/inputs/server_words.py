"""Options of `vllm serve` in the tokens of a command: by the recorded parser of the release, as a stack file has them.

Source of the forms: vLLM's `FlexibleArgumentParser` (underscores for dashes, `--config.key=value` for a part of a JSON
option, `-O3`) and argparse (`--option=value`, several values, negated switches). Pure. Leaves what the values mean to
the planner.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel.conversion.inputs.found_server import Remark, remark
from bezel.conversion.inputs.variable_expansion import OPEN
from bezel_base.credentials.names import option_names_secret
from bezel_base.text.redaction import is_secret
from bezel_catalog import closest, removed_options
from bezel_catalog.option_values import as_structure, human_int
from bezel_catalog.vllm.typed_values import SWITCHES, typed_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_catalog import VllmOption, VllmOptions

_PROGRAMS = ("vllm", "serve")
_MODULE = re.compile(r"vllm\.entrypoints\.(?:openai\.api_server|api_server|cli\.main)")
_SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")
_OPTIMIZATION = re.compile(r"-O=?(\d)")
MODEL = "model"
KEY_OPTIONS = ("api-key", "hf-token")
_ON = {"true": True, "false": False}


@dataclass(slots=True)
class ServerOptions:
    """The options of a server.

    Attributes:
        model: The model argument; "" where none is set.
        options: Option -> its value, as a stack file has it.
        remarks: What could not be read.
    """

    model: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)


def server_words(tokens: Sequence[str]) -> tuple[str, ...]:
    """The tokens after the program of a server; all of them where only arguments are given.

    Args:
        tokens: E.g. `vllm serve MODEL --a`, `python3 -m vllm.entrypoints.openai.api_server --a`, `/bin/sh -c "…"`.
    """
    left = list(tokens)
    if left[:1] and left[0] in _SHELLS and len(left) > 2 and left[1] in ("-c", "-lc"):
        from bezel.conversion.inputs.shell_words import commands_of

        commands = commands_of(left[2])
        left = next((each.tokens for each in reversed(commands) if starts_server(each.tokens)), left[2:])
    for place, word in enumerate(left):
        if _MODULE.fullmatch(word):
            return tuple(left[place + 1 :])
        if word.rpartition("/")[2] == "vllm" and left[place + 1 : place + 2] == ["serve"]:
            return tuple(left[place + 2 :])
    return tuple(left[1:] if left[:1] == ["serve"] else left)


def starts_server(tokens: Sequence[str]) -> bool:
    """Whether a command starts vLLM's server."""
    return any(_MODULE.fullmatch(word) for word in tokens[:4]) or any(
        first.rpartition("/")[2] == "vllm" and second == "serve" for first, second in itertools.pairwise(tokens)
    )


def read_server_options(tokens: Sequence[str], options: VllmOptions) -> ServerOptions:
    """The options in the tokens that follow the program.

    Args:
        tokens: As `server_words` returns them.
        options: Recorded of the release.
    """
    return _Reader(tuple(tokens), options).read()


class _Reader:
    def __init__(self, tokens: tuple[str, ...], options: VllmOptions) -> None:
        self._words, self._options = tokens, options
        self._found = ServerOptions()

    def read(self) -> ServerOptions:
        place = 0
        while place < len(self._words):
            place = self._read_at(place)
        return self._found

    def _read_at(self, place: int) -> int:
        word = self._words[place]
        if not word.startswith("-") or word in ("-", "--"):
            if word in ("-", "--"):
                return place + 1
            if self._found.model:
                self._leave(word, "", "it is neither an option nor the value of one.", "remove it.")
            else:
                self._found.model = word
            return place + 1
        if match := _OPTIMIZATION.fullmatch(word):
            self._found.options["optimization-level"] = int(match[1])
            return place + 1
        flag, equals, inline = word.partition("=")
        name, dot, keys = flag.partition(".")
        match_of = self._options.find(name) if name.startswith("--") else self._options.find(flag.partition(".")[0])
        if match_of is None:
            return self._unknown(place, flag, inline if equals else None)
        option, negated = match_of
        values, after = ([inline], place + 1) if equals else self._values_at(place + 1, option)
        if dot:
            self._set_part(option, keys, values, flag)
        elif option.kind in SWITCHES:
            self._switch(option, values, negated=negated, inline=bool(equals))
        elif not values:
            self._leave(flag, "", "it has no value: vLLM refuses it.", "write its value.")
        else:
            self._set(option, values)
        return after

    def _values_at(self, place: int, option: VllmOption) -> tuple[list[str], int]:
        if option.kind in SWITCHES:
            return [], place
        most = len(self._words) if option.kind == "values" else 1
        values: list[str] = []
        while place < len(self._words) and len(values) < most and not self._is_flag(self._words[place]):
            values.append(self._words[place])
            place += 1
        return values, place

    def _is_flag(self, word: str) -> bool:
        # argparse reads `-1` as a value.
        return word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-\d+(?:\.\d+)?", word)

    def _switch(self, option: VllmOption, values: list[str], *, negated: bool, inline: bool) -> None:
        value: object = True
        if inline:
            value = _ON.get(values[0].lower(), values[0])
        self._found.options[option.name] = (not value) if negated and isinstance(value, bool) else value

    def _set(self, option: VllmOption, values: list[str]) -> None:
        name = option.name
        if name == MODEL:
            self._found.model = values[0]
            return
        if open_value := next((each for each in values if OPEN.search(each)), None):
            if name in KEY_OPTIONS or option_names_secret(name):
                self._found.options[name] = open_value
                return
            self._leave(f"--{name}", open_value, "the input does not set this variable.", f"add {name} to bezel:vllm.")
            return
        if name not in KEY_OPTIONS and any(is_secret(name, each) for each in values):
            self._leave(
                f"--{name}", "", "its value may be a secret.", "put it into Secret Manager; bezel:secrets.", hidden=True
            )
            return
        parts: list[object] = [_value(option, each) for each in values]
        if option.kind == "append":
            self._found.options[name] = [*self._found.options.get(name, []), *parts]
        else:
            self._found.options[name] = parts[0] if len(parts) == 1 else parts

    def _set_part(self, option: VllmOption, keys: str, values: list[str], flag: str) -> None:
        """A part of a JSON option: `--compilation-config.level 3`, `--x.y+ value`."""
        keys, value = keys.removesuffix("+"), _plain_value(values[0]) if values else True
        whole = self._found.options.get(option.name)
        inside: Any = whole if isinstance(whole, dict) else {}
        self._found.options[option.name] = inside
        *above, last = (key.replace("-", "_") for key in keys.split("."))
        for key in above:
            inside = inside.setdefault(key, {})
            if not isinstance(inside, dict):
                self._leave(flag, value, "it sets a part of a value that is not a map.", "remove one of the two.")
                return
        inside[last] = [*inside.get(last, []), value] if flag.endswith("+") else value

    def _unknown(self, place: int, flag: str, inline: str | None) -> int:
        following = self._words[place + 1] if place + 1 < len(self._words) else None
        takes_next = inline is None and following is not None and not self._is_flag(following)
        # A value in front of the model may be the model itself; behind it, it is the option's.
        takes_next = takes_next and bool(self._found.model or place)
        value = inline if inline is not None else following if takes_next else ""
        name = flag.lstrip("-").replace("_", "-")
        instead = removed_options().get(name)
        near = closest(name, self._options.names())
        repair = f"{instead}." if instead else f"did you mean --{near}?" if near else "remove it."
        reason = f"vLLM {self._options.version} has no such option: it would not start."
        self._leave(flag, value, reason, repair, hidden=option_names_secret(name) and bool(value))
        return place + (2 if takes_next else 1)

    def _leave(self, key: str, value: object, reason: str, repair: str, *, hidden: bool = False) -> None:
        self._found.remarks.append(remark("not converted", key, value, reason, repair, hidden=hidden))


def _value(option: VllmOption, word: str) -> object:
    """A word as a stack file has it: numbers and JSON as such, everything else as text."""
    structure = as_structure(word)
    if isinstance(structure, dict | list):
        return structure
    number: object = None
    if option.type in ("human-int", "human-int-or-auto"):
        number = human_int(word)
    elif option.type in ("int", "float"):
        number = typed_value(option, word) if option.kind == "value" else _plain_value(word)
    return word if number is None else number


def _plain_value(word: str) -> object:
    structure = as_structure(word)
    if isinstance(structure, str):
        if structure.lower() in _ON:
            return _ON[structure.lower()]
        if re.fullmatch(r"-?(?:0|[1-9]\d*)", structure):
            return int(structure)
        if re.fullmatch(r"-?\d+\.\d+", structure):
            return float(structure)
    return structure
