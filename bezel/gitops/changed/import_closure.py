"""Import closure of the program, for each kind of stack: the files that a deploy of such a stack can load.

Static: files are parsed, never imported. Imports count wherever they stand, in functions and under TYPE_CHECKING too,
and so does a text that is the name of a module. The dispatch of a plan to its kind of stack is the one place where the
two kinds part. The policy packs belong to every stack, as each deploy is judged by them.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

KINDS: Mapping[str, str] = {"service": "bezel_services.vllm_service", "lease": "bezel_services.leased_vllm_service"}
"""Kind of stack -> the module that only this kind's dispatch loads."""
_DISPATCH = "bezel_stacks.dispatch"
_PROGRAM = "__main__"
# Folders of the workspace's members: packages are imported from them, as from the project's own folder.
_MEMBERS = ("packages/*", "bootstrap", "components", "policies", "services", "smoke", "stacks")
_IN_PACKAGE = re.compile(
    r"bezel(?=/)|(?:packages/(?P<package>[^/]+)|(?P<member>bootstrap|components|policies|services|smoke|stacks))/(?P<name>[^/]+)(?=/)"
)


class UnparsedError(Exception):
    """A file of the program cannot be parsed, so what it imports is unknown."""


def package_of(path: str) -> str | None:
    """The folder of the package that a path is in, e.g. `packages/base/bezel_base`; None outside of any.

    A member owns one package, named after its folder. One of another name in it may hide that of another member.
    """
    match = _IN_PACKAGE.match(path)
    if match is None or (match["name"] and match["name"] != _package_name(match["package"] or match["member"])):
        return None
    return match[0]


def _package_name(member: str) -> str:
    return f"bezel_{member.replace('-', '_')}"


def import_roots(tree: Path) -> list[Path]:
    """Folders of a tree from which its packages are imported: its own, then those of members that hold a package."""
    members = (folder for pattern in _MEMBERS for folder in sorted(tree.glob(pattern)))
    return [tree, *(folder for folder in members if (folder / _package_name(folder.name)).is_dir())]


def modules_of(tree: Path) -> dict[str, str]:
    """The program's modules, and those that the policy packs start with: dotted name -> path in the tree."""
    entry_points = [tree / "__main__.py", *sorted(tree.glob("policies/*/__main__.py"))]
    files = {_module_name(file.relative_to(tree)): file for file in entry_points if file.is_file()}
    for root in import_roots(tree):
        package = root / ("bezel" if root == tree else _package_name(root.name))
        files |= {_module_name(file.relative_to(root)): file for file in sorted(package.rglob("*.py"))}
    return {name: file.relative_to(tree).as_posix() for name, file in files.items()}


def _module_name(file: Path) -> str:
    return ".".join(file.parent.parts if file.name == "__init__.py" else file.with_suffix("").parts)


def closures(tree: Path) -> dict[str, frozenset[str]]:
    """Kind of stack -> the paths that its program and the policy packs load.

    Raises:
        UnparsedError: a file cannot be parsed.
    """
    modules = modules_of(tree)
    packs = [name for name in modules if name.startswith("policies.") and name.endswith(".__main__")]
    imports: dict[str, frozenset[str]] = {}
    paths_of_kind = {}
    for kind in KINDS:
        others = {module for other, module in KINDS.items() if other != kind}
        waiting, seen = [root for root in (_PROGRAM, *packs) if root in modules], set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                if name not in imports:
                    imports[name] = frozenset(_imported_names(tree / modules[name], name, modules))
                waiting += imports[name] - (others if name == _DISPATCH else set())
        paths_of_kind[kind] = frozenset(modules[name] for name in seen)
    return paths_of_kind


def _imported_names(file: Path, module: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Names of the program's modules that a file imports or names, and their packages."""
    try:
        names = _names_in(file.read_bytes(), module, file.name == "__init__.py")
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise UnparsedError(f"{modules[module]}: {error}") from None
    for name in names:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            if (part := ".".join(parts[:end])) in modules:
                yield part


@lru_cache(maxsize=2048)  # of two trees that are compared nearly all files are the same
def _names_in(source: bytes, module: str, is_package: bool) -> frozenset[str]:
    """Names of modules, the program's and others, that a source text imports or names."""
    nodes = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Constant)
    )
    return frozenset(name for node in nodes for name in _names(node, module, is_package=is_package))


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
        case ast.Constant(value=str(text)) if text.partition(".")[0].partition("_")[0] == "bezel":
            yield text
