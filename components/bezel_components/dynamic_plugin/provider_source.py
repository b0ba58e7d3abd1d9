"""Classes of providers in the source of a module, found without a line of it being run.

An import runs a module and the packages above it, so a name of a pickle is looked up in the source first. A base may
come from another module, which is read in the same way. Leaves out classes that only running the module would show
(an alias, `type(...)`, `import *`) and classes within another.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

_PROVIDERS = frozenset({"pulumi.dynamic.ResourceProvider", "pulumi.dynamic.dynamic.ResourceProvider"})


def defines_provider(module: str, name: str) -> bool:
    """Return whether the source of `module` has a class `name` at its top that derives from `ResourceProvider`."""
    definition = _binding(module, name, {})
    return isinstance(definition, ast.ClassDef) and _is_provider(module, name, {}, set())


def _is_provider(module: str, name: str, sources: dict[str, list[ast.stmt]], seen: set[str]) -> bool:
    if (full := f"{module}.{name}") in _PROVIDERS:
        return True
    if full in seen:
        return False
    seen.add(full)
    definition = _binding(module, name, sources)
    if isinstance(definition, str):
        above, _, last = definition.rpartition(".")
        return _is_provider(above, last, sources, seen)
    bases = [_full_name(module, base, sources) for base in definition.bases] if definition else []
    return any(_is_provider(*base.rpartition(".")[::2], sources, seen) for base in bases)


def _full_name(module: str, base: ast.expr, sources: dict[str, list[ast.stmt]]) -> str:
    """`MODULE.NAME` of a base, as the module names it; "" for an expression that is no name."""
    if isinstance(base, ast.Subscript):  # Base[Type]
        base = base.value
    first, *rest = ast.unparse(base).split(".")
    definition = _binding(module, first, sources)
    return (
        ".".join([definition if isinstance(definition, str) else f"{module}.{first}", *rest])
        if first.isidentifier()
        else ""
    )


def _binding(module: str, name: str, sources: dict[str, list[ast.stmt]]) -> ast.ClassDef | str | None:
    """What a module's last statement for a name defines: a class, or `MODULE.NAME` (a module alone) of an import."""
    definition: ast.ClassDef | str | None = None
    if module not in sources:
        sources[module] = list(_statements(_parse_source(module)))
    for statement in sources[module]:
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            definition = statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            definition = _imports(module, statement).get(name, definition)
    return definition


def _imports(module: str, statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Name -> what it stands for after an import in `module`."""
    if isinstance(statement, ast.Import):
        names = [(one.asname, one.name) if one.asname else (one.name.partition(".")[0],) * 2 for one in statement.names]
        return dict(names)
    # One level is the package that holds the module. Relative imports of a package's own file are read one level too
    # high, so a provider there is refused.
    above = module.rsplit(".", statement.level)[0] if statement.level else None
    source = ".".join(filter(None, (above, statement.module)))
    return {one.asname or one.name: f"{source}.{one.name}" for one in statement.names}


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at the top of a module, also those below `if`, `try` and `with`."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            inner = [*statement.body, *getattr(statement, "orelse", []), *getattr(statement, "finalbody", [])]
            yield from _statements(inner + [one for each in getattr(statement, "handlers", []) for one in each.body])


def _parse_source(module: str) -> list[ast.stmt]:
    source = _source(module)
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _source(module: str) -> str:
    """Text of a module, "" for one that is not there or has none; imports neither it nor the packages above it."""
    parts, path = module.split("."), None
    if not all(part.isidentifier() for part in parts):
        return ""
    spec = None
    for position in range(len(parts)):
        name = ".".join(parts[: position + 1])
        specs = (finder.find_spec(name, path) for finder in sys.meta_path)
        try:
            spec = next((one for one in specs if one is not None), None)
            path = list(spec.submodule_search_locations or ()) or None if spec else None
        except KeyError:
            # A package without a file of its own within another such: the finder wants the outer one imported.
            folders = [str(Path(entry) / parts[position]) for entry in path or ()]
            path = [folder for folder in folders if Path(folder).is_dir()]
            continue
        if spec is None or (path is None and position < len(parts) - 1):
            return ""
    read = getattr(spec.loader if spec else None, "get_source", None)
    try:
        return (read(module) if read else None) or ""
    except (ImportError, OSError):
        return ""
