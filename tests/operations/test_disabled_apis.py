"""API that is not enabled: whatever an operation reads from it, the text names the API and what enables it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from bezel.operations.registry import operation
from bezel.rest.endpoints import endpoint
from bezel_base.errors import UserError
from tests.support.operations.deployed import REVISION, SERVICE, live_service, service_resource, state_of
from tests.support.rest.fake_google import Answer

if TYPE_CHECKING:
    from tests.support.operations.deployed import Deployed
    from tests.support.rest.fake_google import Call

OF_SERVICE = ("status", "watch", "metrics", "memory", "logs", "models", "query", "analyze_logs", "advise")
OF_PROJECT = ("quota", "secret_show")
WITHOUT_SERVICE = {
    "MONITORING": [name for name in OF_SERVICE if name != "logs"],
    "LOGGING": ["status", "watch", "memory", "logs", "analyze_logs", "advise"],
    "CLOUD_RUN_V2": [*OF_SERVICE, "bench_run", "rollback"],
    "SECRET_MANAGER": ["secret_show"],
    "CLOUD_QUOTAS": ["quota"],
}
CASES = [(api, name) for api, names in WITHOUT_SERVICE.items() for name in names]
ARGUMENTS = {"stack": "dev", "name": "hf-token", "prompt": "Hi", "out": "x.json"}


def text_of(cloud: Deployed, name: str) -> str:
    """What an operation prints about the stack `dev`, or its error."""
    of = operation(name)
    model = of.arguments()
    try:
        fields = set(model.model_fields) - ({"stack"} if name in OF_PROJECT else set())
        values = {key: value for key, value in ARGUMENTS.items() if key in fields}
        return of.load()(cloud.context, model.model_validate(values)).text()
    except UserError as error:
        return str(error)


@pytest.fixture
def text_without(cloud: Deployed, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What an operation prints while an API is disabled; None: while all are enabled."""

    def text_while_disabled(api: str | None, name: str) -> str:
        host = urlsplit(endpoint(api, {})).hostname if api else ""

        def refuse(call: Call) -> Answer | None:
            if not host or not call.path.startswith(f"/{host}/"):
                return None
            url = f"https://console.developers.google.com/apis/api/{host}/overview?project=acme"
            message = f"It has not been used in project acme before or it is disabled. Enable it by visiting {url}."
            return Answer(403, {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": message}})

        for each in WITHOUT_SERVICE:
            place = {"CLOUD_RUN_V2": "run/v2", "LOGGING": "logging/v2"}.get(each, each.lower())
            address = f"{cloud.server.url}/{host if each == api else place}/"
            cloud.context.environ[f"GOOGLE_{each}_CUSTOM_ENDPOINT"] = address  # type: ignore[index]
            monkeypatch.setenv(f"GOOGLE_{each}_CUSTOM_ENDPOINT", address)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "acme")
        cloud.context.environ["GOOGLE_CLOUD_PROJECT"] = "acme"  # type: ignore[index]
        cloud.live |= {SERVICE: live_service(), REVISION: {"name": REVISION}, f"{SERVICE}/revisions": {}}
        cloud.keep("dev", state_of(service_resource(), url=cloud.server.url, model="gemma"))
        cloud.server.routes.insert(0, refuse)
        return " ".join(text_of(cloud, name).split())

    return text_while_disabled


@pytest.mark.parametrize(("api", "name"), CASES)
def test_a_disabled_api_is_named_with_its_repair(text_without: Any, api: str, name: str) -> None:
    host = urlsplit(endpoint(api, {})).hostname
    text = text_without(api, name)
    assert f"`gcloud services enable {host} " in text
    assert "Enable it by visiting" not in text


@pytest.mark.parametrize("name", ["status", "metrics", "advise"])
def test_an_enabled_api_needs_no_such_repair(text_without: Any, name: str) -> None:
    assert "services enable" not in text_without(None, name)
