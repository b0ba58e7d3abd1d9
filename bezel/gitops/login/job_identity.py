"""Identity of a forge's job: its token, exchanged at Google for one of a service account.

Owns the three requests of `bezel ci login`, and what each refusal means. Leaves out what is done with the credentials
(`report`, `credential_file`). Tokens are held in variables only, and every one is masked in the forge's log
before it is used.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from bezel.gitops.login import causes
from bezel.gitops.login.settings import LoginSettings
from bezel.rest import Backoff, CredentialsError, endpoint, url_for_token
from bezel.rest.transport import new_client, reason_of
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.text.redaction import redact

if TYPE_CHECKING:
    import httpx

URL, TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
JWT = "urn:ietf:params:oauth:token-type:jwt"
DEADLINE_SECONDS = 60.0
_REPEATED = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True)
class JobTokens:
    """Where a job gets its identity tokens.

    Attributes:
        url: Address for the audience of the settings.
        bearer: The job's own token for that address.
    """

    url: str
    bearer: str = field(repr=False)

    @classmethod
    def of(cls, environ: Mapping[str, str], audience: str) -> "JobTokens":
        """Read them.

        Raises:
            UserError: The environment names none, or an address that no token may be sent to.
        """
        check_job(environ)
        url, bearer = environ[URL].strip(), environ[TOKEN].strip()
        joint = "&" if urlsplit(url).query else "?"
        return cls(f"{url_for_token(url, URL)}{joint}audience={quote(audience, safe='')}", bearer)


def check_job(environ: Mapping[str, str]) -> None:
    """Check that this is a job that may ask its forge for identity tokens.

    Raises:
        UserError: It is not; the text says why, and what to do instead.
    """
    if not environ.get(URL, "").strip() or not environ.get(TOKEN, "").strip():
        raise UserError(causes.no_job_token(environ))


class Session(NamedTuple):
    """What a login found out: who the job is, and until when the account's token holds."""

    subject: str
    expires: str


class Login:
    """One login: `run` sends the requests.

    Args:
        settings: Provider and account.
        environ: The job's environment.
        mask: Hides a text in the forge's log from now on.
        clock: A monotonic clock, in seconds.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        settings: LoginSettings,
        environ: Mapping[str, str],
        mask: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._environ, self._mask = settings, environ, mask
        self._clock, self._sleep = clock, sleep
        self._end = clock() + DEADLINE_SECONDS

    def run(self, tokens: JobTokens) -> Session:
        """Get the job's token, exchange it, and act as the account once.

        Raises:
            UserError: One of them was refused, or did not answer; the text names cause and repair.
        """
        self._mask(tokens.bearer)
        with new_client(15.0) as client:
            subject = self._subject_token(client, tokens)
            federated = self._exchange(client, subject)
            expires = self._impersonate(client, federated, subject)
        return Session(str(causes.claims_of(subject).get("sub", "")), expires)

    def _subject_token(self, client: "httpx.Client", tokens: JobTokens) -> str:
        what = "the forge's token for this job"
        headers = {"Authorization": f"Bearer {tokens.bearer}", "Accept": "application/json"}
        answer = self._send(what, lambda: client.get(tokens.url, headers=headers))
        token = _json(answer).get("value")
        if not answer.is_success or not isinstance(token, str) or not token:
            raise UserError(causes.job_token_refused(answer.status_code))
        self._mask(token)
        return token

    def _exchange(self, client: "httpx.Client", subject: str) -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "subject_token_type": JWT,
            "audience": self._settings.audience,
            "scope": SCOPE,
            "subject_token": subject,
        }
        url = f"{endpoint('STS', self._environ)}token"
        answer = self._send("the exchange of the token at Google", lambda: client.post(url, data=form))
        content = _json(answer)
        token = content.get("access_token")
        if answer.is_success and isinstance(token, str) and token:
            self._mask(token)
            return token
        error, text = _refusal(content, subject)
        raise CredentialsError(causes.exchange_refused(self._settings, error, text, subject))

    def _impersonate(self, client: "httpx.Client", federated: str, subject: str) -> str:
        account = self._settings.account
        path = f"projects/-/serviceAccounts/{account}:generateAccessToken"
        url, body = f"{endpoint('IAM_CREDENTIALS', self._environ)}{path}", {"scope": [SCOPE], "lifetime": "3600s"}
        headers = {"Authorization": f"Bearer {federated}"}
        answer = self._send(f"a token of {account}", lambda: client.post(url, json=body, headers=headers))
        content = _json(answer)
        token = content.get("accessToken")
        if answer.is_success and isinstance(token, str) and token:
            self._mask(token)
            return str(content.get("expireTime", ""))
        _, text = _refusal(content, subject, federated)
        raise CredentialsError(causes.account_refused(self._settings, answer.status_code, text, subject))

    def _send(self, what: str, send: "Callable[[], httpx.Response]") -> "httpx.Response":
        """Send a request until it is answered, within the deadline of the whole login."""
        import httpx

        for delay in Backoff().delays(random.random):
            try:
                answer = send()
                failure = f"HTTP {answer.status_code}"
                if answer.status_code not in _REPEATED:
                    return answer
            except httpx.HTTPError as error:
                failure = redact(reason_of(error))
            if self._clock() + delay >= self._end:
                consequence = f"did not come within {DEADLINE_SECONDS:g} s ({failure}), so nothing can be deployed."
                raise UserError(Problem(what, None, consequence, "run the job again."))
            self._sleep(delay)
        raise AssertionError("the waits never end")


def _json(answer: "httpx.Response") -> dict[str, Any]:
    try:
        content = read_json(answer.content)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _refusal(content: Mapping[str, Any], *secrets: str) -> tuple[str, str]:
    """Code and text of a refusal in OAuth's or in Google's form."""
    error = content.get("error")
    if isinstance(error, Mapping):
        details = error.get("details") or [{}]
        reason = next((str(item["reason"]) for item in details if isinstance(item, Mapping) and "reason" in item), "")
        return reason or str(error.get("status", "")), redact(str(error.get("message", "")), *secrets)
    return str(error or NOT_SET), redact(str(content.get("error_description", "")), *secrets)
