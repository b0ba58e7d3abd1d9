"""Archives of a release that hold their own wheels: the Pulumi package, and the policy packs.

Each is a project of uv with the wheels of this release beside it, so that neither needs a clone or an index that has
them; what they need of others comes from the index.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PROJECT = """\
[project]
name = "{name}"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["{requirement}=={version}"]

[tool.uv]
package = false
find-links = ["wheels"]
"""


def pack_plugin(root: Path, wheels: Path, version: str) -> Path:
    """Write the Pulumi package beside its wheels; return the archive, which `pulumi plugin install --file` takes."""
    files = _project(wheels, "bezel-package", "bezel-plugin", version)
    for name in ("PulumiPlugin.yaml", "__main__.py", "LICENSE"):
        files[name] = (root / "plugin" / name).read_bytes()
    return _write(wheels / f"pulumi-resource-bezel-v{version}.tar.gz", files)


def pack_policies(root: Path, wheels: Path, version: str) -> Path:
    """Write the policy packs with their limits, as folders that `--policy-pack` takes; return the archive."""
    files = _project(wheels, "bezel-packs", "bezel-policies", version)
    files["LICENSE"] = (root / "policies" / "LICENSE").read_bytes()
    for pack in sorted(file.parent for file in (root / "policies").glob("*/PulumiPolicy.yaml")):
        for file in sorted(pack.iterdir()):
            if file.is_file():
                # The environment of a clone is beside the folder of the packs, that of this archive beside each pack.
                files[f"{pack.name}/{file.name}"] = file.read_bytes().replace(b"../../.venv", b"../.venv")
    for limits in sorted((root / "policies").glob("*.json")):
        files[limits.name] = limits.read_bytes()
    return _write(wheels / f"bezel-policy-packs-{version}.tar.gz", files)


def _project(wheels: Path, name: str, requirement: str, version: str) -> dict[str, bytes]:
    text = _PROJECT.format(name=name, requirement=requirement, version=version)
    files = {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in sorted(wheels.glob("*.whl"))}
    return {"pyproject.toml": text.encode(), **files}


def _write(archive: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return archive
