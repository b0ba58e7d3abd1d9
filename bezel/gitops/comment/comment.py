"""The command's work: documents become the comment of the run's pull request, or are printed where there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bezel.forge import Forge, PullRequestEvent, forge_of, pull_request_of
from bezel.gitops.comment.body import Sections, body_of, sections_of, visible
from bezel.gitops.comment.documents import read_documents
from bezel.gitops.comment.sticky import StickyComment


@dataclass(frozen=True)
class CommentReport:
    """Report of the command.

    Attributes:
        action: "created", "updated" or "unchanged"; "printed" where no comment was written.
        body: the comment's text.
        url: of the comment.
        reason: why no comment was written.
    """

    action: str
    body: str
    url: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        return {"kind": "comment", "action": self.action, "url": self.url, "reason": self.reason, "body": self.body}

    def text(self) -> str:
        """The comment as it was written, and what became of it."""
        return f"{visible(self.body)}\n{self._outcome()}\n"

    def markdown(self) -> str:
        """For the run's summary: the comment itself where none was written."""
        return f"{self._outcome()}\n" if self.url else f"{visible(self.body)}\n{self._outcome()}\n"

    def _outcome(self) -> str:
        return f"Comment {self.action}: {self.url}" if self.url else f"No comment was written: {self.reason}."


def comment(files: Sequence[Path], environ: Mapping[str, str], *, pull_request: int | None = None) -> CommentReport:
    """Show documents in the comment of the run's pull request.

    Args:
        files: documents, and folders of them.
        environ: of the run.
        pull_request: its number, where the run's event names none.

    Raises:
        UserError: a document cannot be read, or the forge refuses.
    """
    documents = read_documents(files)
    event = pull_request_of(environ)
    if pull_request is not None and (event is None or event.number != pull_request):
        event = PullRequestEvent(pull_request, from_fork=False)
    named = next((str(document["commit"]) for document in documents if document.get("commit")), "")
    forge = forge_of(environ)
    commit = (event.head_sha if event else "") or (forge.facts.sha if forge else "") or named
    sections = sections_of(documents, commit, forge.facts.run_url if forge else "")
    if forge is None:
        return _printed_report(sections, "the environment names no forge (GITHUB_API_URL, GITHUB_REPOSITORY)")
    with forge:
        return _on(forge, event, sections)


def _on(forge: Forge, event: PullRequestEvent | None, sections: Sections) -> CommentReport:
    if event is None:
        return _printed_report(sections, "this run belongs to no pull request")
    if event.from_fork:
        return _printed_report(sections, "the pull request comes from a fork, whose run has no token that may write")
    newest = forge.head_of(event.number) if event.head_sha else ""
    if newest and newest != event.head_sha:
        reason = f"the pull request has a newer commit, {newest[:8]}, whose run writes it"
        return _printed_report(sections, reason)
    kept = StickyComment(forge, event.number).keep(sections)
    address = kept.comment.url or f"{forge.facts.server_url}/{forge.facts.repository}/pulls/{event.number}"
    return CommentReport(kept.action, kept.comment.body, address)


def _printed_report(sections: Sections, reason: str) -> CommentReport:
    return CommentReport("printed", body_of(sections), reason=reason)
