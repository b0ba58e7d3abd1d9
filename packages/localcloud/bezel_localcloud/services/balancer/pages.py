"""Responses that a balancer gives by itself, in Google's words.

Sources: Google's page on Cloud Run service health ("no healthy upstream"); pages of Google Frontend as its users
published them (404 and 502).
"""

from starlette.responses import Response

_FRONTEND = {"content-type": "text/html; charset=UTF-8", "referrer-policy": "no-referrer"}
VIA = (b"via", b"1.1 google")


def no_healthy_upstream() -> Response:
    """503: no region is in use."""
    return Response("no healthy upstream", 503, {"content-type": "text/plain", "via": "1.1 google"})


def bad_gateway() -> Response:
    """502: the region gave no answer."""
    return _page(
        502,
        "Server Error",
        "The server encountered a temporary error and could not complete your request.<p>Please try again in 30 "
        "seconds.",
    )


def not_found() -> Response:
    """404: no rule of the URL map, or no service, is for the URL."""
    return _page(404, "Not Found", "The requested URL was not found on this server.")


def redirect(location: str, status: int) -> Response:
    """A redirect of the URL map."""
    return Response(b"", status, {"location": location})


def _page(status: int, title: str, text: str) -> Response:
    page = (
        '\n<html><head>\n<meta http-equiv="content-type" content="text/html;charset=utf-8">\n'
        f"<title>{status} {title}</title>\n</head>\n<body text=#000000 bgcolor=#ffffff>\n"
        f"<h1>Error: {title}</h1>\n<h2>{text}</h2>\n<h2></h2>\n</body></html>\n"
    )
    return Response(page, status, _FRONTEND)
