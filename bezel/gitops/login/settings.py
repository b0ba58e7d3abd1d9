"""Settings of `bezel ci login`: the provider that accepts the job's tokens, and the account to act as."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_base.text.shell import shell_word

PROVIDER, ACCOUNT, PROJECT = "BEZEL_IDENTITY_PROVIDER", "BEZEL_ACCOUNT", "GOOGLE_PROJECT"
_PROVIDER = re.compile(
    r"projects/(?P<number>[^/]+)/locations/global/workloadIdentityPools/(?P<pool>[a-z0-9-]{4,32})"
    r"/providers/(?P<provider>[a-z0-9-]{4,32})"
)
_ACCOUNT = re.compile(r"[a-z][a-z0-9-]*@(?P<project>[a-z][a-z0-9.-]*)\.iam\.gserviceaccount\.com")
_FORM = "projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER"


@dataclass(frozen=True)
class LoginSettings:
    """A provider and an account.

    Attributes:
        provider: Name of the provider.
        account: E-mail of the account.
        project: Project that the later steps work on.
    """

    provider: str
    account: str
    project: str

    @classmethod
    def of(
        cls, provider: str | None, account: str | None, project: str | None, environ: Mapping[str, str]
    ) -> "LoginSettings":
        """Read the options, or the variables in their place; the project is the account's where none is named.

        Raises:
            WrongValueError: One is missing, or of another form; all of them at once.
        """
        provider = (provider or environ.get(PROVIDER, "")).strip().removeprefix("//iam.googleapis.com/")
        account = (account or environ.get(ACCOUNT, "")).strip()
        problems = []
        provider_match, named = _PROVIDER.fullmatch(provider), _ACCOUNT.fullmatch(account)
        if provider_match is None:
            repair = f"set it, or {PROVIDER}, to what `bezel init` printed."
            problems.append(Problem("--provider", provider or NOT_SET, f"expected {_FORM}.", repair))
        elif not provider_match["number"].isdecimal():
            repair = f"write the number that `gcloud projects describe {shell_word(provider_match['number'])}` shows."
            problems.append(Problem("--provider", provider, "needs the project's number, not its id.", repair))
        if named is None:
            repair = f"set it, or {ACCOUNT}, to one of the two accounts that `bezel init` printed."
            consequence = "expected NAME@PROJECT.iam.gserviceaccount.com."
            problems.append(Problem("--account", account or NOT_SET, consequence, repair))
        # Both would take the place of the credentials that a login leaves to the later steps.
        for name in ("GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_CREDENTIALS"):
            if environ.get(name, "").strip():
                consequence = "is set, and Pulumi would use it instead of the account."
                problems.append(Problem(name, None, consequence, "unset it for the job."))
        if problems or named is None:
            raise WrongValueError(*problems)
        return cls(provider, account, (project or environ.get(PROJECT, "")).strip() or named["project"])

    @property
    def number(self) -> str:
        """Number of the provider's project."""
        return self.provider.split("/")[1]

    @property
    def pool(self) -> str:
        """Id of the pool."""
        return self.provider.split("/")[5]

    @property
    def provider_id(self) -> str:
        """Id of the provider within its pool."""
        return self.provider.rpartition("/")[2]

    @property
    def audience(self) -> str:
        """Full resource name of the provider, as an exchange names it."""
        return f"//iam.googleapis.com/{self.provider}"

    @property
    def token_audience(self) -> str:
        """Audience of the job's tokens: the one that a provider expects unless it is set up otherwise."""
        return f"https:{self.audience}"
