"""The weekly reading of the price list."""

from bezel.gitops.prices.pull_request import BRANCH
from tests.support.gitops import team as teams

GPU = "NVIDIA L4 GPU with no zonal redundancy in us-east4"


def test_another_price_is_a_pull_request(team):
    forge, cloud = team.forge, team.pipeline.cloud
    fault = {"kind": "price-changed", "parameters": {"sku": GPU, "factor": 2}}
    assert cloud.post("/localcloud/faults", fault).is_success
    run = team.run_workflow("prices.yml")
    assert run["conclusion"] == "success", team.log(run)
    (pull,) = [pull for pull in forge.repository("GET", "/pulls?state=open") if pull["head"]["ref"] == BRANCH]
    assert "0.0001867" in pull["body"]
    assert "0.0003734" in pull["body"]
    assert f"- {teams.STACK}: 2.0930 USD/h" in pull["body"]
    assert cloud.delete("/localcloud/faults").is_success
