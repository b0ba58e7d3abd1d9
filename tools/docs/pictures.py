"""Pictures of the README: a comment on a pull request, and a report of a sweep, in the toolchain's Chromium.

.venv/bin/python -m tools.docs.pictures                 the comment, into docs/pictures
.venv/bin/python -m tools.docs.pictures RESULT.json     and the report of this result
... --out FOLDER                                        into another folder

The comment is a recorded one (`tests/gitops/goldens/comments`), which a test holds to what `bezel ci comment` writes.
The report is what `bezel bench report` makes of a sweep of l4-qat on the embedded cloud, on an idle machine:

.venv/bin/bezel bench sweep --stack l4-qat --full --contexts 128,512,2048 --users 2,4,8,16 --output-tokens 64
--requests-per-user 2 --title "l4-qat, embedded cloud" --out RESULT.json
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from markdown_it import MarkdownIt

from tools.docs.generated_sections import ROOT

FOLDER = ROOT / "docs" / "pictures"
COMMENT = ROOT / "tests" / "gitops" / "goldens" / "comments" / "l4-qat-update.md"
SECONDS = 120.0
# Of the report the picture shows the head and the figures.
REPORT_HEIGHT = 1010
WITHOUT_SUMMARY = "<style>nav, #summary { display: none }</style>"
# As a forge shows a comment: its own fonts differ by machine, so the picture names a common one first.
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 16px; font: 15px/1.5 "DejaVu Sans", sans-serif; color: #1f2328 }}
article {{ border: 1px solid #d1d9e0; border-radius: 6px }}
header {{ padding: 8px 16px; color: #59636e; background: #f6f8fa; border-bottom: 1px solid #d1d9e0 }}
header {{ border-radius: 6px 6px 0 0 }}
main {{ padding: 4px 16px }}
h3 {{ margin: 12px 0 }}
a {{ color: #0969da; text-decoration: none }}
code {{ font: 13px "DejaVu Sans Mono", monospace; background: #eff1f3; border-radius: 6px; padding: 2px 5px }}
h3 code {{ font-size: 17px }}
li {{ margin: 4px 0 }}
</style><article><header><b>pipeline</b> commented on the pull request “Two instances for l4-qat”</header>
<main>{body}</main></article>"""


def comment_page(markdown: str) -> str:
    """The comment as a forge renders it: HTML in it is kept, folded parts stay folded."""
    return PAGE.format(body=MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown))


def report_page(result: Path) -> str:
    """The page of a result, as `bezel bench report` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = [str(ROOT / ".venv" / "bin" / "bezel"), "bench", "report", str(result), "--out", str(page)]
        subprocess.run(command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)
        return page.read_text(encoding="utf-8")


def photograph(page: str, picture: Path, *, width: int, height: int) -> None:
    """Write a page's first `height` pixels (at `width` pixels, scale 1) as PNG.

    Raises:
        SystemExit: Chromium is missing or failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, taken = Path(folder) / "page.html", Path(folder) / "taken.png"
        source.write_text(page, encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
        options += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", f"--screenshot={taken}"]
        command = [str(ROOT / ".venv" / "bin" / "chromium"), *options, source.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        if run.returncode or not taken.exists():
            raise SystemExit(f"no picture: {run.stderr.strip()[-500:]}\nRepair: run `make setup-dev`.")
        picture.write_bytes(recompress(taken.read_bytes()))


def recompress(png: bytes) -> bytes:
    """The PNG with its picture data compressed as far as zlib can, and without the chunks that only describe it."""
    chunks = list(_chunks(png))
    data = zlib.compress(zlib.decompress(b"".join(content for name, content in chunks if name == b"IDAT")), 9)
    kept = [(name, content) for name, content in chunks if name in {b"IHDR", b"PLTE", b"tRNS"}]
    return png[:8] + b"".join(_chunk(*chunk) for chunk in [*kept, (b"IDAT", data), (b"IEND", b"")])


def _chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    chunks, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        chunks.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    return chunks


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def main(arguments: list[str]) -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("result", type=Path, nargs="?", metavar="RESULT.json")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    text = COMMENT.read_text(encoding="utf-8")
    photograph(comment_page(text), options.out / "comment.png", width=860, height=440)
    if options.result:
        photograph(
            report_page(options.result) + WITHOUT_SUMMARY, options.out / "report.png", width=1100, height=REPORT_HEIGHT
        )


if __name__ == "__main__":
    main(sys.argv[1:])
