"""Query parameters that localcloud does not support: refused by name, unless their value is as good as none."""

import pytest

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.http.methods import Method, check_query

METHOD = Method("m.list", "GET", "/m", "v1", {"flag": "bool", "text": "string", "delimiter": "string"})
SERVED = frozenset({"delimiter"})


@pytest.mark.parametrize(("name", "value"), [("flag", "False"), ("flag", "false"), ("flag", ""), ("text", "")])
def test_an_unserved_parameter_without_a_value_is_left_out(name, value):
    assert check_query(METHOD, [(name, value), ("delimiter", "/")], SERVED) == {"delimiter": "/"}


@pytest.mark.parametrize(("name", "value"), [("flag", "True"), ("flag", "0"), ("text", "false"), ("text", "x")])
def test_an_unserved_parameter_with_one_is_refused_by_name(name, value):
    with pytest.raises(ApiError, match=f"does not serve the query parameter '{name}' of m.list"):
        check_query(METHOD, [(name, value)], SERVED)


@pytest.mark.parametrize(("value", "normal"), [("True", "true"), ("false", "false"), ("", "")])
def test_a_bool_may_be_capitalized_as_gcloud_writes_it(value, normal):
    assert check_query(METHOD, [("flag", value)], frozenset({"flag"})) == {"flag": normal}


@pytest.mark.parametrize("value", ["yes", "1", "Truee"])
def test_what_is_no_bool_is_refused(value):
    with pytest.raises(ApiError, match="TYPE_BOOL"):
        check_query(METHOD, [("flag", value)], frozenset({"flag"}))
