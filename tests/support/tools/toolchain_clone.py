"""A clone with the set-up scripts only, a cache of its own, and a PATH on which every tool is a small script."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 60

FAKE_UV = """#!/bin/sh
if [ -p "$FAKE_UV_GATE" ]; then read -r line < "$FAKE_UV_GATE"; fi
case "$*" in *imports*) made=lint-imports ;; *"only-group site"*) made=zensical ;; *) made=bezel ;; esac
mkdir -p "$UV_PROJECT_ENVIRONMENT/bin" && : > "$UV_PROJECT_ENVIRONMENT/bin/$made"
case "$*" in
  *imports*|*"only-group site"*) ;;
  *--no-default-groups*) rm -f "$UV_PROJECT_ENVIRONMENT/bin/mypy" ;;
  *) : > "$UV_PROJECT_ENVIRONMENT/bin/mypy" ;;
esac
"""
FAKE_GO = """#!/bin/sh
case "$1" in
  env) echo "{version}" ;;
  list) case "$*" in
    *pkg/v3*) echo "$FAKE_PUBLISHED/pkg" ;;
    *zxcvbn-go*) echo "$FAKE_PUBLISHED/zxcvbn-go" ;;
    *) echo "$FAKE_SDK" ;;
  esac ;;
  mod) ;;
  build)
    echo build >> "$FAKE_COUNT"
    if [ -p "$FAKE_GATE" ]; then read -r line < "$FAKE_GATE"; fi
    if [ -n "$FAKE_BUILD_FAILS" ]; then echo "no space left on device"; exit 1; fi
    if [ -p "$FAKE_UV_GATE" ]; then echo "go on" > "$FAKE_UV_GATE"; fi
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho v3.274.1\\n' > "$2"; chmod +x "$2" ;;
  *) echo "go $1 is not what a build needs"; exit 1 ;;
esac
"""
FAKE_APT = """#!/bin/sh
if [ -e "$FAKE_OFFLINE" ]; then echo "E: Unable to locate package haproxy" >&2; exit 100; fi
if [ -e "$FAKE_OLD_LISTS" ]; then
  case "$*" in *Dir::State::Lists=*) ;; *) echo "E: 404 Not Found" >&2; exit 100 ;; esac
fi
case "$1" in
  update) ;;
  install)
    printf 'NOTE: ...\\nInst liblua:amd64 (5 Debian)\\nInst lsb-base (1 Debian)\\n'
    printf 'Inst chromium-common (1 Debian)\\nConf liblua\\n' ;;
  download)
    echo "$*" >> "$FAKE_FETCHED"
    for name in "$@"; do case "$name" in haproxy|lib*|lsb*|chromium*) : > "${name}_1.deb" ;; esac; done ;;
esac
"""
FAKE_DPKG = """#!/bin/sh
case "$2" in
  */haproxy_1.deb)
    mkdir -p "$3/usr/sbin"
    printf '#!/bin/sh\\necho "haproxy $* with $LD_LIBRARY_PATH"\\n' > "$3/usr/sbin/haproxy"
    chmod +x "$3/usr/sbin/haproxy" ;;
  */chromium-headless-shell_1.deb)
    mkdir -p "$3/usr/lib/chromium"
    printf '#!/bin/sh\\necho "chromium $* with $LD_LIBRARY_PATH"\\n' > "$3/usr/lib/chromium/chromium-headless-shell"
    chmod +x "$3/usr/lib/chromium/chromium-headless-shell" ;;
  *) mkdir -p "$3/usr/lib/x" && : > "$3/usr/lib/x/liblua.so.5" ;;
esac
"""


@dataclass
class Clone:
    """The small clone; `run()` runs its set-up."""

    folder: Path
    cache: Path
    bin: Path
    variables: dict[str, str] = field(default_factory=dict)

    def tool(self, name: str, text: str) -> None:
        """Put a script on the clone's PATH."""
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start the set-up; `dev` for that of a developer."""
        env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.cache.parent)}
        return subprocess.Popen(
            [sys.executable, "tools/toolchain", *arguments],
            cwd=self.folder,
            env=env | self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run the set-up: exit code and what it printed."""
        process = self.start(*arguments)
        text, _ = process.communicate(timeout=SECONDS)
        return process.returncode, text

    def made_programs(self) -> list[str]:
        """The cache's folders, half-made ones included."""
        return sorted(entry.name for entry in self.cache.iterdir() if entry.is_dir()) if self.cache.is_dir() else []
