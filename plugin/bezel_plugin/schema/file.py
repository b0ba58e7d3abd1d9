"""The stored schema: reading it takes a millisecond, making it loads every component."""

from pathlib import Path

FILE = Path(__file__).parents[1] / "schema.json"


def read_schema() -> str:
    """The package's schema as JSON."""
    return FILE.read_text(encoding="utf-8")
