"""Source of the Pulumi CLI for a build with Go: the published module without what only other clouds need.

The drivers of AWS, Azure, Vault and PostgreSQL and three commands of Pulumi Cloud are a quarter of the packages.
The files of `pulumi/left_out` take their place: errors that name what is missing and the official release.

Leaves out the build itself (`pulumi_cli`).
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import go_text
import progress

PKG = "github.com/pulumi/pulumi/pkg/v3"
# Google's client of storage speaks gRPC to xDS only with modules of its own; states are read over HTTP.
TAGS = "osusergo,disable_grpc_modules"
STAND_INS = Path(__file__).resolve().parent / "pulumi" / "left_out"
# Each pattern matches one file at least.
REMOVED_FILES = (
    "cmd/esc/cli/setup*.go",
    "cmd/pulumi/cloud/api.go",
    "cmd/pulumi/cloud/cli_command_hints.go",
    "cmd/pulumi/cloud/describe*.go",
    "cmd/pulumi/cloud/encoding.go",
    "cmd/pulumi/cloud/fields.go",
    "cmd/pulumi/cloud/format.go",
    "cmd/pulumi/cloud/list.go",
    "cmd/pulumi/cloud/output.go",
    "cmd/pulumi/cloud/pa*.go",
    "cmd/pulumi/cloud/s*.go",
    "cmd/pulumi/neo/*.go",
)
# The beginning of a line of each file; a line that opens a block takes the block with it.
REMOVED_LINES: Mapping[str, tuple[str, ...]] = {
    "backend/diy/backend.go": (
        '"gocloud.dev/blob/azureblob"',
        '_ "gocloud.dev/blob/s3blob"',
        '_ "github.com/pulumi/pulumi/pkg/v3/backend/diy/postgres"',
        "if p.Scheme == azureblob.Scheme {",
    ),
    "backend/diy/bucket.go": (
        '"net/url"',
        'awss3 "github.com/aws/aws-sdk-go-v2/service/s3"',
        "var input *awss3.CopyObjectInput",
        "if asFunc(&input) {",
        "func fixupS3CopySource(",
    ),
    "cmd/pulumi/cloud/envelope.go": ("type describedOp struct {", "type describeEnvelope struct {"),
    "secrets/cloud/manager.go": (
        '_ "gocloud.dev/secrets/awskms"',
        '_ "gocloud.dev/secrets/azurekeyvault"',
        '_ "gocloud.dev/secrets/hashivault"',
    ),
}


def write_source(module: Path, folder: Path) -> None:
    """Copy the module's folder to the new `folder`, without tests and without what is left out.

    Raises:
        progress.StepError: The module has not all that should be left out: another version than the table is for.
    """
    shutil.copytree(
        module, folder, ignore=shutil.ignore_patterns("testdata", "*_test.go"), copy_function=shutil.copyfile
    )
    for copied in (folder, *folder.rglob("*")):
        # Go keeps modules read-only.
        copied.chmod(copied.stat().st_mode | 0o200)
    missing = []
    for pattern in REMOVED_FILES:
        files = list(folder.glob(pattern))
        if not files:
            missing.append(pattern)
        for file in files:
            file.unlink()
    for name, beginnings in REMOVED_LINES.items():
        file = folder / name
        try:
            file.write_text(go_text.remove_lines(file.read_text(), beginnings))
        except FileNotFoundError:
            missing.append(name)
        except go_text.MissingLinesError as error:
            missing += [f"{name}: {beginning}" for beginning in error.beginnings]
    if missing:
        text = f"{PKG} has not what this build leaves out; adapt tools/toolchain/pulumi_source.py to this version:"
        raise progress.StepError("\n    ".join([text, *missing]))
    shutil.copytree(STAND_INS, folder, dirs_exist_ok=True)


def build_inputs() -> bytes:
    """All that decides what the build leaves out, for the name of its folder in the cache."""
    stand_ins = [(str(file.relative_to(STAND_INS)), file.read_text()) for file in sorted(STAND_INS.rglob("*.go"))]
    return repr((TAGS, REMOVED_FILES, REMOVED_LINES, stand_ins)).encode()
