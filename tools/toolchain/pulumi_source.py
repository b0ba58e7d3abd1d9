"""Source of the Pulumi CLI for a build with Go: the published modules, two of them changed.

1. The CLI's own is without what only other clouds need: the drivers of AWS, Azure, Vault and PostgreSQL and three
   commands of Pulumi Cloud are a quarter of the packages. The files of `pulumi/changed/pkg` take their place: errors
   that name what is missing and the official release.
2. The check of `pulumi config set` for values that look like a secret reads its lists of words when it runs, and the
   schema of packages is compiled when one is read: at each start of the CLI they were half of the time.
3. A key that was derived from the embedded cloud's passphrase is kept beside it (`BEZEL_KEPT_KEYS`): each run of an
   engine derived it anew, two fifths of the engine's time of a preview. Any other passphrase is as in the release.

Leaves out the build itself (`pulumi_cli`).
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import go_text
import progress

PKG = "github.com/pulumi/pulumi/pkg/v3"
# Google's client of storage speaks gRPC to xDS only with modules of its own; states are read over HTTP.
TAGS = "osusergo,disable_grpc_modules"
_CHANGED = Path(__file__).resolve().parent / "pulumi" / "changed"
# Each pattern matches one file at least.
_REMOVED_FILES = (
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
_REMOVED_LINES: Mapping[str, tuple[str, ...]] = {
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
    "codegen/schema/bind.go": ('"io"', "var MetaSchema *jsonschema.Schema", "func init() {"),
    "secrets/cloud/manager.go": (
        '_ "gocloud.dev/secrets/awskms"',
        '_ "gocloud.dev/secrets/azurekeyvault"',
        '_ "gocloud.dev/secrets/hashivault"',
    ),
    "secrets/passphrase/manager.go": (
        '"github.com/pulumi/pulumi/sdk/v3/go/common/util/logging"',
        'cryptorand "crypto/rand"',
        '"encoding/base64"',
        "func symmetricCrypterFromPhraseAndState(",
        "func indexN(",
        "func NewPassphraseSecretsManager(",
    ),
}


@dataclass(frozen=True)
class ChangedModule:
    """A published module, what this build takes out of it, and the folder of the files that it puts in."""

    path: str
    stand_ins: Path
    removed_files: tuple[str, ...]
    removed_lines: Mapping[str, tuple[str, ...]]

    def write(self, published: Path, folder: Path) -> None:
        """Copy the module's folder to the new `folder`, without tests and with the changes.

        Raises:
            progress.StepError: The module has not all that should be taken out: another version than the table is for.
        """
        shutil.copytree(
            published, folder, ignore=shutil.ignore_patterns("testdata", "*_test.go"), copy_function=shutil.copyfile
        )
        for copied in (folder, *folder.rglob("*")):
            # Go keeps modules read-only.
            copied.chmod(copied.stat().st_mode | 0o200)
        missing = []
        for pattern in self.removed_files:
            files = list(folder.glob(pattern))
            if not files:
                missing.append(pattern)
            for file in files:
                file.unlink()
        for name, beginnings in self.removed_lines.items():
            file = folder / name
            try:
                file.write_text(go_text.remove_lines(file.read_text(), beginnings))
            except FileNotFoundError:
                missing.append(name)
            except go_text.MissingLinesError as error:
                missing += [f"{name}: {beginning}" for beginning in error.beginnings]
        if missing:
            text = (
                f"{self.path} has not what this build takes out; adapt tools/toolchain/pulumi_source.py to its version:"
            )
            raise progress.StepError("\n    ".join([text, *missing]))
        shutil.copytree(self.stand_ins, folder, dirs_exist_ok=True)


MODULES = (
    ChangedModule(PKG, _CHANGED / "pkg", _REMOVED_FILES, _REMOVED_LINES),
    ChangedModule(
        "github.com/ccojocar/zxcvbn-go",
        _CHANGED / "zxcvbn-go",
        ("frequency/frequency.go",),
        {"matching/matching.go": ("func init() {",)},
    ),
)


def build_inputs() -> bytes:
    """All that decides what the build changes, for the name of its folder in the cache."""
    stand_ins = [(str(file.relative_to(_CHANGED)), file.read_text()) for file in sorted(_CHANGED.rglob("*.*"))]
    changes = [(module.path, module.removed_files, module.removed_lines) for module in MODULES]
    return repr((TAGS, changes, stand_ins)).encode()
