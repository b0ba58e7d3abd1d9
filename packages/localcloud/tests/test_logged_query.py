"""The query of a request in the log: the same pairs, and no value of a credential."""

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.credentials.headers import is_credential_parameter
from bezel_localcloud.http.request_log import logged_query

_parts = st.sampled_from([b"a", b"name", b"=", b"&", b"%2F", b"+", b"~", b"", b"%", b"upload_id", b"n1", b"\xff", b"."])


@pytest.mark.slow
@given(st.lists(_parts, max_size=8).map(b"".join) | st.binary(max_size=20))
def test_a_logged_query_has_the_pairs_of_the_request(raw):
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    hidden = [(name, "-" if is_credential_parameter(name) else value) for name, value in pairs]
    assert logged_query(raw) == urlencode(hidden)


@pytest.mark.parametrize("name", ["access_token", "upload_id", "X-Goog-Signature", "key"])
def test_a_logged_query_has_no_credential(name):
    assert logged_query(f"a=1&{name}=secret&b=2".encode()) == f"a=1&{name}=-&b=2"


def test_a_logged_query_shows_a_plain_parameter():
    assert logged_query(b"uploadType=media&name=n1") == "uploadType=media&name=n1"
