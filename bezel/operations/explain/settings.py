"""Settings of a stack file: type, bounds, choices, default and meaning of each key, from their one description."""

from functools import cache

from bezel.operations.explain.entry import Entry, facts, list_text
from bezel.planner.base.problems import NAMESPACE, setting
from bezel.planner.render.settings_schema import BOUNDS, Key, setting_keys


def names() -> list[str]:
    """Every key with its section, e.g. `scaling.max_instances`."""
    return list(_keys())


def entries(subject: str) -> list[Entry]:
    """What the settings say about a key: by its path, with or without the namespace, or by its last part."""
    name = subject.strip().removeprefix(f"{NAMESPACE}:")
    keys = _keys()
    return [_entry(path) for path in ([name] if name in keys else keys) if name in (path, path.rpartition(".")[2])]


@cache
def _keys() -> dict[str, Key]:
    """Path -> every key; those in the entries of a list have its path before theirs."""
    return {".".join(part.removesuffix("[]") for part in key.path): key for key in setting_keys()}


def _entry(path: str) -> Entry:
    key = _keys()[path]
    inner = [below.rpartition(".")[2] for below in _keys() if below.rpartition(".")[0] == path]
    is_section = bool(inner) and key.kind == "map"
    rows = {
        "takes": "a section" if is_section else key.form,
        "choices": list_text(key.choices),
        "bounds": list_text(
            f"{comparison} {key.schema[name]:g}" for name, comparison in BOUNDS.items() if name in key.schema
        ),
        "default": None if key.default_text in ("empty", "none", "computed") else key.default_text,
        "example": list_text(_as_written(example) for example in key.schema.get("examples") or ()),
        "keys": list_text(inner),
    }
    return Entry(
        kind="setting",
        name=setting(path),
        meaning=key.description.replace("`", ""),
        facts=facts(rows),
        why=(),
        source="bezel/planner/base/settings.py",
    )


def _as_written(example: object) -> str:
    """An example as a stack file writes it, in one line."""
    import yaml  # late: only an explanation needs it

    return yaml.safe_dump(example, default_flow_style=True, width=10_000).removesuffix("\n...\n").strip()
