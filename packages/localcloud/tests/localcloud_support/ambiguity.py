"""Number of ways that a regular expression has to match a text: what a backtracking engine may try before it gives up.

An expression becomes an automaton without empty steps (Glushkov's), and pairs and triples of its states are followed
together (Weber and Seidl, On the degree of ambiguity of finite automata, 1991):

- exponential: a state leads back to itself by two different ways over one text;
- polynomial: over one text a state leads to itself, to another state, and that one to itself.

A repetition of a larger bounded count is taken as an unbounded one, so that the automaton stays small, except for a
fixed count of what has a fixed length. Look-around and anchors are left out: they only take ways away. So what is found
is an upper bound. References to groups are refused.
"""

import itertools
import re
from re import _parser as sre  # the parse tree of the standard library

_SIGMA = frozenset(range(256))
_COPIED = 4  # times that a repetition is written out
_BEGINNINGS = {"AT_BEGINNING", "AT_BEGINNING_STRING", "AT_BOUNDARY", "AT_NON_BOUNDARY"}


class NotAnalysedError(Exception):
    """A part of an expression that has no automaton."""


class _Automaton:
    """Positions of an expression with the characters that each takes."""

    def __init__(self, pattern, flags=0, *, anywhere=False):
        self.takes, self.follow = [], []
        self.twice = set()  # steps from one place to another that an expression has in two ways
        self._conditional = False
        self._ignore_case = bool(flags & re.IGNORECASE)
        tree = sre.parse(pattern, flags)
        anywhere = anywhere and not _from_the_beginning(tree, flags)
        any_text = list(sre.parse("(?s:.*)")) if anywhere else []
        _, last, _ = self._sequence([*any_text, *tree])
        # A search ends with the first beginning whose match can end: no way is tried beyond such a place.
        if anywhere and not self._conditional:
            self.follow = [following - last for following in self.follow]
            self.twice = {(place, following) for place, following in self.twice if following not in last}

    def _position(self, characters):
        self.takes.append(frozenset(characters))
        self.follow.append(set())
        place = {len(self.takes) - 1}
        return place, place, False

    def _join(self, last, first):
        for place in last:
            self.twice |= {(place, following) for following in self.follow[place] & first}
            self.follow[place] |= first

    def _sequence(self, items):
        first, last, empty = set(), set(), True
        for operation, value in items:
            new = self._item(str(operation), value)
            if new is None:
                continue
            self._join(last, new[0])
            first = first | new[0] if empty else first
            last = last | new[1] if new[2] else set(new[1])
            empty = empty and new[2]
        return first, last, empty

    def _item(self, operation, value):
        if operation in _CHARACTERS:
            return self._position(self._with_cases(_CHARACTERS[operation](value)))
        if operation in {"AT", "ASSERT", "ASSERT_NOT"}:
            ahead = str(value) not in _BEGINNINGS if operation == "AT" else value[0] > 0
            self._conditional = self._conditional or ahead
            return None
        if operation == "SUBPATTERN":
            return self._sequence(value[3])
        if operation == "BRANCH":
            parts = [self._sequence(part) for part in value[1]]
            return set().union(*(p[0] for p in parts)), set().union(*(p[1] for p in parts)), any(p[2] for p in parts)
        if operation in {"MAX_REPEAT", "MIN_REPEAT"}:
            return self._repeat(*value)
        raise NotAnalysedError(operation)

    def _repeat(self, least, most, inner):
        if most == 0:
            return None
        if 1 < most <= _COPIED:
            copies = [inner] * least + [[(sre.MAX_REPEAT, (0, 1, inner))]] * (most - least)
            return self._sequence([item for copy in copies for item in copy])
        first, last, empty = self._sequence(inner)
        fixed = least == most and len(set(sre.SubPattern.getwidth(inner))) == 1
        if most != 1 and not fixed:
            self._join(last, first)
        return first, last, empty or least == 0

    def _with_cases(self, characters):
        if not self._ignore_case:
            return characters
        return {ord(c) for code in characters if code < 128 for c in (chr(code).lower(), chr(code).upper())} | {
            code for code in characters if code >= 128
        }


def _from_the_beginning(tree, flags):
    """Whether an expression fits at the beginning of a text only."""
    first = tree[0] if len(tree) else (None, None)
    return str(first[1]) in {"AT_BEGINNING", "AT_BEGINNING_STRING"} and not flags & re.MULTILINE


def _members(parts):
    members, negated = set(), False
    for operation, value in parts:
        name = str(operation)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            members.add(min(value, 255))
        elif name == "RANGE":
            members |= set(range(min(value[0], 255), min(value[1], 255) + 1))
        elif name == "CATEGORY":
            members |= _category(str(value))
        else:
            raise NotAnalysedError(name)
    return _SIGMA - members if negated else members


def _category(name):
    form = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[name.removeprefix("CATEGORY_").removeprefix("NOT_")]
    codes = {code for code in _SIGMA if re.fullmatch(form, chr(code))}
    return _SIGMA - codes if "NOT_" in name else codes


_CHARACTERS = {
    "LITERAL": lambda value: {value},
    "NOT_LITERAL": lambda value: _SIGMA - {value},
    "ANY": lambda _: _SIGMA,
    "IN": _members,
}


def ambiguity(pattern, flags=0, *, anywhere=False):
    """How the ways grow with the text: "constant", "polynomial" or "exponential".

    `anywhere`: the text is searched, so that each place of it is a beginning.
    """
    pattern = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    automaton = _Automaton(pattern, flags & ~re.UNICODE, anywhere=anywhere)
    count = len(automaton.takes)
    pairs = {
        (p, q): {
            (a, b)
            for a, b in itertools.product(automaton.follow[p], automaton.follow[q])
            if automaton.takes[a] & automaton.takes[b]
        }
        for p, q in itertools.product(range(count), repeat=2)
    }
    reached = {pair: _reachable(pairs, pair) for pair in pairs}
    if any((p, p) in reached[q, q] or p == q for p, q in automaton.twice):
        return "exponential"
    for p, q in pairs:
        if p != q and (p, q) in reached[p, p] and (p, p) in reached[p, q]:
            return "exponential"
    for p, q in pairs:
        # p over a text to p and to q, q to q: pairs first, since triples are many.
        if p != q and (p, q) in reached[p, p] and (q, q) in reached[p, q] and _meets(automaton, p, q):
            return "polynomial"
    return "constant"


def _reachable(edges, start):
    seen, left = set(), list(edges[start])
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left += edges[node]
    return seen


def _meets(automaton, p, q):
    """Whether one text leads from (p, p, q) to (p, q, q)."""
    seen, left = set(), [(p, p, q)]
    while left:
        a, b, c = left.pop()
        for x in automaton.follow[a]:
            for y in automaton.follow[b]:
                common = automaton.takes[x] & automaton.takes[y]
                if not common:
                    continue
                for z in automaton.follow[c]:
                    if common & automaton.takes[z] and (x, y, z) not in seen:
                        if (x, y, z) == (p, q, q):
                            return True
                        seen.add((x, y, z))
                        left.append((x, y, z))
    return False
