"""Headers of a request in a table are the headers that Starlette finds by going through all of them."""

import pytest
from starlette.datastructures import Headers

from bezel_localcloud.http.api_request import ApiRequest

RAW = [(b"host", b"localhost"), (b"x-goog-hash", b"md5=a"), (b"x-goog-hash", b"crc32c=b"), (b"x-name", b"\xe9")]


async def receive():
    return {"type": "http.disconnect"}


@pytest.fixture
def headers():
    return ApiRequest({"type": "http", "headers": RAW}, receive).headers


@pytest.mark.parametrize("name", ["host", "Host", "x-goog-hash", "X-NAME", "absent", ""])
def test_a_header_is_found_as_in_starlettes_headers(headers, name):
    plain = Headers(raw=RAW)
    assert (headers.get(name), headers.get(name, "none")) == (plain.get(name), plain.get(name, "none"))
    assert (name in headers) == (name in plain)
    assert headers.getlist(name) == plain.getlist(name)
    assert headers == plain


def test_an_absent_header_is_a_key_error(headers):
    assert headers["x-goog-hash"] == "md5=a"
    with pytest.raises(KeyError):
        headers["absent"]
