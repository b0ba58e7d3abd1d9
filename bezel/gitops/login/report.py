"""Report of a login: who the job is at Google, and until when. It holds no token."""

from dataclasses import dataclass
from pathlib import Path

from bezel.gitops.login.settings import LoginSettings
from bezel_base.text.markdown import code, prose
from bezel_base.text.shell import shell_word


@dataclass(frozen=True)
class LoginReport:
    """A login that succeeded.

    Attributes:
        settings: Provider and account.
        subject: The job's subject.
        expires: End of the account's first token, RFC 3339; clients renew it.
        file: The credential file.
        handed_over: Whether the later steps get the variables by themselves.
    """

    settings: LoginSettings
    subject: str
    expires: str
    file: Path
    handed_over: bool

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        return {
            "kind": "login",
            "account": self.settings.account,
            "project": self.settings.project,
            "provider": self.settings.provider,
            "subject": self.subject,
            "expires": self.expires,
            "credentials": str(self.file),
        }

    def text(self) -> str:
        """The content for a terminal."""
        lines = [
            f"account  {self.settings.account}",
            f"project  {self.settings.project}",
            f"subject  {self.subject}",
            f"token    until {self.expires}, renewed while the job runs",
            f"file     {self.file}",
        ]
        if not self.handed_over:
            names = {"GOOGLE_APPLICATION_CREDENTIALS": self.file, "GOOGLE_PROJECT": self.settings.project}
            lines += ["", " ".join(["export", *(f"{name}={shell_word(value)}" for name, value in names.items())])]
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """The content for a run's summary."""
        return f"Logged in as {code(self.settings.account)} until {prose(self.expires)}.\n"
