"""`python -m bezel_plugin.schema` writes `schema.json`, `... --check` compares it and ends with 1 if it differs."""

import json
import sys

from bezel_plugin.schema.file import FILE
from bezel_plugin.schema.package import package_schema


def main() -> int:
    """Write or compare the file; return the exit code."""
    text = json.dumps(package_schema(), indent=1) + "\n"
    if "--check" in sys.argv[1:]:
        return int(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
