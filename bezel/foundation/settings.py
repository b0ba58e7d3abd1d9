"""Settings of the foundation, typed and strict, and every problem of given ones at once. Pure.

Owns the meaning and the bounds of each setting, and the names that follow from the project. `Pulumi.yaml` declares the
same keys; the options of `bezel init` become them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bezel.planner.address.domain import domain_problem
from bezel.planner.base.members import member_problem
from bezel.planner.base.names import is_project_id
from bezel_base.errors import NOT_SET, Problem, WrongValueError, format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAMESPACE = "bezel-bootstrap"
ISSUERS = {"github": "https://token.actions.githubusercontent.com"}
"""Issuer of the identity tokens of each forge that has one of its own for everybody."""

NEEDED_BY_PIPELINE = ("repository", "repository_id", "billing_account", "alert_email")
"""Settings that are required unless there is no forge."""
_OF_PIPELINE = (
    *("repository", "repository_id", "forge", "issuer", "main_branch", "environments", "deploy_workflows"),
    *("weights_buckets", "secrets", "domains"),
)
_OF_BUDGET = ("alert_email", "budget", "currency")
_TITLE = "The project cannot be set up"
BUCKET = r"[a-z0-9][a-z0-9_.-]{1,61}[a-z0-9]"
_LABEL = r"[a-z0-9_-]{1,63}"
_WORKFLOW = r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+/\.github/workflows/[A-Za-z0-9._-]+\.ya?ml@[0-9a-f]{40}"


class Settings(BaseModel):
    """Settings of one project's foundation."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    no_forge: bool = Field(
        False, description="whether nothing deploys by pipeline: only state bucket, key and smoke account are made"
    )
    region: str = Field(
        pattern=r"^[a-z]+-[a-z]+[0-9]+$",
        description="region of the state bucket and of the key, e.g. us-east4",
        examples=["us-east4"],
    )
    repository: str = Field(
        "",
        pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?/[A-Za-z0-9._-]+$",
        description="repository whose pipeline deploys: OWNER/NAME",
        examples=["acme/llm"],
    )
    repository_id: str = Field(
        "",
        pattern=r"^[0-9]+$",
        description="number of the repository at the forge: a name can be given up and taken by others, a number not",
        examples=["123456789"],
    )
    forge: Literal["github", "gitea"] = Field("github", description="forge of the repository: github or gitea")
    issuer: str = Field("", description="issuer of the identity tokens of the forge's jobs; default GitHub's own")
    main_branch: str = Field(
        "main", pattern=r"^[A-Za-z0-9._/-]+$", description="branch whose jobs may deploy", examples=["main"]
    )
    environments: tuple[str, ...] = Field(
        ("dev", "prod"), min_length=1, description="environments of the forge whose jobs may deploy"
    )
    deploy_workflows: tuple[str, ...] = Field(
        (),
        description="workflow files, each at a commit, whose jobs alone may deploy: "
        "OWNER/NAME/.github/workflows/FILE@COMMIT; default any of the repository",
    )
    billing_account: str = Field(
        "",
        pattern=r"^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$",
        description="billing account of the project",
        examples=["012345-6789AB-CDEF01"],
    )
    alert_email: str = Field(
        "",
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        description="e-mail address of the alerts when spending reaches a threshold",
        examples=["llm@acme.example"],
    )
    budget: int = Field(500, ge=1, le=10_000_000, description="budget of a month; it alerts, and stops nothing")
    currency: str = Field(
        "USD", pattern=r"^[A-Z]{3}$", description="currency of the budget: the billing account's", examples=["USD"]
    )
    state_bucket: str = Field(
        "", pattern=rf"^(?:{BUCKET})?$", description="bucket of the states; default <project>-pulumi-state"
    )
    weights_buckets: tuple[str, ...] = Field(
        (), description="buckets of weights that stacks read or create; default <project>-models"
    )
    secrets: tuple[str, ...] = Field((), description="secrets that stacks may give their servers access to")
    domains: tuple[str, ...] = Field(
        (),
        description="domains that stacks may have as an address, with a load balancer, a certificate and their records",
        examples=["llm.acme.example"],
    )
    smoke_users: tuple[str, ...] = Field(
        (),
        description="who may call services as the smoke account, which is made for them: user:NAME, group:NAME or "
        "serviceAccount:NAME",
        examples=["user:you@acme.example"],
    )
    owner: str = Field("platform", pattern=f"^{_LABEL}$", description="label `owner` of what is created")

    @property
    def token_issuer(self) -> str:
        """Issuer of the tokens: the given one, else the forge's own."""
        return self.issuer or ISSUERS.get(self.forge, "")

    def bucket_of(self, project: str) -> str:
        """Name of the state bucket."""
        return self.state_bucket or f"{plain(project)}-pulumi-state"

    def weights_of(self, project: str) -> tuple[str, ...]:
        """Names of the buckets of weights."""
        return self.weights_buckets or (f"{project}-models",)


def plain(project: str) -> str:
    """A project's id in letters, digits and hyphens: an old id with a domain has a colon and dots."""
    return re.sub(r"[^a-z0-9-]+", "-", project)


def in_configuration(name: str) -> str:
    """Key of a setting in a stack's configuration."""
    return f"{NAMESPACE}:{name}"


def checked_settings(
    values: Mapping[str, object], project: str | None, key: Callable[[str], str] = in_configuration
) -> Settings:
    """Read settings.

    Args:
        values: Settings by their names; an absent or empty one has its default.
        project: Id of the Google Cloud project.
        key: Returns how the user names a setting, e.g. as an option.

    Raises:
        WrongValueError: There are problems; it holds all of them.
    """
    nonempty = {name: value for name, value in values.items() if value not in ("", None)}
    problems = [*_of_project(project, key), *_of_forge(nonempty, key)]
    try:
        settings = Settings.model_validate({name: _as_typed(name, value) for name, value in nonempty.items()})
    except ValidationError as error:
        value_problems = [_problem(cast("dict[str, Any]", detail), key) for detail in error.errors(include_url=False)]
        raise WrongValueError(*problems, *value_problems, title=_TITLE) from None
    problems += [*([] if settings.no_forge else _of_issuer(settings, key)), *_of_names(settings, project or "", key)]
    if problems:
        raise WrongValueError(*problems, title=_TITLE)
    return settings


def _as_typed(name: str, value: object) -> object:
    """The engine passes a plain value as text."""
    field = Settings.model_fields.get(name)
    if field is not None and field.annotation is int and isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value


def _of_project(project: str | None, key: Callable[[str], str]) -> list[Problem]:
    if project and is_project_id(project):
        return []
    repair = "write the ID of an existing project, which `gcloud projects list` shows."
    consequence = "it is not the ID of a Google Cloud project." if project else "no project is named."
    return [Problem(key("project"), project or NOT_SET, consequence, repair)]


def _problem(detail: Mapping[str, Any], key: Callable[[str], str]) -> Problem:
    name = str(detail["loc"][0])
    field = Settings.model_fields.get(name)
    if field is None:
        known_keys = ", ".join(Settings.model_fields)
        consequence = "there is no such setting: it would have no effect."
        return Problem(key(name), format_value(detail["input"]), consequence, f"remove it. Known: {known_keys}.")
    example = f", e.g. {field.examples[0]}" if field.examples else ""
    if detail["type"] == "missing":
        return _missing(name, key)
    consequence = f"expected the {field.description}."
    if name == "repository" and "/" not in str(detail["input"]):
        consequence = "it has no owner: every repository of that name at the forge would be meant."
        return Problem(key(name), format_value(detail["input"]), consequence, f"write OWNER/NAME{example}.")
    return Problem(key(name), format_value(detail["input"]), consequence, f"correct it{example}.")


def _missing(name: str, key: Callable[[str], str], other: str = "") -> Problem:
    """The problem of a required setting; `other` is a second way to repair it."""
    field = Settings.model_fields[name]
    example = f", e.g. {field.examples[0]}" if field.examples else ""
    return Problem(key(name), NOT_SET, f"it is required: {field.description}.", f"add it{example}{other}.")


def _of_forge(values: Mapping[str, object], key: Callable[[str], str]) -> list[Problem]:
    """Problems of settings that a pipeline needs, or that have no effect without one."""
    no_forge = key("no_forge")
    if str(values.get("no_forge", False)).lower() != "true":
        other = f"; without a repository's pipeline: {no_forge}"
        missing = [name for name in NEEDED_BY_PIPELINE if name not in values]
        return [_missing(name, key, other if name == "repository" else "") for name in missing]
    consequence = "it is about a pipeline, which is not made without a forge: it would have no effect."
    repair = f"leave it out, or leave {no_forge} out."
    without_effect = [name for name in _OF_PIPELINE if _is_set(name, values)]
    problems = [Problem(key(name), format_value(values[name]), consequence, repair) for name in without_effect]
    if not values.get("smoke_users"):
        consequence = "a person's login gets no identity token for a service, so the check of each deploy would fail."
        example = Settings.model_fields["smoke_users"].examples or [""]
        problems.append(Problem(key("smoke_users"), NOT_SET, consequence, f"name yourself, e.g. {example[0]}."))
    if "billing_account" in values and "alert_email" not in values:
        problems.append(_missing("alert_email", key))
    if "billing_account" not in values:
        consequence = "no budget is made without a billing account, so it would have no effect."
        repair = f"add {key('billing_account')}, or leave it out."
        without_effect = [name for name in _OF_BUDGET if _is_set(name, values)]
        problems += [Problem(key(name), format_value(values[name]), consequence, repair) for name in without_effect]
    return problems


def _is_set(name: str, values: Mapping[str, object]) -> bool:
    """Whether a setting has another value than its default, which the engine passes to a program too."""
    value, default = values.get(name), Settings.model_fields[name].default
    if value is None:
        return False
    if isinstance(default, tuple):
        return not isinstance(value, list | tuple) or tuple(value) != default
    return str(value) != str(default)


def _of_issuer(settings: Settings, key: Callable[[str], str]) -> list[Problem]:
    issuer = settings.token_issuer
    if not issuer:
        consequence = f"{settings.forge} has no issuer that all its servers share, so no token could be accepted."
        repair = "name the issuer of your server's identity tokens: the address above its /.well-known."
        return [Problem(key("issuer"), NOT_SET, consequence, repair)]
    parts = urlsplit(issuer)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")):
        return []
    consequence = (
        "identity tokens are believed because of the keys at this address, which could be replaced on the way."
    )
    return [Problem(key("issuer"), issuer, consequence, "write an https address.")]


def _of_names(settings: Settings, project: str, key: Callable[[str], str]) -> list[Problem]:
    problems = []
    if len(settings.bucket_of(project)) > 63:
        consequence = "a bucket's name has 63 characters at most."
        problems.append(Problem(key("state_bucket"), settings.bucket_of(project), consequence, "name a shorter one."))
    if settings.bucket_of(project) in settings.weights_of(project):
        consequence = "the account that deploys could delete the states: stacks may delete buckets of weights."
        repair = "keep weights in a bucket of their own."
        problems.append(Problem(key("weights_buckets"), settings.bucket_of(project), consequence, repair))
    odd = [name for name in settings.weights_of(project) if not re.fullmatch(BUCKET, name)]
    odd += [name for name in settings.secrets if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", name)]
    odd += [name for name in settings.environments if not re.fullmatch(r"(?!none$)[A-Za-z0-9][A-Za-z0-9._-]*", name)]
    faults = {name: member_problem(name) for name in settings.smoke_users}
    problems += [Problem(key("smoke_users"), name, *fault) for name, fault in faults.items() if fault]
    refused = {name: domain_problem(name) for name in settings.domains}
    problems += [
        Problem(key("domains"), name, f"{consequence}.", f"{repair}.")
        for name, text in refused.items()
        if text
        for consequence, _, repair in [text.partition("; ")]
    ]
    loose = [name for name in settings.deploy_workflows if not re.fullmatch(_WORKFLOW, name)]
    consequence = "expected a workflow file at a commit: a branch or tag could be moved to other steps."
    repair = "write OWNER/NAME/.github/workflows/FILE@COMMIT, with the 40 digits of the commit."
    problems += [Problem(key("deploy_workflows"), name, consequence, repair) for name in loose]
    # These names become parts of conditions, where a quote would end a text.
    consequence = "expected the name of a bucket, a secret or an environment."
    return [*problems, *(Problem(key("names"), name, consequence, "correct it.") for name in odd)]
