"""Errors of the forge's API, each with its cause and its repair; no text holds the token."""

from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.text.redaction import redact

_LONGEST = 300
_SETTINGS = {
    "pull-requests: write": (
        " For a new pull request on GitHub, also allow it in the repository's settings: Actions, General, "
        "`Allow GitHub Actions to create and approve pull requests`."
    ),
}


class ForgeError(UserError):
    """The forge refused a request or did not answer.

    Attributes:
        status: HTTP status; 0 without a response.
    """

    def __init__(self, *problems: Problem | str, status: int = 0) -> None:
        super().__init__(*problems)
        self.status = status


def no_token(doing: str) -> ForgeError:
    """The error of a request that needs a token, where there is none."""
    return ForgeError(
        Problem(
            "GITHUB_TOKEN",
            NOT_SET,
            f"without a token the forge does not let this run {doing}.",
            "set `GITHUB_TOKEN: ${{ github.token }}` in the step's `env`, or a token of your own by hand.",
        )
    )


def unreachable(method: str, url: str, why: str) -> ForgeError:
    """The error of a request without a response."""
    return ForgeError(
        Problem(
            f"{method} {url}",
            None,
            f"the forge did not answer: {why}.",
            "run the command again; if it fails again, check GITHUB_API_URL and the runner's network.",
        )
    )


def response_error(status: int, body: bytes, *, method: str, url: str, needs: str, token: str) -> ForgeError:
    """The error of a response.

    Args:
        status: of the response.
        body: of the response.
        method: of the request.
        url: of the request, without its query.
        needs: permission of a workflow that the request needs, e.g. `issues: write`.
        token: that was sent; hidden in the forge's text.
    """
    message = _message(body, token)
    permission = f"add `permissions: {{ {needs} }}` to the workflow's job."
    consequence, repair = {
        401: (
            "the forge does not accept the token: it is wrong, or the run that it belonged to has ended",
            f"set `GITHUB_TOKEN: ${{{{ github.token }}}}` in the step's `env`, and {permission}",
        ),
        403: (
            "the token may not do this",
            f"{permission} The run of a fork's pull request never gets it.{_SETTINGS.get(needs, '')}",
        ),
        404: (
            "there is no such object, or the token may not see it, as the token of a fork's run",
            f"check GITHUB_REPOSITORY and the number; {permission}",
        ),
        410: ("the object was deleted, or issues are switched off", "switch issues on in the repository's settings."),
        413: ("the text is too long", "shorten it."),
        422: ("the forge refuses the values", "correct them."),
    }.get(
        status,
        ("the repository moved", "set GITHUB_REPOSITORY to its new name.")
        if 300 <= status < 400
        else ("the forge failed", "run the command again later."),
    )
    answer = f"{status}: {message}" if message else str(status)
    return ForgeError(Problem(f"{method} {url}", None, f"{consequence} ({answer}).", repair), status=status)


def _message(body: bytes, token: str) -> str:
    """The forge's own text, as one line of bounded length."""
    try:
        content = read_json(body)
    except ValueError:
        content = body.decode("utf-8", "replace")
    if isinstance(content, dict):
        details = content.get("errors")
        parts = [content.get("message"), *(details if isinstance(details, list) else [])]
        content = "; ".join(
            str(part.get("message") or part) if isinstance(part, dict) else str(part) for part in parts if part
        )
    text = " ".join(redact(str(content), token).split())
    text = "".join(character for character in text if character.isprintable()).rstrip(".")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
