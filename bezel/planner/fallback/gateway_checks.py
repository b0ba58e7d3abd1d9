"""Health checks of a gateway with a fallback, in seconds, and how long a dead lease still gets requests.

Read by the gateway's configuration and by the plan, so that the printed time is the configured one. Leaves out a
gateway without a fallback: its callers get an error either way.
"""

INTERVAL = 2
"""Between two checks of a node that passes them."""
FAST_INTERVAL = 1
"""After a check that failed."""
FAILURES = 3
"""Failed checks after which a node gets no more requests."""
CONNECT = 3
"""Time limit of a connection to a node."""
RESPONSE = 10
"""Time limit of the response to a check: a busy server takes some seconds."""
RETURN = 60
"""While the share of requests that a node gets rises from none to all, after it was out."""

_PAUSES = INTERVAL + (FAILURES - 1) * FAST_INTERVAL


def detection_seconds() -> dict[str, int]:
    """How a lease dies -> seconds after which the last request was sent to it.

    An instance of the gateway without requests checks nothing; its first request is then sent on to the fallback, as a
    connection that fails is.
    """
    return {
        "server ended": _PAUSES,
        "machine gone": _PAUSES + FAILURES * CONNECT,
        "server hangs": _PAUSES + FAILURES * RESPONSE,
    }
