"""SDKs of Pulumi packages: written by a program of the CLI's own generators, and entered into a program's dependencies.

`pulumi package add` asks the language's host for both. The program, `pulumi-sdk-generator`, is looked for on PATH; a
clone builds it (tools/go). Leaves out installing what was entered: the engine asks for that next.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GENERATOR = "pulumi-sdk-generator"
Run = Callable[[Sequence[str], Path], tuple[int, str]]
"""Runs a command in a folder; its exit code, and what it wrote."""


class SdkError(Exception):
    """An SDK cannot be written or entered; the text says why, and what to do."""


def generate(
    run: Run, language: str, schema: str, folder: Path, *, loader: str, local: bool, extra: Mapping[str, bytes]
) -> None:
    """Write the SDK of a package.

    Args:
        run: Runs the generator.
        language: `nodejs`, `python` or `go`.
        schema: The package's schema as JSON.
        folder: Folder of the SDK.
        loader: Address of the engine's server of other packages' schemas, "" for none.
        local: Whether it is for one program, as `pulumi package add` writes it.
        extra: Path -> content of files that are added.

    Raises:
        SdkError: There is no generator, or it failed.
    """
    program = shutil.which(GENERATOR)
    if program is None:
        raise SdkError(
            f"{GENERATOR} is not on PATH, so no SDK can be written. Build it in a clone of Bezel "
            f"(`python3 tools/toolchain/go_programs.py {GENERATOR}` prints its folder), and put it on PATH."
        )
    options = [*(["-local"] if local else []), *(["-loader", loader] if loader else [])]
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(schema)
        file.flush()
        code, text = run([program, *options, language, file.name, str(folder)], folder)
    if code:
        raise SdkError(f"the SDK for {language} cannot be written: {text.strip()}")
    for name, content in extra.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def link_python(run: Run, root: Path, paths: Sequence[str], *, toolchain: str) -> str:
    """Enter SDKs into a Python program's dependencies; return what a program then writes.

    Args:
        run: Runs uv.
        root: The program's folder.
        paths: Folders of the SDKs, from there.
        toolchain: `uv`, or `pip` with a requirements.txt.

    Raises:
        SdkError: uv failed.
    """
    if toolchain == "uv":
        code, text = run(["uv", "add", "--no-sync", *(f"./{path}" for path in paths)], root)
        if code:
            raise SdkError(f"uv cannot add {', '.join(paths)}: {text.strip()}")
    else:
        file = root / "requirements.txt"
        present = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        added = [f"./{path}" for path in paths if f"./{path}" not in present]
        file.write_text("\n".join([*present, *added]) + "\n", encoding="utf-8")
    # Named after the package's owner where it came from a git repository: acme_bezel, else pulumi_bezel.
    modules = [next((root / path).glob("*/pulumi-plugin.json")).parent.name for path in paths]
    names = [(module, module.partition("_")[2] or module) for module in modules]
    return "\n".join(f"You can import it in a program:\n\n  import {module} as {name}\n" for module, name in names)


def link_node(root: Path, paths: Sequence[str]) -> str:
    """Enter SDKs into a Node program's package.json; return what a program then writes.

    Args:
        root: The program's folder.
        paths: Folders of the SDKs, from there.

    Raises:
        SdkError: There is no package.json.
    """
    file = root / "package.json"
    if not file.is_file():
        raise SdkError(f"{root} has no package.json to enter the SDK into: run `npm init --yes`.")
    content, instructions = json.loads(file.read_text(encoding="utf-8")), ""
    for path in paths:
        name = json.loads((root / path / "package.json").read_text(encoding="utf-8"))["name"]
        content.setdefault("dependencies", {})[name] = f"file:{path}"
        instructions += f'You can import it in a program:\n\n  import * as {name.rpartition("/")[2]} from "{name}";\n'
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return instructions
