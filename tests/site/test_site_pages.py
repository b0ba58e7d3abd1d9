"""Pages of the site: each wrong page, link or name is refused with value, consequence and repair, all at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bezel_base.errors import Problem, UserError
from tools.site.diagrams import with_layers
from tools.site.dialect import with_wide_lists
from tools.site.generator import generate
from tools.site.links import broken_links
from tools.site.navigation import Section, navigation, title_of
from tools.site.pages import write_pages
from tools.site.structure import changed_structure
from tools.site.versions import add_version, order, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INDEX = (
    "# Documentation\n\n## Start\n\n- [a.md](a.md): one.\n\n## Internals\n\n- [b](../packages/base/README.md): two.\n"
)
CHAIN = '```mermaid\nflowchart TD\n  a["x · y"]\n  b["<z>"]\n  a --> b\n```\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with an index, two pages, a picture and a source file."""
    files = {
        "README.md": "# Home\n\n[a](docs/a.md#more)\n",
        "docs/README.md": INDEX,
        "docs/a.md": "# `A`\n\n## More\n\n![p](p.png) [s](../tool.py) [data](d.json) [web](https://acme.example/x.md)\n",
        "docs/p.png": "png",
        "docs/d.json": "{}",
        "tool.py": "print(1)",
        "packages/base/README.md": "# base\n",
    }
    for name, text in files.items():
        file = tmp_path / "root" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "root"


def html(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_navigation_has_the_sections_of_the_index_in_order(root: Path) -> None:
    assert navigation(root) == [Section("Start", ("docs/a.md",)), Section("Internals", ("packages/base/README.md",))]
    assert title_of(root, "docs/a.md") == "A"


def test_linked_files_come_along_and_source_becomes_a_page(root: Path, tmp_path: Path) -> None:
    write_pages(root, ["README.md", "docs/a.md"], tmp_path / "out")
    assert {str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*.*")} == {
        "README.md", "docs/a.md", "docs/p.png", "docs/d.json", "tool.py.md", "site.css", "file_worker.js",
    }  # fmt: skip
    assert (
        "[s](../tool.py.md) [data](d.json) [web](https://acme.example/x.md)" in (tmp_path / "out/docs/a.md").read_text()
    )
    assert (tmp_path / "out/tool.py.md").read_text() == "# tool.py\n\n````python\nprint(1)\n````\n"


def pages_of(root: Path) -> None:
    write_pages(root, ["docs/a.md"], root.parent / "out")


def links_of(root: Path) -> None:
    if problems := broken_links(root / "built"):
        raise UserError(*problems)


def index_page(text: str) -> dict[str, str]:
    return {"built/index.html": text, "built/b.html": '<h2 id="b">B</h2>'}


@pytest.mark.parametrize(
    ("files", "call", "key", "value", "repair"),
    [
        ({"docs/new.md": "# N"}, navigation, "docs/README.md", "docs/new.md", "add `- [new.md](new.md): "),
        ({"docs/README.md": f"{INDEX}- [x](x.md): y.\n"}, navigation, "docs/README.md", "docs/x.md", "remove"),
        ({"docs/README.md": f"{INDEX}- [a](a.md): b\n"}, navigation, "docs/README.md", "docs/a.md", "one of the lines"),
        ({"docs/a.md": "text"}, lambda root: title_of(root, "docs/a.md"), "docs/a.md", None, "`# TITLE`"),
        ({"docs/a.md": "[x](gone.md)"}, pages_of, "docs/a.md", "gone.md", "correct the link"),
        ({"docs/a.md": "[x](../packages/base)"}, pages_of, "docs/a.md", "../packages/base", "/README.md"),
        ({"docs/a.md": CHAIN.replace("a --> b", "b --> a")}, pages_of, "docs/a.md", "flowchart TD", "SVG"),
        (index_page('<a href="c.html">c</a>'), links_of, "index.html", "c.html", "Markdown"),
        (index_page('<a href="b.html#c">c</a>'), links_of, "index.html", "b.html#c", "heading"),
        (index_page('<a href="../../tool.py">c</a>'), links_of, "index.html", "../../tool.py", "Markdown"),
        (index_page('<img src="https://a.example/p.png">'), links_of, "index.html", "https://a.example/p.png", "docs/"),
        ({"built/a.css": "@import '//acme.example/f.css'"}, links_of, "a.css", "//acme.example/f.css", "docs/"),
    ],
)  # fmt: skip
def test_a_wrong_page_is_refused(
    root: Path, files: dict[str, str], call: Callable[[Path], object], key: str, value: str | None, repair: str
) -> None:
    html(root, files)
    with pytest.raises(UserError) as refused:
        call(root)
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    assert (problem.key, problem.value) == (key, value)
    assert repair in problem.repair
    assert problem.consequence.endswith(".")


def test_all_problems_are_named_at_once(root: Path) -> None:
    html(root, {"docs/a.md": f"[x](gone.md) [y](../packages)\n{CHAIN}\n{CHAIN.replace('TD', 'LR')}"})
    with pytest.raises(UserError) as refused:
        pages_of(root)
    assert len(refused.value.problems) == 3


def test_links_to_pages_anchors_and_other_sites_hold(tmp_path: Path) -> None:
    links = '<a href="b/#b">1</a><a href="#top">2</a><a href="https://a.example">3</a><p id="top"><img src="b/p.png">'
    site = html(tmp_path, {"index.html": links, "b/index.html": '<a name="b" href="..">', "b/p.png": ""})
    assert broken_links(site) == []


@pytest.mark.parametrize(
    ("markdown", "wide"),
    [
        ("a:\n- b\n  c\n\nd\n", "a:\n\n- b\n    c\n\nd\n"),
        ("- a\n  - b\n    c\n- d\n", "- a\n\n    - b\n        c\n- d\n"),
        ("1. a\n\n   ```sh\n   b\n     c\n   ```\n2. d\n", "1. a\n\n    ```sh\n    b\n      c\n    ```\n\n2. d\n"),
        ("```text\na\n- b\n  c\n```\n", "```text\na\n- b\n  c\n```\n"),
        ("a\n\n| b |\n|---|\n| - c |\n", "a\n\n| b |\n|---|\n| - c |\n"),
    ],
)
def test_lists_are_written_for_the_generator(markdown: str, wide: str) -> None:
    assert with_wide_lists(markdown) == wide


def test_a_chain_of_rows_is_a_list_of_layers() -> None:
    assert with_layers("a.md", CHAIN) == '<ol class="layers"><li>x · y</li><li>&lt;z&gt;</li></ol>\n'
    assert with_layers("a.md", "```text\na\n```\n") == "```text\na\n```\n"


def test_a_page_that_shows_a_list_as_text_is_named(tmp_path: Path) -> None:
    html(tmp_path, {"a.md": "# A\n- b\n- c\n", "b.md": "# B\n"})
    site = html(tmp_path / "site", {"a.html": "<ul><article><h1>A</h1>- b - c</article>", "b.html": "<h1>B</h1>"})
    (problem,) = changed_structure(tmp_path, ["a.md"], site)
    assert (problem.key, problem.value) == ("a.md", "0 items of 2, 0 lists of 1")
    html(
        site,
        {"a.html": "<article><h1>A</h1><ul><li>b<li>c</ul></article><ul>", "b.html": "<article><h1>B</h1></article>"},
    )
    assert changed_structure(tmp_path, ["a.md", "b.md"], site) == []


def version(site: Path, name: str) -> None:
    add_version(site, name, html(site.parent / f"built-{name}", {"index.html": name}))


def test_the_newest_release_is_the_default_and_earlier_ones_stay(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    version(first, "next")
    assert "url=next/index.html" in (first / "index.html").read_text()
    version(first, "0.9.0")
    pack(first, tmp_path / "site.tar.xz")
    unpack(tmp_path / "site.tar.xz", second)
    for name in ("0.10.0rc1", "0.10.0", "0.10.0"):
        version(second, name)
    rows = json.loads((second / "versions.json").read_text())
    assert [row["version"] for row in rows] == ["0.10.0", "0.10.0rc1", "0.9.0"]
    assert [row["aliases"] for row in rows] == [["latest"], [], []]
    assert "url=0.10.0/index.html" in (second / "index.html").read_text()
    assert not (second / "next").exists()


def test_the_same_site_is_the_same_archive(tmp_path: Path) -> None:
    for name in ("one", "two"):
        version(tmp_path / name, "0.9.0")
        pack(tmp_path / name, tmp_path / f"{name}.tar.xz")
    assert (tmp_path / "one.tar.xz").read_bytes() == (tmp_path / "two.tar.xz").read_bytes()
    version(tmp_path / "two", "0.9.1")
    pack(tmp_path / "two", tmp_path / "two.tar.xz")
    assert (tmp_path / "one.tar.xz").read_bytes() != (tmp_path / "two.tar.xz").read_bytes()


@pytest.mark.parametrize("name", ["v0.9.0", "0.9", "../x", ""])
def test_a_folder_that_is_no_release_is_refused(tmp_path: Path, name: str) -> None:
    assert order(name) == ()
    with pytest.raises(UserError, match=r"name a release, e\.g\. 0\.2\.0"):
        add_version(tmp_path / "site", name, html(tmp_path / "built", {"index.html": ""}))
    assert not (tmp_path / "site").exists()


def test_a_generator_that_is_missing_or_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"run `python3 tools/toolchain site`"):
        generate(tmp_path, "{}", tmp_path / "zensical")
    (tmp_path / "zensical").write_text("#!/bin/sh\necho no such setting\n")
    (tmp_path / "zensical").chmod(0o755)
    with pytest.raises(UserError, match="zensical failed:\nno such setting"):
        generate(tmp_path, "{}", tmp_path / "zensical")


def test_an_archive_that_is_no_site_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.tar.xz").write_text("text")
    with pytest.raises(UserError, match="pages of earlier releases would be lost"):
        unpack(tmp_path / "text.tar.xz", tmp_path / "site")
    pack(html(tmp_path / "other", {"a/b.html": ""}), tmp_path / "other.tar.xz")
    with pytest.raises(UserError, match=r"it has no versions\.json"):
        unpack(tmp_path / "other.tar.xz", tmp_path / "site")
    assert not (tmp_path / "site").exists()
