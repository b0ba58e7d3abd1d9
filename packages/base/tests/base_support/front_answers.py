"""Answers of Cloud Run's front end, by status and text, each with the kind of the refusal."""


def page(status: int, title: str, text: str) -> str:
    """A page as Cloud Run's front end writes it."""
    return (
        '<html><head>\n<meta http-equiv="content-type" content="text/html;charset=utf-8">\n'
        f"<title>{status} {title}</title>\n</head>\n<body text=#000000 bgcolor=#ffffff>\n"
        f"<h1>Error: {title}</h1>\n<h2>{text}</h2>\n<h2></h2>\n</body></html>\n"
    )


ROBOT = (
    "<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 404 (Not Found)!!1</title>\n"
    "  <style>*{margin:0;padding:0}html,code{font:15px/22px arial,sans-serif}</style>\n"
    "  <p><b>404.</b> <ins>That\u2019s an error.</ins>\n  <p>The requested URL <code>/v1/models</code> was not found."
)

ANSWERS = [
    (302, "", "redirected"),
    (200, page(200, "Sign in", "Sign in with Google"), "page"),
    (400, page(400, "Bad Request", "Your client has issued a malformed or illegal request."), "malformed"),
    (401, page(401, "Unauthorized", "Your client does not have permission to the requested URL."), "identity"),
    (403, page(403, "Forbidden", "Your client does not have permission to get URL <code>/</code>."), "rights"),
    (403, "RBAC: access denied", "rights"),
    (404, page(404, "Page not found", "The requested URL was not found on this server."), "no_service"),
    (404, ROBOT, "no_service"),
    (405, page(405, "Not allowed", "The request method is inappropriate for the URL."), "method"),
    (408, page(408, "Timeout", "Your client took too long to issue its request."), "client_slow"),
    (411, page(411, "Length Required", "POST requests require a Content-length header."), "method"),
    (413, page(413, "Request Entity Too Large", "The request was larger than 32 MiB."), "too_large"),
    (414, page(414, "URI too long", "The requested URL is too large to process."), "too_large"),
    (429, "Rate exceeded.", "no_instance"),
    (429, page(429, "Rate exceeded.", "The request was aborted as there was no available instance."), "no_instance"),
    (429, page(429, "Too many requests", "Too many requests."), "rate_limit"),
    (429, "", "rate_limit"),
    (500, page(500, "Server Error", "The request was aborted as there was no available instance."), "no_instance"),
    (500, "Response size was too large. Please consider reducing response size.", "response_too_large"),
    (431, page(431, "Headers too large", "Request header fields too large."), "too_large"),
    (500, page(500, "Server Error", "The server encountered an error."), "internal"),
    (
        502,
        page(502, "Server Error", "The server encountered a temporary error."),
        "bad_gateway",
    ),
    (503, page(503, "Service Unavailable", "The service you requested is not available yet."), "not_started"),
    (503, page(503, "x", "The request failed because the instance failed the readiness check."), "not_started"),
    (
        503,
        page(503, "Service Unavailable", "The service is disabled: manual scaling."),
        "switched_off",
    ),
    (503, page(503, "Service Unavailable", "The revision takes no more requests."), "replaced"),
    (503, "upstream connect error or disconnect/reset before headers. reset reason: connection failure", "lost"),
    (503, page(503, "Service Unavailable", "the HTTP response was malformed or connection had an error."), "lost"),
    (503, "no healthy upstream", "no_backend"),
    (503, page(503, "Service Unavailable", "Service Unavailable"), "unavailable"),
    (504, "upstream request timeout", "timeout"),
    (504, page(504, "Gateway Timeout", "upstream request timeout"), "timeout"),
    (418, page(418, "Odd", "Odd"), "front_end"),
]
