"""Google's verdict on one stack: asks Google and a localcloud, writes the report, and returns the outcomes as checks.

Owns the order of the questions: what exists is read first, since a first deploy creates accounts before the service.
Leaves out the questions themselves, and the quotas' amounts, which `cloud_checks` compares.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bezel.operations.config.config import LATER, Config
from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, check
from bezel.operations.doctor.verdict.ask import Judgement, ask
from bezel.operations.doctor.verdict.local_answers import LocalAnswers, local_answers
from bezel.operations.doctor.verdict.pseudonyms import Pseudonyms
from bezel.operations.doctor.verdict.questions import (
    Question,
    account_question,
    for_localcloud,
    missing_permissions,
    permission_questions,
    policy_question,
    quota_questions,
    service_question,
)
from bezel.operations.doctor.verdict.report import Asked, report_text, status_text
from bezel.planner.assemble.quota import Need
from bezel.rest import GoogleClient, endpoint
from bezel_base.atomic_write import write_whole
from bezel_base.errors import UserError

_SERVICE = "run.projects.locations.services.create"
_ABSENT = 404
_SHOWN = 8
_GOOGLE_RUN = "https://run.googleapis.com/"


@dataclass(frozen=True)
class Subject:
    """The stack whose deploy is judged.

    Attributes:
        stack: Its name.
        project: Id of its project.
        requests: What its deploy sends.
        needs: The quotas that it needs.
        buckets: Buckets that its servers read beside those that they mount.
        has_address: Whether it has an address.
    """

    stack: str
    project: str
    requests: Config
    needs: Sequence[Need]
    buckets: Sequence[str] = ()
    has_address: bool = False


def verdict(context: Context, client: GoogleClient, subject: Subject, file: Path) -> Iterator[Check]:
    """Ask, write the report into the file, and yield the outcomes."""
    with contextlib.ExitStack() as stack:
        local: LocalAnswers | None = None
        not_asked = ""
        context.show("starts a localcloud that answers the same questions")
        try:
            local = stack.enter_context(local_answers(subject.project))
        except UserError as error:
            not_asked = str(error)
        context.show("asks Google by requests that create nothing")
        asking = _Asking(context, client, local)
        asked, number = asking.answers(subject), _number_of(asking, subject.project)
    is_google = endpoint("CLOUD_RUN_V2", context.environ).startswith(_GOOGLE_RUN)
    google = "Google" if is_google else "a localcloud in place of Google, which the environment names"
    text = report_text(asked, Pseudonyms(_names(subject, number)), google=google, not_asked=not_asked)
    write_whole(file, text)
    yield from (each for one in asked for each in _checks(one, subject.stack, file))
    if not_asked:
        yield check("verdict", "localcloud", "unknown", not_asked, "compare with Google's documents by hand.")
    yield check("verdict", str(file), "ok", "every request with both answers, without names; attach it to a bug report")


class _Asking:
    """Asks both, question by question."""

    def __init__(self, context: Context, client: GoogleClient, local: LocalAnswers | None) -> None:
        self._context, self._client, self._local = context, client, local

    def answers(self, subject: Subject) -> list[Asked]:
        services = [each for each in subject.requests.requests if each.method == _SERVICE]
        has_leases = len(services) < len(subject.requests.requests)
        asked: list[Asked] = []
        for request in services:
            asked += self._service(subject.project, request.body)
        metrics = any(len(each.body["template"].get("containers") or ()) > 1 for each in services)
        questions = permission_questions(
            subject.project, leases=has_leases, addresses=subject.has_address, metrics=metrics
        )
        questions += quota_questions(subject.project, subject.needs)
        return [*asked, *map(self._both, questions)]

    def _service(self, project: str, planned: Mapping[str, Any]) -> Iterator[Asked]:
        name = str(planned["name"])
        exists = self.google(Question("the service", "CLOUD_RUN_V2", "GET", name)).accepts
        account = str((planned.get("template") or {}).get("serviceAccount") or "")
        has_account = False
        if account and LATER not in account:
            question = account_question(project, account)
            answer = self.google(question)
            has_account = answer.accepts
            yield Asked(question, answer)
            if has_account and self._local is not None:
                self._local.add_account(account)
        question = service_question(planned, LATER, exists=exists, has_account=has_account)
        local = None if self._local is None else self._local.ask(for_localcloud(question))
        yield Asked(question, self.google(question), local)
        if exists:
            question = policy_question(name)
            yield Asked(question, self.google(question))

    def _both(self, question: Question) -> Asked:
        return Asked(question, self.google(question), None if self._local is None else self._local.ask(question))

    def google(self, question: Question) -> Judgement:
        """Google's answer."""
        return ask(self._client, self._context.environ, question)


def _checks(asked: Asked, stack: str, file: Path) -> Iterator[Check]:
    """The outcomes of one question, with both answers in their subject."""
    question, google = asked.question, asked.google
    is_validation = "validateOnly" in question.params
    if not google.status:
        yield check("verdict", question.title, "unknown", google.message, "repeat it; check the network and the login.")
        return
    both = f"{question.title}: Google {status_text(google)}, localcloud {status_text(asked.local)}"
    if is_validation and google.accepts:
        yield check("verdict", both, "ok", "Google would accept it; nothing was created")
    elif is_validation:
        fields = f" (fields: {', '.join(google.fields)})" if google.fields else ""
        repair = f"correct what it names in Pulumi.{stack}.yaml, then run the same command again."
        yield check("verdict", both, "problem", f"Google refuses it: {google.message}{fields}", repair)
    elif missing := missing_permissions(question, google.content) if google.accepts else []:
        others = f" and {len(missing) - _SHOWN} more, all in {file}" if len(missing) > _SHOWN else ""
        detail = f"not granted on the project: {', '.join(missing[:_SHOWN])}{others}"
        repair = "a grant on the resource may hold it; else let the project's owner grant a role that does."
        yield check("verdict", both, "warning", detail, repair)
    elif google.accepts:
        yield check("verdict", both, "ok", "it may be read")
    elif google.status == _ABSENT:
        yield check("verdict", both, "ok", "it does not exist yet; the deploy creates it")
    else:
        yield check("verdict", both, "warning", f"it may not be read: {google.message}", f"read {file}.")
    if is_validation and asked.differs and asked.local is not None:
        other = "accepts it" if asked.local.accepts else f"refuses it: {asked.local.message}"
        repair = f"attach {file} to a bug report: localcloud should answer as Google does."
        yield check("verdict", f"{question.title} on localcloud", "warning", f"localcloud {other}", repair)


def _names(subject: Subject, number: str) -> dict[str, list[str]]:
    """The names that the report must not show, by kind."""
    bodies = [each.body for each in subject.requests.requests]
    templates = [body.get("template") or {} for body in bodies]
    volumes = [volume for template in templates for volume in template.get("volumes") or ()]
    containers = [each for template in templates for each in template.get("containers") or ()]
    variables = [entry.get("valueSource") or {} for each in containers for entry in each.get("env") or ()]
    sources = [each.get("secretKeyRef") or {} for each in variables] + [each.get("secret") or {} for each in volumes]
    return {
        "PROJECT": [subject.project, number],
        "SERVICE": [str(body["name"]).rpartition("/")[2] for body in bodies if "name" in body],
        "BUCKET": [*(str((volume.get("gcs") or {}).get("bucket") or "") for volume in volumes), *subject.buckets],
        "SECRET": [str(source.get("secret") or "").rpartition("/")[2] for source in sources],
        "STACK": [subject.stack],
    }


def _number_of(asking: _Asking, project: str) -> str:
    """The project's number, which answers have in place of its id; "" where it may not be read."""
    answer = asking.google(Question("the project", "RESOURCE_MANAGER", "GET", f"projects/{project}"))
    return str(answer.content.get("projectNumber") or "")
