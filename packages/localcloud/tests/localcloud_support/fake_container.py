"""A tiny container for localcloud's launcher: what it does is said by its arguments and by the paths asked of it.

--exit=N ends at once with a status; --tell=NAME,NAME prints variables first; --fails-until=N, of a job's task, ends at
once, and well from attempt N on; --killed=FILE is killed as often as the file has bytes; --silent never listens;
--last-words=TEXT is printed at SIGTERM; --boot=S waits S seconds before it listens, --reads=PIPE until a writer has
opened the named pipe and closed it; --starts-in=S tells that its start took S seconds of the platform, as a simulated
server does. A request for /read=PIPE is answered once a writer has opened the pipe and closed it (`held_requests`). It
speaks HTTP by hand, one exchange a connection: importing a server would take longer than most tests.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

OPTIONS = dict(argument.lstrip("-").partition("=")[::2] for argument in sys.argv[1:])
GO = threading.Event()
NEXT = threading.Condition()
SERVED = []  # one for each request but those for /metrics and /health
METRICS = """# TYPE fake_requests_total counter
fake_requests_total{{kind="any"}} {count}
# TYPE fake_seconds histogram
fake_seconds_bucket{{le="1.0"}} {count}
fake_seconds_bucket{{le="+Inf"}} {count}
fake_seconds_sum {count}
fake_seconds_count {count}
# TYPE other gauge
other 1
"""
EVENTS = ("first", "second", "third")
STEPS = []  # one for each request for /next
UNHEALTHY = threading.Event()
CHILDREN = []


def allow_next_event():
    with NEXT:
        STEPS.append(time.monotonic())
        NEXT.notify_all()


def read_pipe(path):
    with open(path) as pipe:  # noqa: PTH123 - pathlib is slow to import
        pipe.read()


# By what a path has before "=", of what it has after it.
BEFORE = {
    "/wait?s": lambda seconds: time.sleep(float(seconds)),
    "/say?line": lambda line: print(line, flush=True),
    "/read": read_pipe,
}
ACTIONS = {"/go": GO.set, "/next": allow_next_event}


def serve(connection):
    with connection, connection.makefile("rb") as request:
        method, path, _ = request.readline().decode().split()
        headers = {}
        while line := request.readline().decode("latin-1").strip():
            key, _, value = line.partition(":")
            headers[key.lower()] = value.strip()
        answer(connection, method, path, headers, request.read(int(headers.get("content-length", 0))))


def answer(connection, method, path, headers, body):
    if path.startswith("/die"):
        os._exit(7)
    if path == "/health" and UNHEALTHY.is_set():
        connection.sendall(b"HTTP/1.1 500 Unhealthy\r\nContent-Length: 0\r\n\r\n")
        return
    if path == "/metrics":
        text = METRICS.format(count=len(SERVED)).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        return
    if path != "/health":
        SERVED.append(path)
    kind, _, value = path.partition("=")
    BEFORE.get(kind, bool)(value)
    ACTIONS.get(path, bool)()
    if path == "/child":
        CHILDREN.append(subprocess.Popen(["sleep", "60"]).pid)
    if path.startswith("/stream"):
        stream(connection, breaks=path.endswith("broken"))
        return
    if path == "/events":
        stream_events(connection)
        return
    seen = {
        "method": method,
        "path": path,
        "headers": headers,
        "body": body.decode(),
        "pid": os.getpid(),
        "children": CHILDREN,
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
    }
    content = json.dumps(seen).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    if path == "/hang-up":  # not before it is answered: a probe would end the container meanwhile
        UNHEALTHY.set()


def stream(connection, *, breaks):
    """One chunk, then the rest only after a request for /go: buffering would never see the first."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for text in ("data: first\n\n", "data: second\n\n"):
        connection.sendall(f"{len(text):x}\r\n{text}\r\n".encode())
        if breaks:
            return
        GO.wait(60)
    connection.sendall(b"0\r\n\r\n")


def stream_events(connection):
    """Three chunks, the second and the third each after a request for /next."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for index, name in enumerate(EVENTS):
        with NEXT:
            NEXT.wait_for(lambda index=index: len(STEPS) >= index, 60)
        text = f"data: {name}\n\n"
        connection.sendall(f"{len(text):x}\r\n{text}\r\n".encode())
    connection.sendall(b"0\r\n\r\n")


if __name__ == "__main__":
    print("container begins", flush=True)
    print("a line on stderr", file=sys.stderr, flush=True)
    for name in filter(None, OPTIONS.get("tell", "").split(",")):
        print(f"{name}={os.environ.get(name)}", flush=True)
    if "fails-until" in OPTIONS:
        sys.exit(int(os.environ["CLOUD_RUN_TASK_ATTEMPT"] < OPTIONS["fails-until"]))
    if "killed" in OPTIONS and (left := os.path.getsize(OPTIONS["killed"])):  # noqa: PTH202 - pathlib is slow to import
        os.truncate(OPTIONS["killed"], left - 1)
        os.kill(os.getpid(), signal.SIGKILL)
    if "exit" in OPTIONS:
        sys.exit(int(OPTIONS["exit"]))
    if "last-words" in OPTIONS:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(OPTIONS["last-words"], flush=True)))
    time.sleep(float(OPTIONS.get("boot", 0)))
    if "reads" in OPTIONS:
        read_pipe(OPTIONS["reads"])
    if "silent" in OPTIONS:
        time.sleep(3600)
    if "starts-in" in OPTIONS:
        os.write(int(os.environ["LOCALCLOUD_START_REPORT"]), OPTIONS["starts-in"].encode())
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ["LOCALCLOUD_LISTEN"].removeprefix("unix:"))
    listener.listen(1024)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
