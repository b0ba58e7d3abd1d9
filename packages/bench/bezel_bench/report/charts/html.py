"""Elements of HTML and SVG, written by the standard library, which escapes every text and attribute.

Texts from a server or a file are hostile here: they become text and never markup, and contain no invisible character
and none that changes the direction of the text after it.
"""

import unicodedata
from xml.etree.ElementTree import Element, tostring

Node = Element | str
Value = str | float | int


def el(tag: str, attributes: dict[str, Value] | None = None, /, *children: Node) -> Element:
    """Return an element with these children; numbers of attributes are written with at most two decimals."""
    made = Element(tag, {name: _value(value) for name, value in (attributes or {}).items()})
    for child in children:
        add(made, child)
    return made


def add(parent: Element, *children: Node) -> Element:
    """Append children to `parent`, and return it."""
    for child in children:
        if not isinstance(child, str):
            parent.append(child)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + plain(child)
        else:
            parent.text = (parent.text or "") + plain(child)
    return parent


def plain(text: str) -> str:
    """Return `text` on one line, with a blank for each control, format or unassigned character."""
    return "".join(" " if unicodedata.category(character) in _UNSEEN else character for character in text)


def html(page: Element) -> str:
    """Serialise a whole document."""
    return f"<!doctype html>\n{tostring(page, encoding='unicode', method='html')}\n"


def svg(picture: Element) -> str:
    """Serialise a standalone picture."""
    picture.set("xmlns", "http://www.w3.org/2000/svg")
    return tostring(picture, encoding="unicode")


_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def _value(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return plain(str(value))
