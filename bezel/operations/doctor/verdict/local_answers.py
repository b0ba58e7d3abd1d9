"""A localcloud of its own that answers the same questions: temporary, with the project's id, and gone afterwards."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bezel.operations.doctor.verdict.ask import Judgement, ask
from bezel.operations.doctor.verdict.questions import Question
from bezel.rest import Credentials, GoogleClient
from bezel_localcloud.clients import full_api_names
from bezel_localcloud.session import Localcloud, Settings, serve_session

_APIS = ("run", "iam", "cloudquotas", "cloudresourcemanager")
_SECONDS = 20.0


class LocalAnswers:
    """Asks a localcloud, as the owner of its project."""

    def __init__(self, cloud: Localcloud, client: GoogleClient) -> None:
        self._cloud, self._client = cloud, client

    def ask(self, question: Question) -> Judgement:
        """Localcloud's answer."""
        return ask(self._client, self._cloud.environment, question)

    def add_account(self, account: str) -> None:
        """Create a service account that the real project has; one that exists stays."""
        path = f"projects/{self._cloud.project}/serviceAccounts"
        body = {"accountId": account.partition("@")[0]}
        self.ask(Question("service account", "IAM_BETA", "POST", path, body=body))


@contextlib.contextmanager
def local_answers(project: str) -> Iterator[LocalAnswers]:
    """Start a localcloud that serves a project of this id; it ends with the block.

    Raises:
        UserError: It does not start, or serves no project of such an id.
    """
    settings = Settings(apis=tuple(full_api_names(_APIS)), project=project)
    with (
        tempfile.TemporaryDirectory(prefix="bezel-verdict-") as folder,
        serve_session(Path(folder) / "cloud", settings) as cloud,
        GoogleClient(Credentials(environ=cloud.environment), deadline_seconds=_SECONDS) as client,
    ):
        yield LocalAnswers(cloud, client)
