"""Client that reads one address again and again and prints when: the other client of tools.measure.pauses.

    python -m tools.measure.requests.other_client BASE PID PATH SECONDS

The token comes on the standard input, whose end ends it. A line for each call: its begin and end in monotonic seconds,
and the CPU seconds of the main thread of the process PID between them.
"""

import http.client
import select
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    """Call until the standard input ends."""
    base, pid, path, wait = sys.argv[1:]
    token = sys.stdin.readline().strip()
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)
    while not select.select([sys.stdin], [], [], float(wait))[0]:
        used, begin = cpu_seconds(pid), time.monotonic()
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        response.read()
        end = time.monotonic()
        if response.status != http.HTTPStatus.OK:
            sys.exit(f"{path}: {response.status}")
        print(f"{begin:.6f} {end:.6f} {cpu_seconds(pid) - used:.6f}", flush=True)


def cpu_seconds(pid: str) -> float:
    """CPU seconds of a process's main thread."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


if __name__ == "__main__":
    main()
