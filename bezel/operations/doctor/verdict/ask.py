"""Sends a question and returns what the server answers, a refusal as well as an acceptance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel.operations.doctor.verdict.questions import Question
from bezel.rest import ApiError, GoogleClient, RestError, endpoint

_NO_ANSWER = 0


@dataclass(frozen=True)
class Judgement:
    """One answer.

    Attributes:
        status: The HTTP status; 0 where there was no answer.
        content: Its JSON; of a refusal the whole error.
        message: Text of a refusal, or why there was no answer.
        fields: Names of the fields that a refusal names.
    """

    status: int
    content: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    fields: tuple[str, ...] = ()

    @property
    def accepts(self) -> bool:
        """Whether the server accepts the request."""
        return 200 <= self.status < 300


def ask(client: GoogleClient, environ: Mapping[str, str], question: Question) -> Judgement:
    """Send a question.

    Args:
        client: The client, with the identity that asks.
        environ: The environment that names the addresses of the APIs.
        question: The question; it changes nothing, so it may be repeated.
    """
    url = f"{endpoint(question.api, environ)}{question.path}"
    try:
        content = client.request(question.method, url, params=question.params, json=question.body, idempotent=True)
    except ApiError as error:
        details = [dict(each) for each in error.details]
        body = {"code": error.status, "status": error.reason, "message": error.message, "details": details}
        return Judgement(error.status, {"error": body}, error.message, _fields(details))
    except RestError as error:
        return Judgement(_NO_ANSWER, message=str(error))
    return Judgement(200, content)


def _fields(details: list[dict[str, Any]]) -> tuple[str, ...]:
    """The fields of `google.rpc.BadRequest`, each once."""
    violations = [each for detail in details for each in detail.get("fieldViolations") or ()]
    return tuple(dict.fromkeys(str(each.get("field") or "") for each in violations if isinstance(each, dict)))
