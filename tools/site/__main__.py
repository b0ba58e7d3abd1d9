"""Builds the documentation as a site: `make site`, or .venv/bin/python -m tools.site [VERSION].

Without a version the working tree's pages go to site/next; a release builds its own folder (`tools.release.assets`).
"""

from __future__ import annotations

import sys

from bezel_base.errors import UserError
from tools.site.build import ROOT, build_site


def main(arguments: list[str]) -> int:
    """Build; return the exit status."""
    site = ROOT / "site"
    try:
        build_site(ROOT, site, *arguments[:1])
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(f"Open {site / 'index.html'} in a browser, or serve the folder to see the list of versions as well:")
    print("  .venv/bin/python -m http.server --bind 127.0.0.1 --directory site 8000")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
