"""A folder of the product or of tools has few modules: its list is read at once, and parts are found by subject."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("bezel", "bootstrap", "components", "packages", "policies", "services", "smoke", "stacks", "tools")
MOST = 15
CUT = f"cut these folders by subject into sub-packages: a folder has {MOST} modules at most, beside __init__.py"


def oversized_folders(root: Path, rooms: tuple[str, ...]) -> dict[str, int]:
    """Folders below some rooms with more modules than `MOST`, and how many each has; folders of tests are not meant."""
    modules: dict[str, int] = {}
    for path in (path for room in rooms for path in (root / room).rglob("*.py")):
        folder = path.relative_to(root).parent
        if path.name != "__init__.py" and "tests" not in folder.parts:
            modules[str(folder)] = modules.get(str(folder), 0) + 1
    return {folder: number for folder, number in sorted(modules.items()) if number > MOST}


def test_no_folder_has_more_modules_than_fit_in_a_look() -> None:
    assert oversized_folders(ROOT, ROOMS) == {}, CUT


def test_a_folder_with_too_many_modules_is_named(tmp_path: Path) -> None:
    for folder, number in {"rest": MOST, "rest/client": MOST + 1, "rest/tests": MOST + 1}.items():
        (tmp_path / folder).mkdir()
        for name in ("__init__", *(f"module_{each}" for each in range(number))):
            (tmp_path / folder / f"{name}.py").touch()
    assert oversized_folders(tmp_path, ("rest",)) == {"rest/client": MOST + 1}
