"""What an agent does with a stack from the search for hardware to its end, by the official client of the protocol.

The server is `bezel mcp` in a process of its own, on localcloud under the real engine. Nothing else is called: what the
tools answer has to be enough for the next step.
"""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import Rehearsal
from tests.support.mcp_server.answers import call_for_json

BEZEL = Path(sys.executable).with_name("bezel")
STACK, LEASED = "l4-qat", "v6e4-moe"
ZONE, NETWORK = "us-east5-a", "machines"
ACCOUNT = "machines@bezel-local.iam.gserviceaccount.com"
SECONDS = 500.0


class Agent:
    """A client that checks each answer against the schema of its tool."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.progress: list[str] = []

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool."""

        async def progress(_progress: float, _total: float | None, message: str | None) -> None:
            self.progress.append(message or "")

        result = await call_for_json(self.client, tool, arguments, progress_callback=progress)
        assert not result.is_error, (tool, result.content)
        answer: dict[str, Any] = result.structured_content
        return answer

    async def change(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Plan, and confirm exactly that plan; its name again where that is asked for."""
        offered = await self.call(tool, **arguments)
        plan = offered["plan"]
        assert plan["refusals"] == []
        again = {} if plan["confirm_name"] is None else {"name": plan["confirm_name"]}
        confirmation = {"token": offered["token"], "operation": tool, "target": plan["target"]}
        done = await self.call("confirm", **confirmation, **again)
        twice = await self.client.call_tool("confirm", {**confirmation, **again})
        assert twice.is_error
        assert done["verdict"] == "done", done
        return done


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_agent_finds_leases_deploys_asks_measures_scales_and_destroys(rehearsal: Rehearsal) -> None:
    rehearsal.set("cost", None)
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    assert rehearsal.local("preview", STACK).code == 0  # starts the cloud, with the weights in their bucket
    prepare(rehearsal)
    environ = os.environ | rehearsal.variables() | warm_python.variables(rehearsal.folder)
    command = StdioServerParameters(
        command=str(BEZEL), args=["mcp", "--folder", str(rehearsal.folder)], env=environ, cwd=rehearsal.folder
    )

    async def story() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(stdio_client(command, sys.stderr)) as client:
                agent = Agent(client)
                await find(agent)
                await lease(agent)
                await deploy(agent)
                await ask(agent)
                await measure(agent)
                await scale(agent, rehearsal)
                await destroy(agent)

    anyio.run(story)
    assert (rehearsal.folder / "story.json").is_file()


def prepare(rehearsal: Rehearsal) -> None:
    """What somebody has set up for machines without a stack: APIs, a network, and an account for them."""
    project = "projects/bezel-local"
    network = f"{project}/global/networks/{NETWORK}"
    subnetwork = {"name": "machines", "network": network, "ipCidrRange": "10.64.0.0/20", "privateIpGoogleAccess": True}
    with rehearsal.api() as api:
        for name in ("tpu", "compute", "iam"):
            path = f"/serviceusage/v1/{project}/services/{name}.googleapis.com:enable"
            assert api.post(path, json={}).is_success
        for path, body in (
            (f"/compute/v1/{project}/global/networks", {"name": NETWORK, "autoCreateSubnetworks": False}),
            (f"/compute/v1/{project}/regions/{ZONE.rpartition('-')[0]}/subnetworks", subnetwork),
            (f"/iam/v1/{project}/serviceAccounts", {"accountId": ACCOUNT.partition("@")[0]}),
        ):
            answer = api.post(path, json=body)
            assert answer.is_success, answer.text


async def find(agent: Agent) -> None:
    offers = (await agent.call("zones", stack=LEASED))["zones"]
    usable = [each for each in offers if each["hardware"] == "yes" and each["provisioning_model"] == "accepted"]
    assert usable
    assert all(each["usd_per_hour"] is None or float(each["usd_per_hour"]) > 0 for each in usable)
    assert ZONE in {each["zone"] for each in usable}
    assert (await agent.call("tpu_list", zone=[ZONE]))["leases"] == []
    assert float((await agent.call("cost", stack=STACK))["usd_per_hour"]) > 0


async def lease(agent: Agent) -> None:
    lease_arguments = {
        "name": "dev-one",
        "hardware": "v6e-1",
        "zone": [ZONE],
        "network": NETWORK,
        "service_account": ACCOUNT,
    }
    await agent.change("tpu_create", **lease_arguments, duration="1h")
    (listed,) = (await agent.call("tpu_list", zone=[ZONE]))["leases"]
    assert (listed["name"], listed["max_run_seconds"]) == ("dev-one", 3600)
    (described,) = (await agent.call("tpu_describe", name="dev-one", zone=[ZONE]))["leases"]
    assert described["lease"]["zone"] == ZONE
    await agent.change("tpu_delete", name="dev-one", zone=[ZONE])
    assert (await agent.call("tpu_list", zone=[ZONE]))["leases"] == []


async def deploy(agent: Agent) -> None:
    done = await agent.change("deploy", stack=STACK)
    assert done["url"]
    assert any("created" in line or "creating" in line for line in agent.progress)
    again = await agent.call("deploy", stack=STACK)
    assert (again["token"], again["plan"]["is_empty"]) == (None, True)
    (status,) = (await agent.call("status", stack=STACK))["stacks"]
    assert status["verdict"] == "ready"
    assert (await agent.call("endpoint", stack=STACK))["url"] == done["url"]


async def ask(agent: Agent) -> None:
    answer = await agent.call("query", stack=STACK, prompt="Name a colour.", max_tokens=8, stats=True, wake=True)
    assert (answer["simulated"], answer["finish_reason"] in {"stop", "length"}) == (True, True)
    assert answer["stats"]["output_tokens"] > 0
    assert answer["stats"]["ttft_seconds"] > 0
    models = await agent.call("models", stack=STACK, wake=True)
    assert models["models"]
    metrics = await agent.call("metrics", stack=STACK, wake=True)
    values = {each["name"]: each["value"] for each in metrics["figures"]}
    assert values["ttft"] is not None
    memory = await agent.call("memory", stack=STACK, wake=True)
    assert memory["figures"]
    logs = await agent.call("logs", stack=STACK, limit=50)
    assert logs["lines"]
    advice = await agent.call("advise", stack=STACK, wake=True, max_tokens=16)
    assert advice["advice"]["standing"] == "simulated"
    assert "simulated" in advice["advice"]["explanation"]


async def measure(agent: Agent) -> None:
    load = {"users": 2, "requests": 6, "output_tokens": 8}
    result = await agent.call("bench_run", stack=STACK, out="story.json", wake=True, **load)
    assert (result["nature"], result["cells"][0]["requests"]) == ("simulated", 6)
    report = await agent.call("bench_report", results=["story.json"])
    assert report["nature"] == "simulated"


async def scale(agent: Agent, rehearsal: Rehearsal) -> None:
    file = rehearsal.folder / f"Pulumi.{STACK}.yaml"
    offered = await agent.call("scale", stack=STACK, max=2)
    assert "max_instances: 2" in offered["plan"]["file_change"]
    assert "max_instances: 2" not in file.read_text()
    await agent.change("scale", stack=STACK, max=2)
    assert "max_instances: 2" in file.read_text()
    with rehearsal.api() as api:
        service = api.get(f"/run/v2/projects/bezel-local/locations/us-east4/services/bezel-{STACK}").json()
    assert service["template"]["scaling"]["maxInstanceCount"] == 2


async def destroy(agent: Agent) -> None:
    offered = await agent.call("destroy", stack=STACK)
    refused = await agent.client.call_tool(
        "confirm", {"token": offered["token"], "operation": "destroy", "target": STACK}
    )
    assert refused.is_error  # it has to be named again
    await agent.change("destroy", stack=STACK)
    gone = await call_for_json(agent.client, "status", {"stack": STACK})
    assert gone.is_error or gone.structured_content["stacks"][0]["verdict"] != "ready"
