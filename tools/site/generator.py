"""Zensical, the generator of the site: its configuration, and one run of it.

It runs in an environment of its own (`.venv/site`, from uv.lock), reads no network, and its pages load nothing from
elsewhere: fonts are the system's, and the worker that searches pages opened from a folder is the site's own.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError
from tools.site.pages import FILE_WORKER, STYLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.site.navigation import Section

ZENSICAL = Path(__file__).parents[2] / ".venv" / "site" / "bin" / "zensical"
SECONDS = 300.0
PAGES, BUILT = "pages", "built"
_SHIM = '"https://unpkg.com/iframe-worker/shim"'
_PALETTE = [
    ("(prefers-color-scheme)", "default", "lucide/sun-moon", "Switch to light mode"),
    ("(prefers-color-scheme: light)", "default", "lucide/sun", "Switch to dark mode"),
    ("(prefers-color-scheme: dark)", "slate", "lucide/moon", "Switch to system preference"),
]
_EXTENSIONS: list[dict[str, object]] = [
    {"tables": {}},
    {"sane_lists": {}},
    # Anchors as forges make them, so that a link holds there and here.
    {"toc": {"permalink": True, "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}}},
    {"pymdownx.highlight": {"pygments_lang_class": True}},
    {"pymdownx.superfences": {}},
    {"pymdownx.magiclink": {}},
]


def configuration(sections: Sequence[Section], below: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> str:
    """The configuration as JSON, which YAML includes.

    Args:
        sections: The navigation.
        below: Page -> the pages that a section below it lists.
        titles: Page -> its title.
    """
    entries: list[object] = [{"Home": "README.md"}]
    for section in sections:
        pages: list[object] = [
            {titles[page]: [page, *({titles[each]: each} for each in below[page])]}
            if page in below
            else {titles[page]: page}
            for page in section.pages
        ]
        entries.append({section.title: [*(["docs/README.md"] if section is sections[0] else []), *pages]})
    settings = {
        "site_name": "Bezel",
        "site_description": "Language models on Google Cloud by one Pulumi program: planned, checked, measured.",
        "docs_dir": PAGES,
        "site_dir": BUILT,
        "use_directory_urls": False,
        # The links of the built pages are checked instead, those of pictures and anchors among them.
        "validation": False,
        "nav": entries,
        "theme": {
            "variant": "modern",
            "font": False,
            "features": [
                "navigation.tabs",
                "navigation.indexes",
                "navigation.top",
                "navigation.footer",
                "search.highlight",
                "content.code.copy",
            ],
            "palette": [
                {"media": media, "scheme": scheme, "toggle": {"icon": icon, "name": text}}
                for media, scheme, icon, text in _PALETTE
            ],
        },
        "plugins": ["search", "offline"],
        "extra": {"generator": False, "version": {"provider": "mike", "default": "latest"}},
        "extra_css": [STYLE.name],
        "markdown_extensions": _EXTENSIONS,
    }
    return json.dumps(settings, indent=2)


def generate(folder: Path, text: str, program: Path = ZENSICAL) -> Path:
    """Build the pages in `folder`/pages; return the folder of the site.

    Args:
        folder: The project's.
        text: The configuration.
        program: The generator.

    Raises:
        UserError: The generator is not installed, or failed: the last lines of its output.
    """
    if not program.is_file():
        consequence = "The generator of the site is not installed, so no page is built."
        raise UserError(Problem("generator", str(program), consequence, "run `python3 tools/toolchain site`."))
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    command = [str(program), "build", "--clean", "-f", "mkdocs.yml"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS)
    if run.returncode or not (folder / BUILT / "index.html").is_file():
        lines = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr).strip().splitlines()
        raise UserError("\n".join(["zensical failed:", *lines[-10:]]))
    # Of a folder of the site a host would not show it.
    (folder / BUILT / "404.html").unlink(missing_ok=True)
    for page in (folder / BUILT).rglob("*.html"):
        depth = len(page.relative_to(folder / BUILT).parents) - 1
        content = page.read_text(encoding="utf-8")
        page.write_text(content.replace(_SHIM, f'"{"../" * depth}{FILE_WORKER.name}"'), encoding="utf-8")
    return folder / BUILT
