"""Questions about scrapes that Prometheus's own code answers: rules on series, and texts of its format."""

import random
from typing import Any

_NAMES = ("__name__", "a", "b", "c", "le", "job")
_VALUES = ("x", "x-1", "vllm:time_bucket", "up_total", "\u00fcn\u00ef", "a;b", "1", "+Inf", "$1", "a\nb")
_PATTERNS = (
    *("", "(.*)", "x", "x|y", r"(\w+)-(\d)", "vllm:.*", "(?P<l>[a-z]+).*", ".*_(bucket|sum|count)", "[^;]*;.*", ".+"),
    *("(?i)UP_.*", "x?", "(a)?(b)?.*", r"\d+"),
)
_REPLACEMENTS = ("", "$1", "$2", "${1}x", "v", "$l", "$$", "$1$2", "$0", "$9", "x$1y", "${l}_1")
_TARGETS = ("a", "b", "c", "new", "l_$1", "${l}", "$1")
_ACTIONS = ("replace", "replace", "keep", "drop", "hashmod", "labeldrop")
_LINES = (
    *("a 1", "a{} 1", 'a{b="c"} 1', 'a{b="c",} 1', 'a{b="c" ,d="e"} 1', 'a { b = "c" } 1', 'a{b="\\"}x"} 1'),
    *('a{b="\\n\\\\"} 1', 'a{b="\u00fc"} NaN', "a +Inf", "a -Inf 123", "a 1 2 3", "a", "a{", "a{b}", 'a{b="c"'),
    *('a{b="c"} 1 # x', "a{b=c} 1", "1a 2", 'a{1b="c"} 1', "a\t1", "a 1e5", "a 1_0", "# HELP a b", "# TYPE a counter"),
    *("# TYPE a foo", "# comment", "a:b 1", "a  1", "<html>", 'a{b="c"}', "# TYPE d histogram", 'd_bucket{le="1"} 2'),
)


def relabelings() -> list[dict[str, Any]]:
    """Rules, and the labels of a series."""
    dice = random.Random(5)  # noqa: S311 - questions of a test
    return [
        {"rules": [_rule(dice) for _ in range(dice.choice((1, 1, 2, 3)))], "labels": _labels(dice)} for _ in range(120)
    ]


def texts() -> list[str]:
    """Texts of one line, and of some."""
    dice = random.Random(3)  # noqa: S311 - likewise
    several = ["\n".join(dice.choice(_LINES) for _ in range(dice.randint(2, 5))) for _ in range(60)]
    return [f"{text}\n" for text in (*_LINES, *several)]


def _rule(dice: random.Random) -> dict[str, Any]:
    action = dice.choice(_ACTIONS)
    if action == "labeldrop":
        return {"action": action, "regex": dice.choice(("a", "b|c", "[abc]", "le", "zz.*"))}
    rule: dict[str, Any] = {"action": action, "sourceLabels": dice.sample(_NAMES, dice.choice((0, 1, 1, 2)))}
    rule |= {"regex": dice.choice(_PATTERNS), "separator": dice.choice(("", "", "-", "::"))}
    if action == "replace":
        rule |= {"targetLabel": dice.choice(_TARGETS), "replacement": dice.choice(_REPLACEMENTS)}
    if action == "hashmod":
        rule |= {"targetLabel": dice.choice(("a", "shard")), "modulus": dice.choice((1, 2, 10, 1000, 2**40))}
    return {name: value for name, value in rule.items() if value not in ("", [])}


def _labels(dice: random.Random) -> dict[str, str]:
    return {name: dice.choice(_VALUES) for name in _NAMES if name == "__name__" or dice.random() < 0.5}
