"""Errors that a gateway itself returns, in the format of vLLM's, as HAProxy's configuration."""

import json


def return_error(code: int, text: str, rules: str = "http-request", kind: str = "string") -> str:
    """A rule that returns an error, without its condition."""
    return f"{rules} return status {code} {error_body(code, text, kind)}"


def error_body(code: int, text: str, kind: str = "string") -> str:
    """The body of an error; of kind `lf-string` it may hold samples, `%[…]`."""
    error = {"message": text, "type": "gateway_error", "param": None, "code": code}
    return f"content-type application/json {kind} '{json.dumps({'error': error})}'"
