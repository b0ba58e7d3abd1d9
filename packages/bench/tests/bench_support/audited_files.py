"""Files that an audit is asked about, and the faults that it finds in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_bench.audit.runner import audit_files

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "context_tokens,users,value,unit,success_pct,status\n"


def grid(values: dict[int, list[float]], *, unit: str = "req/s", success: str = "100", scale: float = 1.0) -> str:
    """The file of a grid: context -> the value at each number of users."""
    users = (1, 8, 64, 512)
    return HEAD + "".join(
        f"{context},{user},{value * scale:.2f},{unit},{success},ok\n"
        for context, line in values.items()
        for user, value in zip(users, line, strict=True)
    )


CLEAN = {
    16: [3.81, 20.17, 44.03, 45.59],
    64: [3.77, 19.83, 43.21, 44.72],
    256: [3.52, 17.29, 38.66, 40.13],
    1024: [2.61, 9.44, 14.87, 15.02],
}


def audit(folder: Path, **files: str) -> set[int]:
    """Faults that are found in files of such names (`_csv` and `_json` for their ends) and contents."""
    paths = []
    for name, text in files.items():
        paths.append(folder / name.replace("_csv", ".csv").replace("_json", ".json"))
        paths[-1].write_text(text, encoding="utf-8")
    result = audit_files(paths)
    assert not result.unreadable
    return {finding.kind for finding in result.findings}
