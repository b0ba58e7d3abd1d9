"""Every setting that a document or a golden names exists: a repair that names another one repairs nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from pydantic import BaseModel

from bezel.planner.base.settings import Settings

ROOT = Path(__file__).parents[2]
# A second colon makes it the token of a resource's type.
NAMED = re.compile(r"\bbezel:(?P<path>[a-z]\w*(?:\\?[.\w-])*)(?![\w:])")


def exists(path: str) -> bool:
    model: type[BaseModel] | None = Settings
    for part in path.split("."):
        if model is None or part.isdigit():
            continue  # inside a map or a list
        if part not in model.model_fields:
            return False
        kind = model.model_fields[part].annotation
        model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
    return True


def unknown_in(text: str) -> set[str]:
    # Markdown escapes an underline outside of code; a period may end the sentence.
    named = {match["path"].replace("\\", "").rstrip(".-") for match in NAMED.finditer(text)}
    return {path for path in named if not exists(path)}


def test_every_named_setting_exists():
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "tests/**/goldens/**"], cwd=ROOT, capture_output=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.decode().splitlines()]
    assert len(files) > 80
    unknown = {str(file.relative_to(ROOT)): unknown_in(file.read_text()) for file in files if file.is_file()}
    assert {file: names for file, names in unknown.items() if names} == {}


def test_settings_that_do_not_exist_are_found():
    assert unknown_in("set `bezel:max_model_len` to 32768.") == {"max_model_len"}
    assert unknown_in(r"bezel:max\_model\_len = 9: too long") == {"max_model_len"}
    assert unknown_in("lower bezel:scaling.instances.") == {"scaling.instances"}
    assert unknown_in("bezel:scaling.max_instances, bezel:vllm.max-model-len, bezel:lease.zones.0.zone") == set()
    assert unknown_in("bezel:project:EnabledApis") == set()
