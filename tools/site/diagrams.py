"""Diagrams of layers as HTML: a Mermaid flowchart that is one chain of rows, as docs/architecture.md has them.

Mermaid itself is a script of 3 MB that a page would load from elsewhere; the site loads nothing from elsewhere.
"""

from __future__ import annotations

import re
from html import escape
from itertools import pairwise

from bezel_base.errors import Problem, UserError

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NODE = re.compile(r'(\w+)\["([^"]*)"\]')
_EDGE = re.compile(r"(\w+) --> (\w+)")


def with_layers(page: str, text: str) -> str:
    """The text of a page, with each chain of rows as HTML.

    Raises:
        UserError: A diagram is another one.
    """
    return _BLOCK.sub(lambda match: _layers(page, match[1]), text)


def _layers(page: str, diagram: str) -> str:
    head, *lines = (line.strip() for line in diagram.splitlines())
    nodes = [match for line in lines if (match := _NODE.fullmatch(line))]
    edges = [match for line in lines if (match := _EDGE.fullmatch(line))]
    names = [node[1] for node in nodes]
    chain = [(edge[1], edge[2]) for edge in edges]
    is_chain = chain == [*pairwise(names)] and len(nodes) + len(edges) == len(lines)
    if head != "flowchart TD" or not nodes or not is_chain:
        raise UserError(
            Problem(
                page,
                next((line for line in (head, *lines) if line), ""),
                "The site would show this diagram as text: it draws `flowchart TD` with one chain of rows alone.",
                "write it as such a chain, or add it as a picture (SVG).",
            )
        )
    rows = "".join(f"<li>{escape(node[2])}</li>" for node in nodes)
    return f'<ol class="layers">{rows}</ol>'
