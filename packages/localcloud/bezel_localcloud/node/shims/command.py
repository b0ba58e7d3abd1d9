"""Stand-in for `docker`, `apt-get` and others on a machine: the machine's daemon executes the command line.

A boot calls it a dozen times, so it speaks HTTP itself: loading `urllib.request` takes most of a call.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_SECONDS = 60


def main() -> int:
    """Send the command line and return the exit status."""
    program, *argv = sys.argv[1:]
    command = {
        "program": program,
        "argv": argv,
        "stdin": sys.stdin.read() if "--password-stdin" in argv else "",
        "config": os.environ.get("DOCKER_CONFIG", f"{os.environ.get('HOME', '')}/.docker"),
    }
    answer = json.loads(_post(os.environ["LOCALCLOUD_MACHINE"], json.dumps(command).encode()))
    for stream, text in ((sys.stdout, answer["out"]), (sys.stderr, answer["err"])):
        if text:
            stream.write(f"{text}\n")
    return int(answer["code"])


def _post(url: str, body: bytes) -> bytes:
    """Return the response's body; without status 200 the process ends with the status line."""
    authority, _, path = url.removeprefix("http://").partition("/")
    host, _, port = authority.rpartition(":")
    key = os.environ["LOCALCLOUD_MACHINE_KEY"]
    # In HTTP/1.0 the body ends with the connection.
    lines = (f"POST /{path} HTTP/1.0", f"Host: {authority}", f"Authorization: Bearer {key}")
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    with socket.create_connection((host, int(port)), _SECONDS) as connection:
        connection.sendall(head.encode() + body)
        response = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head_of_response, _, content = response.partition(b"\r\n\r\n")
    status_line = head_of_response.partition(b"\r\n")[0].decode()
    if status_line.split(" ")[1:2] != ["200"]:
        sys.exit(f"{url}: {status_line or 'no response'}")
    return content


if __name__ == "__main__":
    sys.exit(main())
