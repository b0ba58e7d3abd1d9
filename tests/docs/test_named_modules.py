"""A docstring or comment that names a module of this repository names one that exists."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# bezel.toml is the pipeline's file, and bezel.bench/1 the format of a result.
NAMED = re.compile(r"\bbezel(?:_[a-z_]+)?(?!\.toml\b)(?:\.[a-z][a-z_0-9]*)+\b(?![(\[/])")
# They import what an earlier commit has under another name.
OF_EARLIER_COMMITS = ("formats.py", "interfaces.py")


def dead(text: str) -> set[str]:
    """The dotted names in a text that are neither a package nor a module, nor a name in one."""
    return {match[0] for match in NAMED.finditer(text) if not exists(match[0].split("."))}


def exists(parts: list[str]) -> bool:
    spec = importlib.util.find_spec(parts[0])
    if spec is None or not spec.submodule_search_locations:
        return False
    folder, parts = Path(next(iter(spec.submodule_search_locations))), parts[1:]
    for number, part in enumerate(parts):
        if (folder / part).is_dir():
            folder /= part
            continue
        module = folder / f"{part}.py"
        name = "".join(parts[number + 1 : number + 2]) if module.is_file() else part
        source = module if module.is_file() else folder / "__init__.py"
        return bool(re.search(rf"\b{name}\b", source.read_text(encoding="utf-8")))
    return True


@pytest.mark.parametrize(
    "folder", ["bezel", "components", "packages", "services", "smoke", "stacks", "policies", "tools"]
)
def test_every_module_that_a_text_of_the_product_names_exists(folder: str) -> None:
    files = [path for path in sorted((ROOT / folder).rglob("*.py")) if path.name not in OF_EARLIER_COMMITS]
    named = {path: dead(path.read_text(encoding="utf-8")) for path in files}
    assert not {str(path): names for path, names in named.items() if names}


def test_a_module_that_does_not_exist_is_found() -> None:
    assert dead("Leaves the plan to bezel.planner.assemble.lease_build.") == {"bezel.planner.assemble.lease_build"}
    assert not dead("See bezel.planner.assemble.build and bezel_base.errors.one_line, in bezel.planner.")
