"""Changes of stack files for tests."""

from pathlib import Path

import yaml


def change_stack_file(file: Path, path: str, value: object) -> None:
    """Change one value of a stack file: `change_stack_file(file, "vllm.max-num-seqs", 4)`; None removes it."""
    content = yaml.safe_load(file.read_text())
    first, *rest = path.split(".")
    place, key = content["config"], f"bezel:{first}"
    for step in rest:
        place = place.setdefault(key, {})
        key = step
    if value is None:
        place.pop(key, None)
    else:
        place[key] = value
    file.write_text(yaml.safe_dump(content, sort_keys=False))
