"""Import closure of the program, for each kind of stack: the files that a deploy of such a stack can load.

Static: files are parsed, never imported. Imports count wherever they stand, in functions and under TYPE_CHECKING too,
and so does a text that is the name of a module. The dispatch of a plan to its kind of stack is the one place where the
two kinds part. The policy packs belong to every stack, as each deploy is judged by them.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

PACKAGES = ("bezel", "bootstrap", "components", "policies", "smoke", "stacks")
KINDS: Mapping[str, str] = {"service": "stacks.cloud_run", "lease": "stacks.lease"}
"""Kind of stack -> the module that only this kind's dispatch loads."""
_DISPATCH = "stacks.dispatch"
_PROGRAM = "__main__"


class UnparsedError(Exception):
    """A file of the program cannot be parsed, so what it imports is unknown."""


def modules_of(tree: Path) -> dict[str, str]:
    """The program's modules: dotted name -> path in the tree."""
    files = [tree / "__main__.py", *(file for package in PACKAGES for file in sorted((tree / package).rglob("*.py")))]
    found: dict[str, str] = {}
    for file in files:
        if file.is_file():
            path = PurePosixPath(file.relative_to(tree).as_posix())
            parts = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
            found[".".join(parts)] = str(path)
    return found


def closures(tree: Path) -> dict[str, frozenset[str]]:
    """Kind of stack -> the paths that its program and the policy packs load.

    Raises:
        UnparsedError: a file cannot be parsed.
    """
    modules = modules_of(tree)
    packs = [name for name in modules if name.startswith("policies.") and name.endswith(".__main__")]
    imports: dict[str, frozenset[str]] = {}
    found = {}
    for kind in KINDS:
        others = {module for other, module in KINDS.items() if other != kind}
        waiting, seen = [root for root in (_PROGRAM, *packs) if root in modules], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                if name not in imports:
                    imports[name] = frozenset(_imported(tree / modules[name], name, modules))
                waiting += imports[name] - (others if name == _DISPATCH else set())
        found[kind] = frozenset(modules[name] for name in seen)
    return found


def _imported(file: Path, module: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Names of the program's modules that a file imports or names, and their packages."""
    try:
        parsed = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise UnparsedError(f"{modules[module]}: {error}") from None
    for node in ast.walk(parsed):
        for name in _names(node, module, is_package=file.name == "__init__.py"):
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                if (part := ".".join(parts[:end])) in modules:
                    yield part


def _names(node: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: None if is_package and node.level == 1 else -node.level + is_package]
                base = ".".join([*parents, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        case ast.Constant(value=str(text)) if text.partition(".")[0] in PACKAGES:
            yield text
