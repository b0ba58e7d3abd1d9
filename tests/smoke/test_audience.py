"""A tag's address is asked with a token for the service: Cloud Run takes no other audience there."""

from pathlib import Path

import pytest

from bezel.diagnosis.client import Server
from bezel.rest import Credentials
from tests.support.smoke.fake_service import Project


@pytest.mark.parametrize(("named", "status"), [(True, 200), (False, 401)])
def test_a_token_is_for_the_named_audience_and_else_for_the_address(
    project: Project, tmp_path: Path, named: bool, status: int
) -> None:
    another_address = project.vllm.url.replace("127.0.0.1", "localhost")
    credentials = Credentials(environ=project.environment(tmp_path))
    with Server(another_address, credentials, audience=project.vllm.url if named else "") as server:
        assert server.send("GET", "/health").status_code == status


def test_without_another_audience_the_address_is_the_audience(project: Project, tmp_path: Path) -> None:
    with Server(f"{project.vllm.url}/", Credentials(environ=project.environment(tmp_path))) as server:
        assert server.send("GET", "/health").status_code == 200
