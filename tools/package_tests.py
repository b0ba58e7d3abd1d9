"""Imported first, it lets a tool import helpers of the packages' tests (`localcloud_support`), as the tests do."""

import sys
from pathlib import Path

sys.path.extend(str(folder) for folder in sorted(Path(__file__).parents[1].glob("packages/*/tests")))
