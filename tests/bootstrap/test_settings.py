"""Settings of the foundation: every problem at once, each with its repair."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bezel.foundation.settings import Settings, checked_settings
from bezel_base.errors import UserError
from tests.support.bootstrap.project import PROJECT, SETTINGS
from tools.docs.bootstrap import FILE, section


def problems(changes: dict[str, Any], project: str | None = PROJECT) -> list[str]:
    with pytest.raises(UserError) as refused:
        checked_settings(SETTINGS | changes, project, key=lambda name: f"--{name}")
    assert all("Repair: " in str(problem) for problem in refused.value.problems)
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repository": "llm"}, "--repository = llm\n   it has no owner"),
        ({"repository": "acme/llm'"}, "--repository = acme/llm'"),
        ({"repository_id": "acme"}, "--repository_id = acme"),
        ({"region": "USA"}, "--region = USA"),
        ({"billing_account": "12"}, "--billing_account = 12"),
        ({"billing_account": ""}, "--billing_account = (not set)\n   it is required"),
        ({"alert_email": "me"}, "--alert_email = me"),
        ({"budget": 0}, "--budget = 0"),
        ({"budget": "many"}, "--budget = many"),
        ({"forge": "gitea"}, "--issuer = (not set)\n   gitea has no issuer"),
        ({"issuer": "http://forge.example"}, "--issuer = http://forge.example"),
        ({"weights_buckets": (f"{PROJECT}-pulumi-state",)}, f"--weights_buckets = {PROJECT}-pulumi-state"),
        ({"weights_buckets": ('a" || true || "',)}, "--names = a"),
        ({"domains": ("llm.acme.example", "*.acme.example")}, "--domains = *.acme.example\n   a certificate of"),
        ({"environments": ("none",)}, "--names = none"),
        ({"main_branch": "main'"}, "--main_branch = main'"),
        (
            {"deploy_workflows": ("acme/p/.github/workflows/deploy.yml@main",)},
            "--deploy_workflows = acme/p/.github/workflows/deploy.yml@main\n   expected a workflow file at a commit",
        ),
        ({"no_such": "1"}, "--no_such = 1\n   there is no such setting"),
    ],
)
def test_a_wrong_setting_is_an_error_with_its_key_and_repair(changes: dict[str, Any], message: str) -> None:
    (problem,) = problems(changes)
    assert problem.startswith(message)


@pytest.mark.parametrize("project", [None, "", "Acme", "123456789012", "acme_llm"])
def test_a_project_needs_its_id(project: str | None) -> None:
    assert problems({}, project)[0].startswith("--project = ")


def test_all_problems_are_found_at_once() -> None:
    assert len(problems({"repository": "llm", "region": "x", "alert_email": ""}, "X")) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"budget": "250"},
        {"forge": "gitea", "issuer": "http://127.0.0.1:1/oidc"},
        {"environments": ["dev", "prod-eu.1"]},
        {"secrets": ["hf-token"], "weights_buckets": ["a.b_c"], "domains": ["llm.acme.example"]},
        {"issuer": ""},
        {"deploy_workflows": ["acme/p/.github/workflows/deploy.yml@" + "0" * 40]},
    ],
)
def test_right_settings_are_read(changes: dict[str, Any]) -> None:
    assert isinstance(checked_settings(SETTINGS | changes, PROJECT), Settings)


def test_an_old_project_with_a_domain_has_a_valid_bucket() -> None:
    settings = checked_settings(SETTINGS | {"weights_buckets": ("weights",)}, "acme.example:llm")
    assert settings.bucket_of("acme.example:llm") == "acme-example-llm-pulumi-state"


def test_pulumi_yaml_declares_every_setting() -> None:
    text = FILE.read_text()
    assert text.endswith(section()), "run `python -m tools.docs.bootstrap --write`"
    assert set(yaml.safe_load(text)["config"]) == set(Settings.model_fields)
