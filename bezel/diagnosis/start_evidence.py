"""Evidence in a log that a server started well, or that it ended: lines that server, platform and requests give. Pure.

A server says it itself (uvicorn, in which vLLM runs), Cloud Run says it of its probe, and a request that was served
shows it. Any of the three is enough: a log is cut, and a level may hide the server's own lines.
"""

import re

_SAID = re.compile(r"\bApplication startup complete\b|\bSTARTUP (?:HTTP|TCP|GRPC) probe succeeded\b")
_SERVED = re.compile(
    r'^(?:\(\w+ pid=\d+\) )?INFO: +\S+ - "(?:GET|POST) /(?:health|v1/)[^\s"]* HTTP/[\d.]+" 200\b|'
    r"^(?:GET|POST) https?://[^\s/]+/(?:health|v1/)\S* 200\b"
)
_REQUEST = re.compile(
    r'"(?:[A-Z]+) \S.* HTTP/[\d.]+" \d{3}|\b(?:Received|Added) request\b|^[A-Z]+ https?://\S+ \d{3}\b|'
    r"\[serving\.py:\d+\] Error with model "
)
_END = re.compile(
    r"Container called exit\(\d+\)|Container terminated on signal \d+|Memory limit of [\d.]+ ?\w+ exceeded|"
    r"LIVENESS \w+ probe failed .*instance has been shut down"
)
ASKED_TO_END = "[shutdown] API server: shutdown triggered"
"""vLLM's line of a signal to end, without which its own end looks like a death of its engine."""
# The platform's stop of a container that has no handler of its own; a shell adds 128 to the signal.
_STOPPED = re.compile(r"Container terminated on signal 15\b|Container called exit\(143\)")


def is_request(text: str) -> bool:
    """Whether a line of a log repeats what a caller sent: its words are no evidence."""
    return _REQUEST.search(text) is not None


def shows_good_start(text: str) -> bool:
    """Whether a line shows that the server which it is of has started well."""
    return _SERVED.search(text) is not None if is_request(text) else _SAID.search(text) is not None


def shows_end(text: str) -> bool:
    """Whether a line of the platform says that a container ended by itself, or was ended for what it did."""
    return not is_request(text) and _END.search(text) is not None


def shows_asked_end(text: str) -> bool:
    """Whether a line says that a container was asked to end (SIGTERM), as where the platform scales down."""
    return not is_request(text) and (ASKED_TO_END in text or _STOPPED.search(text) is not None)
