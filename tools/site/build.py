"""Build of a site's version: pages, generator, checks, folder. Nothing of it is put in place unless all links hold."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bezel_base.errors import UserError
from tools.site import versions
from tools.site.generator import PAGES, configuration, generate
from tools.site.links import broken_links
from tools.site.navigation import HOME, INDEX, RECORDS, navigation, records, title_of
from tools.site.pages import write_pages
from tools.site.structure import changed_structure

ROOT = Path(__file__).resolve().parents[2]


def build_site(root: Path, site: Path, name: str = versions.NEXT) -> None:
    """Build the documents of a repository into a folder of a site.

    Args:
        root: The repository's folder.
        site: The folder with one folder for each version.
        name: The version's.

    Raises:
        UserError: The navigation is incomplete, a link does not hold, a page is not shown as a forge shows it.
    """
    sections = navigation(root)
    below = {RECORDS: records(root)}
    pages = [HOME, INDEX, *(page for section in sections for page in section.pages), *below[RECORDS]]
    titles = {page: title_of(root, page) for page in pages}
    with tempfile.TemporaryDirectory(prefix="bezel-site-") as made:
        folder = Path(made)
        write_pages(root, pages, folder / PAGES)
        built = generate(folder, configuration(sections, below, titles))
        problems = [*broken_links(built), *changed_structure(root, pages, built)]
        if problems:
            raise UserError(*problems, title="The site is not built")
        versions.add_version(site, name, built)
