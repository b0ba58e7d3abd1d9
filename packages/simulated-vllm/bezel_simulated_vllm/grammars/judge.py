"""Judge of constraints: which library the server asks, in which order, and which one its engine compiles with.

Source: vllm 0.32.0, sampling_params.py (`_validate_structured_outputs`) and v1/structured_output/__init__.py: with the
backend `auto` xgrammar is asked first, then guidance, or outlines for a schema with `patternProperties`; the engine
compiles every constraint with the library of the first one that it was given.
"""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

from bezel_simulated_vllm.grammars import format_enforcer, guidance, outlines, xgrammar
from bezel_simulated_vllm.grammars.constraint import Constraint, constraint_of
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

_CHECKS = {
    "xgrammar": xgrammar.check,
    "guidance": guidance.check,
    "outlines": outlines.check,
    "lm-format-enforcer": format_enforcer.check,
}
# Longer texts are not judged: the libraries take seconds for them.
_LONGEST = 128 * 1024
_CACHED = 256


class Verdict(NamedTuple):
    """What is said of a constraint.

    Attributes:
        backend: the library that takes it.
        refusal: the text for the client, "" where it is taken.
        unknown: what could not be judged, "" where all was.
        failure: the text of an exception that the server itself does not expect, "" where there is none.
    """

    backend: str
    refusal: str = ""
    unknown: str = ""
    failure: str = ""


class Judge:
    """Judges the constraints of one server.

    Args:
        backend: the option `backend` of `--structured-outputs-config`.
    """

    def __init__(self, backend: str = "auto") -> None:
        self._backend = backend
        self._compiler = ""

    def judge(self, outputs: dict[str, Any]) -> Verdict:
        """Return what the server says of structured outputs of one kind when a request comes."""
        return _verdict(self._backend, constraint_of(outputs))

    def compiles(self, outputs: dict[str, Any], backend: str) -> bool:
        """Whether the engine compiles structured outputs that passed; the first ones decide the library.

        Args:
            outputs: structured outputs of one kind.
            backend: the library that took them.
        """
        self._compiler = self._compiler or backend
        return _compiles(self._compiler, backend, constraint_of(outputs))


def is_structural_tag(tag: Any) -> bool:
    """Whether a structural tag (an object, or its text) is one; what cannot be judged is."""
    constraint = Constraint("structural_tag", tag if isinstance(tag, str) else json.dumps(tag))
    return bool(constraint.text) and not _verdict("xgrammar", constraint).refusal


@functools.lru_cache(maxsize=_CACHED)
def _verdict(backend: str, constraint: Constraint) -> Verdict:
    if len(constraint.text) > _LONGEST:
        return Verdict(backend if backend != "auto" else "xgrammar", unknown="longer than is judged")
    if backend == "auto":
        return _verdict_of_all(constraint)
    try:
        _CHECKS[backend](constraint)
    except RefusedError as error:
        return Verdict(backend, refusal=str(error))
    except NotJudgedError as error:
        return Verdict(backend, unknown=str(error))
    except (AttributeError, OverflowError) as error:  # a value of another type, a number beyond the parser
        return Verdict(backend, failure=str(error))
    return Verdict(backend)


def _verdict_of_all(constraint: Constraint) -> Verdict:
    first = _verdict("xgrammar", constraint)
    if not first.refusal and not first.unknown:
        return first
    second = "guidance"
    if constraint.kind == "json" and not constraint.is_empty:
        try:
            schema = json.loads(constraint.text)
        except ValueError:
            return Verdict("guidance", refusal="Invalid JSON grammar specification.")
        second = "outlines" if _has_patterns(schema) else "guidance"
    verdict = _verdict(second, constraint)
    if not first.unknown:
        return verdict
    # The first library may take it: what the second takes passes either way.
    return Verdict("xgrammar", unknown=first.unknown if verdict.refusal else "")


def _has_patterns(schema: Any) -> bool:
    """Whether a schema has `patternProperties` somewhere, which guidance is not asked about."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        if "patternProperties" in node:
            return True
        for value in node.values():
            pending += [value] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


@functools.lru_cache(maxsize=_CACHED)
def _compiles(compiler: str, backend: str, constraint: Constraint) -> bool:
    if len(constraint.text) > _LONGEST or (compiler == backend and compiler not in ("xgrammar", "outlines")):
        return True
    try:
        if compiler == "xgrammar":
            xgrammar.compile_constraint(constraint)
        elif compiler == "guidance":
            guidance.serialize(constraint)  # a grammar that it refuses ends the answer at once, and is no error
        elif constraint.kind in ("json_object", "structural_tag", "grammar"):
            return False
    except NotJudgedError:
        return True
    except (RefusedError, ValueError, KeyError, TypeError):
        return False
    return True
