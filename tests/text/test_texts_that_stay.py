"""Redaction leaves the sentences of the program and recorded responses of vLLM as they are."""

import ast
import re

import pytest

from bezel_base.text.printable import printable
from bezel_base.text.redaction import redact
from tests.support.docs.markdown import ROOT
from tests.support.source_nodes import nodes_of

PRODUCT = [ROOT / "bezel", *sorted(ROOT.glob("packages/*/bezel_*"))]
RECORDED = ROOT / "packages/simulated-vllm/tests/fixtures/vllm"


def sentences(source: str) -> list[str]:
    """The texts of a module that are sentences, with a word for each value that is formatted into them."""
    nodes = nodes_of(ast.parse(source))
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # docstrings
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in parts]
    texts += [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "NAME" for part in node.values)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
    ]
    return [text for text in texts if isinstance(text, str) and text.count(" ") > 2 and re.search(r"[.:;`=]", text)]


@pytest.mark.slow
def test_no_sentence_of_the_program_is_redacted() -> None:
    texts = {
        text
        for folder in PRODUCT
        for file in folder.rglob("*.py")
        for text in sentences(file.read_text(encoding="utf-8"))
    }
    assert len(texts) > 2500
    assert {text: redacted for text in texts if (redacted := redact(text)) != text} == {}


@pytest.mark.slow
def test_recorded_responses_of_vllm_stay_but_for_their_keys() -> None:
    lines = changed = 0
    for file in sorted(RECORDED.rglob("*.txt")):
        for line in printable(file.read_text(errors="replace")).split("\n"):
            lines += 1
            if redact(line) != line:
                changed += 1
                assert "Authorization:" in line, f"{file.name}: {line[:200]}"
    assert lines > 3000
    assert changed < lines / 50
