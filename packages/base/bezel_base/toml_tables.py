"""Tables of a package's own TOML files, kept parsed beside them as Python keeps bytecode.

`tomllib` is written in Python: the table of a program's commands took longer to parse than its modules to compile.
What is kept has the text that it was parsed from, so that another text is parsed anew, whatever the files' times are.
Leaves out files of a user, which are read once.
"""

import contextlib
import marshal
import sys
from pathlib import Path
from typing import Any

from bezel_base.atomic_write import write_whole


def read_table(file: Path) -> dict[str, Any]:
    """The content of a TOML file of a package; where its folder cannot be written, it is parsed each time.

    Raises:
        OSError: The file cannot be read.
        tomllib.TOMLDecodeError: It is not TOML.
    """
    text = file.read_bytes()
    parsed_file = file.parent / "__pycache__" / f"{file.name}.{sys.implementation.cache_tag}.marshal"
    with contextlib.suppress(OSError, EOFError, TypeError, ValueError):  # none, a torn one, or of something else
        parsed_text, content = marshal.loads(parsed_file.read_bytes())  # noqa: S302 - as trusted as bytecode there
        if parsed_text == text:
            return dict(content)
    import tomllib

    content = tomllib.loads(text.decode())
    # A date has no such form: a table with one is parsed each time.
    if not (sys.dont_write_bytecode or sys.pycache_prefix):
        with contextlib.suppress(OSError, ValueError):
            parsed_file.parent.mkdir(exist_ok=True)
            write_whole(parsed_file, marshal.dumps((text, content)), durable=False)
    return content
