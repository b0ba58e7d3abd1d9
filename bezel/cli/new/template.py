"""Files of a new project as shipped: a template of `pulumi new`, whose placeholders are filled in here in the same way.

In a checkout they are templates/gemma, in an installed package a copy of it beside this module, which
tools/release/wheel.py makes. Leaves out the stack file, which is made for a model (`stack_text`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel_base.errors import Problem, UserError

STACK_FILE = "Pulumi.dev.yaml"
DESCRIPTION = "Gemma 4 on vLLM, on Google Cloud"
_IN_CHECKOUT = Path(__file__).resolve().parents[3] / "templates" / "gemma"
_IN_PACKAGE = Path(__file__).with_name("template")
_FOR_PULUMI = re.compile(r"^template:\n(?: .*\n)+", re.MULTILINE)
_NAME, _DESCRIPTION = "${PROJECT}", "${DESCRIPTION}"


@dataclass(frozen=True)
class Source:
    """Where the library comes from, for `uv`: a folder of wheels, an index, or "" for the default index."""

    place: str = ""

    def lines(self) -> str:
        """Lines for pyproject.toml, at the end of the table of uv."""
        if not self.place:
            return ""
        if "://" in self.place:
            return f'\n[[tool.uv.index]]\nname = "bezel"\nurl = {_quote(self.place)}\n'
        return f"find-links = [{_quote(self.place)}]\n"


def template_files(folder: Path | None = None) -> dict[str, str]:
    """Path below the project's folder -> text, with the placeholders.

    Raises:
        UserError: This installation has no template.
    """
    place = folder or next((each for each in (_IN_CHECKOUT, _IN_PACKAGE) if (each / "Pulumi.yaml").is_file()), None)
    if place is None:
        consequence = "this installation of bezel has no files of a new project."
        repair = "install a wheel of a release, or run the command in a clone."
        raise UserError(Problem(str(_IN_PACKAGE), None, consequence, repair))
    files = sorted(file for file in place.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(place).as_posix(): file.read_text(encoding="utf-8") for file in files}


def project_files(
    name: str, source: Source, stack: str, stack_text: str, *, environment: str = ""
) -> Mapping[str, str]:
    """Path -> text of a new project.

    Args:
        name: The project's name.
        source: Where the library comes from.
        stack: Name of its first stack.
        stack_text: Content of the stack's file.
        environment: Of the stack; by default, of the same name.

    Raises:
        UserError: This installation has no template.
    """
    files = {path: fill_in(text, name) for path, text in template_files().items() if path != STACK_FILE}
    files["pyproject.toml"] += source.lines()
    if stack != "dev":
        files = {path: _with_stack(path, text, stack, environment or stack) for path, text in files.items()}
    return {**files, f"Pulumi.{stack}.yaml": stack_text}


def _with_stack(path: str, text: str, stack: str, environment: str) -> str:
    """A file of the template for a project whose first stack has another name."""
    if path == "bezel.toml":
        return text.replace('dev = "dev"', f"{stack} = {_quote(environment)}")
    if path == "Makefile":
        return text.replace("STACK ?= dev", f"STACK ?= {stack}").replace("(dev)", f"({stack})")
    if path == "README.md":
        if environment == "prod":
            text = text.replace("stack prod --from dev --environment prod", "stack trial --from dev")
        return re.sub(r"\bdev\b", stack, text)
    return text


def fill_in(text: str, name: str) -> str:
    """A file of the template with the project's name, and without what is for `pulumi new` alone."""
    return _FOR_PULUMI.sub("", text).replace(_NAME, name).replace(_DESCRIPTION, DESCRIPTION)


def _quote(text: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON; DEL is the one character that JSON leaves as it is."""
    return json.dumps(text).replace("\x7f", "\\u007F")
