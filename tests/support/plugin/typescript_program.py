"""The programs in TypeScript of the documentation, which deploy a model, and the packages of npm that they need."""

import json
import os
import subprocess
from pathlib import Path

from tests.support.clients.environment import npm
from tests.support.docs.markdown import after
from tests.support.plugin.program import DOCUMENT, ROOT, go_program

HOSTS = ROOT / "packages" / "pulumi-offline" / "bezel_pulumi_offline" / "plugins"
"""Where the language host of Node programs is."""
SDK = "sdks/bezel"
PROJECT = """\
name: shop
runtime: nodejs
packages:
  bezel: "@plugin@"
"""
PARTS = after(DOCUMENT, "package: typescript")
FILES = {
    "Pulumi.yaml": PROJECT,
    "index.ts": after(DOCUMENT, "package: typescript service"),
    "package.json": json.dumps({"name": "shop", "main": "index.ts"}),
    "tsconfig.json": json.dumps({"compilerOptions": {"strict": True, "target": "es2022", "module": "commonjs",
                                                     "moduleResolution": "node", "skipLibCheck": True}}),
}  # fmt: skip


def compile_sdk(folder: Path, schema: Path) -> None:
    """Write the package's SDK for TypeScript to a folder and compile it.

    Args:
        folder: Where its sources go; what is compiled is in `bin`.
        schema: The schema's file.
    """
    generator = go_program("pulumi-sdk-generator") / "pulumi-sdk-generator"
    folder.mkdir(parents=True)
    subprocess.run([generator, "-local", "nodejs", schema, folder], check=True, timeout=120)
    modules = npm("pulumi") / "node_modules"
    (folder / "node_modules").symlink_to(modules)
    # What npm runs when it installs the SDK: the compiler, strict.
    path = os.pathsep.join([str(modules / ".bin"), os.environ["PATH"]])
    ended = subprocess.run(
        ["node", "scripts/postinstall.js"],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def install(program: Path) -> None:
    """Put npm's packages and the compiled SDK into a program's `node_modules`, as `npm install` would."""
    modules = program / "node_modules"
    for package in (npm("pulumi") / "node_modules").iterdir():
        if package.name == "@pulumi":
            (modules / package.name).mkdir(parents=True)
            for inner in package.iterdir():
                (modules / package.name / inner.name).symlink_to(inner)
        else:
            modules.mkdir(exist_ok=True)
            (modules / package.name).symlink_to(package)
    (modules / "@pulumi" / "bezel").symlink_to(program / SDK)
