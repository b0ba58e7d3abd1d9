"""Templates of resources: what they name is read, and any other address is refused with the reason."""

import shutil
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from bench_support import results
from bezel.mcp_server.scope import Scope
from bezel_bench.result.document import save
from tests.support.mcp_server.sessions import ask
from tests.support.rest.fake_google import ACCESS_TOKEN

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two stacks, a document, a result, and what is none of them."""
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    for name in ("Pulumi.yaml", "Pulumi.l4-qat.yaml"):
        shutil.copy(ROOT / name, project)
    (project / "Pulumi.theirs.yaml").write_text("config:\n  bezel:model: their-model\n")
    (project / "docs/guide.md").write_text("# Guide\n")
    save(results.sweep(), project / "a sweep.json")
    (project / "other.json").write_text(f'{{"schema": "{ACCESS_TOKEN}"}}')
    (project / ".hidden.json").write_text("{}")
    (tmp_path / "secret").write_text(ACCESS_TOKEN)
    (project / "Pulumi.linked.yaml").symlink_to("../secret")
    return project


@pytest.mark.slow  # the report of a result
def test_each_template_names_what_can_be_read(folder: Path) -> None:
    examples = {"{stack}": "l4-qat", "{+file}": "a%20sweep.json", "{page}": "guide"}

    async def use_client(client: Client) -> None:
        listed = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in listed] == [
            "bezel://stack/{stack}",
            "bezel://plan/{stack}",
            "bezel://result/{+file}",
            "bezel://docs/{page}",
        ]
        for each in listed:
            uri = each.uri_template
            for variable, value in examples.items():
                uri = uri.replace(variable, value)
            (content,) = (await client.read_resource(uri)).contents
            assert content.text  # type: ignore[union-attr]
            assert content.mime_type == each.mime_type

    ask(folder, use_client)


REFUSED = [
    ("bezel://stack/none", "no stack of that name"),
    ("bezel://stack/../secret", "no stack of that name"),
    ("bezel://stack/%2e%2e%2fsecret", "no stack of that name"),
    ("bezel://stack/l4-qat%00", "no stack of that name"),
    ("bezel://stack/", "no stack of that name"),
    ("bezel://stack/linked", "outside of the project's folder"),
    ("bezel://plan/l4-qat/x", "no stack of that name"),
    ("bezel://plan/%256c4-qat", "no stack of that name"),
    ("bezel://result/none.json", "there is no such file"),
    ("bezel://result/%2e%2e/secret", "outside of the project's folder"),
    ("bezel://result//etc/passwd", "outside of the project's folder"),
    ("bezel://result/.hidden.json", "it is hidden"),
    ("bezel://result/other.json", "Repair: "),
    ("bezel://result/Pulumi.yaml", "Repair: "),
    ("bezel://result/x%00y", "a character that no terminal shows"),
    ("bezel://result/", "1 to 300 characters"),
    (f"bezel://result/{'x' * 290}", "it is not the name of a file"),
    (f"bezel://result/{'x' * 400}", "1 to 300 characters"),
    ("bezel://docs/../secret", "no such document"),
    ("bezel://docs/%2e%2e%2fsecret", "no such document"),
    ("bezel://docs/guide.md", "no such document"),
    ("bezel://plans/l4-qat", "expected one of bezel://stacks, bezel://stack/{stack}"),
    ("BEZEL://stack/l4-qat", "expected one of"),
    ("file:///etc/passwd", "expected one of"),
    ("bezel://", "expected one of"),
    (f"bezel://stack/{'x' * 3000}", "2000 characters at most"),
]


def test_address_that_names_nothing_is_refused_with_the_reason(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        for uri, reason in REFUSED:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert reason in str(refused.value), uri
            assert ACCESS_TOKEN not in str(refused.value)

    ask(folder, use_client)


def test_client_of_some_stacks_reads_no_other_by_a_template(folder: Path) -> None:
    async def use_client(client: Client) -> None:
        assert (await client.read_resource("bezel://stack/l4-qat")).contents
        for kind in ("stack", "plan"):
            with pytest.raises(MCPError, match="no stack of that name") as refused:
                await client.read_resource(f"bezel://{kind}/theirs")
            assert "their-model" not in str(refused.value)

    ask(folder, use_client, Scope(stacks=("l4-qat",)))


def test_credential_in_a_stack_file_is_not_shown(folder: Path) -> None:
    token = "hf_" + "b" * 34
    (folder / "Pulumi.theirs.yaml").write_text(f"config:\n  bezel:variables: {{A: {token}}}\n")

    async def use_client(client: Client) -> None:
        (content,) = (await client.read_resource("bezel://stack/theirs")).contents
        assert token not in content.text  # type: ignore[union-attr]
        assert "bezel:variables" in content.text  # type: ignore[union-attr]

    ask(folder, use_client)
