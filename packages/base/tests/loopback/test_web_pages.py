"""Requests that count as a web page's, by the headers that browsers and programs send."""

import pytest

from bezel_base.loopback.web_pages import foreign, is_loopback

HERE = "127.0.0.1:8000"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
SAFARI = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/15.6 Safari"
IMAGE = {"accept": "image/avif,image/webp,*/*;q=0.8", "accept-language": "en-US"}
CHROMES = {"user-agent": CHROME, "accept-language": "en-US,en;q=0.9"}

# Of each kind of request, what the browser adds: destination, mode, site (Fetch, section 3.2.5; Fetch Metadata).
KINDS = """
image no-cors | image cors | script no-cors | script cors | style no-cors | font cors | audio no-cors | video no-cors
track cors | manifest cors | object navigate | embed navigate | iframe navigate | frame navigate | document navigate
empty no-cors | empty cors | report no-cors | worker same-origin | sharedworker same-origin | serviceworker same-origin
audioworklet cors | paintworklet cors | xslt same-origin | json cors | webidentity cors | websocket websocket
speculationrules cors | dictionary no-cors
""".replace("\n", " | ").split(" | ")
KINDS = [kind.strip() for kind in KINDS if kind.strip()]

# As the clients send them, without what the transport adds (Host, Content-Length, Connection).
PROGRAMS: dict[str, dict[str, str]] = {
    "curl": {"user-agent": "curl/8.14.1", "accept": "*/*"},
    "wget": {"user-agent": "Wget/1.25.0", "accept": "*/*", "accept-encoding": "identity"},
    "openai for Python": {
        "user-agent": "OpenAI/Python 2.8.0",
        "accept": "application/json",
        "x-stainless-lang": "python",
        "authorization": "Bearer unused",
    },
    "openai for Node.js": {
        "user-agent": "OpenAI/JS 6.9.0",
        "accept-language": "*",
        "sec-fetch-mode": "cors",
        "x-stainless-lang": "js",
    },
    "fetch of Node.js": {"user-agent": "node", "accept": "*/*", "accept-language": "*", "sec-fetch-mode": "cors"},
    "fetch of Deno": {"user-agent": "Deno/2.5.6", "accept": "*/*", "accept-language": "*"},
    "fetch of Bun": {"user-agent": "Bun/1.3.2", "accept": "*/*"},
    "axios": {"user-agent": "axios/1.13.2", "accept": "application/json, text/plain, */*"},
    "net/http of Go": {"user-agent": "Go-http-client/1.1", "accept-encoding": "gzip"},
    "openai for Go": {"user-agent": "OpenAI/Go 3.8.1", "accept": "application/json", "x-stainless-lang": "go"},
    "HttpClient of Java": {"user-agent": "Java-http-client/21.0.9", "http2-settings": "AAEAAEAA"},
    "OkHttp": {"user-agent": "okhttp/5.3.0", "accept-encoding": "gzip"},
    "HttpClient of .NET": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"},
    "PowerShell 5.1": {"user-agent": "Mozilla/5.0 (Windows NT; Windows NT 10.0; de-DE) WindowsPowerShell/5.1.22621"},
    "PowerShell 7": {"user-agent": "Mozilla/5.0 (Linux; Debian GNU/Linux 12) PowerShell/7.5.4"},
    "reqwest of Rust": {"accept": "*/*"},
    "requests of Python": {"user-agent": "python-requests/2.32.5", "accept": "*/*"},
    "aiohttp of Python": {"user-agent": "Python/3.11 aiohttp/3.13.2", "accept": "*/*"},
    "net/http of Ruby": {"user-agent": "Ruby", "accept": "*/*"},
    "Guzzle of PHP": {"user-agent": "GuzzleHttp/7"},
    "Postman": {"user-agent": "PostmanRuntime/7.49.1", "accept": "*/*", "postman-token": "x"},
    "a program that names its site to OpenRouter": {"user-agent": "node", "http-referer": "https://app.example"},
    "a program on Node.js under a browser's name": {
        "user-agent": CHROME,
        "accept-language": "*",
        "sec-fetch-mode": "cors",
    },
    "net of Electron": {"user-agent": CHROME, "accept-language": "en-US", "sec-fetch-site": "none"},
    "no header at all": {},
}
# What a user does in a browser, or a page that the port itself has served.
OWN_BROWSER: dict[str, dict[str, str]] = {
    "an address that the user typed": CHROMES | {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
    "a page that the port served": CHROMES | {"sec-fetch-site": "same-origin", "referer": f"http://{HERE}/docs"},
    "an older browser, on such a page": {"user-agent": SAFARI, "referer": f"http://{HERE}/docs"},
    "a page of this machine, by CORS": CHROMES | {"origin": "http://localhost:3000", "sec-fetch-site": "cross-site"},
    "a page beside it, by CORS": CHROMES | {"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"},
}


def lines(headers: dict[str, str], *hosts: str) -> list[tuple[bytes, bytes]]:
    named = [("host", host) for host in hosts or (HERE,)] + list(headers.items())
    return [(name.encode(), value.encode()) for name, value in named]


@pytest.mark.parametrize(
    "site", ["cross-site", "same-site", "Cross-Site", " cross-site", "same-origin, cross-site", "x", ""]
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_request_of_another_origin_is_refused(kind: str, site: str) -> None:
    destination, mode = kind.split()
    sent = CHROMES | {"sec-fetch-dest": destination, "sec-fetch-mode": mode, "sec-fetch-site": site}
    for more in ({}, {"sec-fetch-user": "?1"}, {"sec-purpose": "prefetch"}, {"referer": f"http://{HERE}/"}):
        assert foreign(lines(sent | more)).startswith("Sec-Fetch-Site")


@pytest.mark.parametrize("origin", ["https://page.example", "null", "", "file://", "http://127.0.0.1.example",
    "http://localhost@page.example", "http://page.example@localhost", "chrome-extension://abc", "app://obsidian.md",
    "http://[::1", "http://localhost.page.example", "http://127.0.0.1:80:90"])  # fmt: skip
@pytest.mark.parametrize("site", ["cross-site", "same-site", "same-origin", "none", None])
def test_an_origin_of_another_host_is_refused(origin: str, site: str | None) -> None:
    headers = {"origin": origin} | ({"sec-fetch-site": site} if site else {})
    assert "is not this machine's loopback" in foreign(lines(headers))
    preflight = {"access-control-request-method": "POST", "access-control-request-private-network": "true"}
    assert "is not this machine's loopback" in foreign(lines(headers | preflight))


def test_two_lines_of_one_header_are_both_read() -> None:
    for first, second in (("same-origin", "cross-site"), ("cross-site", "same-origin")):
        twice = [*lines({"sec-fetch-site": first}), *lines({"sec-fetch-site": second})[1:]]
        assert foreign(twice).startswith("Sec-Fetch-Site")
    for first, second in (("http://localhost", "https://page.example"), ("https://page.example", "http://localhost")):
        assert foreign([*lines({"origin": first}), *lines({"origin": second})[1:]]).startswith("Origin")


@pytest.mark.parametrize("hosts", [(HERE, HERE), (HERE, "page.example"), ("page.example", HERE), ("", HERE)])
def test_several_host_lines_are_refused(hosts: tuple[str, str]) -> None:
    assert foreign(lines({}, *hosts)) == "The request has 2 Host lines: send one."


def test_a_request_without_a_host_is_refused() -> None:
    assert foreign([]) == "The request has 0 Host lines: send one."


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "127.8.9.10", "localhost", "LocalHost:1", "[::1]",
    "[::1]:8000", "a.localhost", "b.a.localhost:80", "127.0.0.1:",
    "localhost.", "localhost.:8080", "LOCALHOST.:1", "a.localhost.:80", "127.0.0.1.", "[::ffff:127.0.0.1]:8080",
    "[::FFFF:127.8.9.10]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]:1"])  # fmt: skip
def test_a_name_of_the_loopback_is_accepted(host: str) -> None:
    assert is_loopback(host)
    assert foreign(lines({}, host)) == ""


@pytest.mark.parametrize("host", ["", "rebound.example:8000", "127.0.0.1.nip.io", "localhost.example", "evil-localhost",
    "user@127.0.0.1", "user:pass@localhost:1", "127.0.0.1@page.example", "127.0.0.1/x", "127.0.0.1?x", "127.0.0.1#x",
    "127.0.0.1 page.example", "page.example 127.0.0.1", "127.0.0.1,page.example", "127.0.0.1\tx", "127.0.0.1\\x",
    "0.0.0.0", "10.0.0.1", "[::]", "[::1", "::1", "[::1]x", "127.1", "2130706433", "0x7f.1", "127.0.0.1:x",
    "127.0.0.1:1:2", "127.0.0.1%00", "localhost..", ".", "..", "localhost.example.",
    "evil-localhost.", "page.example.:8080", "10.0.0.1.", "127.0.0.1..", "[::1.]", "[localhost.]", "[::ffff:10.0.0.1]",
    "[::ffff:0.0.0.0]", "[::ffff:127.0.0.1", "[::127.0.0.1]", "[::fffe:127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "local host", "localhost\n", "l\u00f6calhost"])  # fmt: skip
def test_any_other_host_is_refused(host: str) -> None:
    assert not is_loopback(host)
    assert foreign(lines({}, host)).startswith("Host ")


@pytest.mark.parametrize("referer", ["https://page.example/", "http://127.0.0.1:9999/x", "http://localhost:8000/",
    "http://127.0.0.1:8000@page.example/", "http://[::1"])  # fmt: skip
def test_an_older_browser_is_known_by_the_page_that_it_names(referer: str) -> None:
    assert foreign(lines({"user-agent": "x", "referer": referer})).startswith("Referer")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "127.0.0.1:", "LocalHost", "[::1]", "[::1]:80"])
def test_a_page_is_the_ports_own_with_and_without_port_80(host: str) -> None:
    name = host.removesuffix("80").removesuffix(":")
    for page in (name, f"{name}:80", name.lower()):
        assert foreign(lines({"user-agent": SAFARI, "referer": f"http://{page}/x"}, host)) == ""
    for page in (
        f"{name}:8080",
        f"{name}:8",
        f"{name}:180",
        f"{name}:443",
        f"{name}.example",
        "page.example:80",
        "[::2]",
    ):
        assert foreign(lines({"user-agent": SAFARI, "referer": f"http://{page}/x"}, host)).startswith("Referer")
    for port in ("8080", "180", "0"):
        sent = lines({"user-agent": SAFARI, "referer": f"http://{name}/x"}, f"{name}:{port}")
        assert foreign(sent).startswith("Referer")


def test_an_older_browser_whose_page_hides_its_name_is_refused() -> None:
    assert "use a newer one" in foreign(lines(IMAGE | {"user-agent": SAFARI}))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_served(program: str) -> None:
    assert foreign(lines(PROGRAMS[program])) == ""


@pytest.mark.parametrize("way", OWN_BROWSER)
def test_a_users_own_browser_is_served(way: str) -> None:
    assert foreign(lines(OWN_BROWSER[way])) == ""
