"""Place of an engine on localcloud: its variables, and the files that it needs before any stack exists.

Owns state folder, passphrase, Pulumi's home and the stand-ins in it, all below localcloud's folder. They are no
project's: after `bezel local env` a program of any folder is deployed there. Leaves out stacks (`engine`).
"""

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import bezel_pulumi_offline
from bezel.engine import LOCAL_PULUMI
from bezel_base.atomic_write import write_whole
from bezel_localcloud import clients

Provider = Literal["stand-in", "real"]
PLUGINS = Path(bezel_pulumi_offline.__file__).parent / "plugins"
STAND_INS = {"gcp": "pulumi-gcp", "docker": "pulumi-docker"}
# The user's own variables that are taken away: another passphrase would not open the state, and a plain `pulumi` is not
# the engine's.
FOREIGN = (*clients.FOREIGN, "PULUMI_CONFIG_PASSPHRASE", LOCAL_PULUMI)


@dataclass(frozen=True)
class EnginePlace:
    """Where an engine works on localcloud.

    Attributes:
        folder: localcloud's folder.
        cloud: The variables that lead programs and providers to localcloud.
        provider: Whose providers the engine starts.
    """

    folder: Path
    cloud: Mapping[str, str]
    provider: Provider = "stand-in"

    def environment(self) -> dict[str, str]:
        """The variables that make an engine run against localcloud, to be added to the present ones."""
        folder = self.folder.absolute()
        added = {
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_HOME": str(self.home),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            # The state's file is read and repaired here, in the form that it has by default.
            "PULUMI_DIY_BACKEND_GZIP": "false",
            "PULUMI_DIY_BACKEND_ZSTD": "false",
            "BEZEL_PYTHON": sys.executable,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
            **self.cloud,
        }
        if self.provider == "stand-in":
            # With this a missing plugin is an error at once instead of a download from the internet.
            added["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "1"
        return added

    @property
    def keys(self) -> Path:
        """Where a CLI that `tools/toolchain` built keeps the keys that it derives from the passphrase."""
        return self.folder.absolute() / "keys"

    @property
    def home(self) -> Path:
        """Pulumi's home; one for each kind of plugins, so that neither finds the other's."""
        return self.folder.absolute() / f"pulumi-home-{self.provider}"

    def prepare(self) -> None:
        """Make state folder and passphrase, and link the stand-ins, where they are missing."""
        if self.provider == "stand-in":
            self._install_plugins()
        for folder in (self.folder, self.folder / "state", self.keys):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        passphrase = self.folder / "passphrase"
        if passphrase.exists():
            return
        part = passphrase.with_name(f".passphrase.{os.getpid()}")
        write_whole(part, secrets.token_urlsafe(24), mode=0o600)
        with suppress(FileExistsError):  # the first of several commands decides, as its engine may be using it
            passphrase.hardlink_to(part)
        part.unlink()

    def _install_plugins(self) -> None:
        """Link the stand-ins into the engine's plugin folder, under the versions that the SDKs request."""
        import importlib.metadata  # late: slow, and needed only to run a program

        for name, package in STAND_INS.items():
            plugin = self.home / "plugins" / f"resource-{name}-v{importlib.metadata.version(package)}"
            for folder in (plugin.parents[1], plugin.parent, plugin):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            link = plugin / f"pulumi-resource-{name}"
            target = PLUGINS / link.name
            if not link.is_symlink() or link.readlink() != target:
                part = link.with_name(f".{link.name}.{os.getpid()}")
                part.symlink_to(target)
                part.replace(link)
