"""A program that stands for a container engine: it builds nothing, and pushes a small image whose entrypoint is bezel.

Its pushes go over the registry protocol to the address in the image's name, with the token that it was made with.
"""

import json
import shlex
import sys
import urllib.request
from pathlib import Path

from bezel_localcloud.core.files.blobs import digest_of

OCI = "application/vnd.oci.image"


def install(folder, token, *, name="docker", fails=""):
    """Write the program into a folder of its own and return the folder, to be put on PATH.

    Args:
        folder: The folder; `calls` in it gets one line a call.
        token: Access token of its login.
        name: Name of the engine.
        fails: The command that fails, "" for none.
    """
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {__file__} {shlex.quote(token)} '{fails}' {folder} \"$@\"\n")
    program.chmod(0o700)
    return folder


def calls(folder):
    """The commands that were run, without their arguments."""
    log = folder / "calls"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def _push(image, token):
    host, _, name = image.rpartition(":")[0].partition("/")
    tag = image.rpartition(":")[2]

    def send(verb, path, content, kind):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        request = urllib.request.Request(f"http://{host}/v2/{name}/{path}", content, headers, method=verb)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30).close()

    parts = []
    for kind, content in (("config.v1+json", b'{"config": {"Entrypoint": ["bezel"]}}'), ("layer.v1.tar", b"layer")):
        digest = digest_of(content)
        send("POST", f"blobs/uploads/?digest={digest}", content, "application/octet-stream")
        parts.append({"mediaType": f"{OCI}.{kind}", "digest": digest, "size": len(content)})
    kind = f"{OCI}.manifest.v1+json"
    body = {"schemaVersion": 2, "mediaType": kind, "config": parts[0], "layers": parts[1:]}
    send("PUT", f"manifests/{tag}", json.dumps(body).encode(), kind)


def main():
    token, fails, folder, *arguments = sys.argv[1:]
    with (Path(folder) / "calls").open("a") as log:
        log.write(shlex.join(arguments) + "\n")
    if arguments[0] == fails:
        sys.stderr.write(f"line one\nERROR: {fails} is broken\n")
        return 1
    if arguments[0] == "push":
        _push(arguments[1], token)
    return 0


if __name__ == "__main__":
    sys.exit(main())
