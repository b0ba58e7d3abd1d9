"""Stacks of leased machines under the real engine: asked for, moved on, booted, behind a gateway, given back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from bezel.engine.project.project import Project
from bezel.planner.base.hardware import find_leased_hardware
from bezel_localcloud.core.files.locks import using
from tests.support.e2e.rehearsal import ROOT, Rehearsal, add_version, make_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Project(ROOT)
STACKS = [name for name in PROJECT.stacks() if find_leased_hardware(str(PROJECT.configuration(name)["accelerator"]))]
PACKS = [word for pack in ("hardware_cost", "security") for word in ("--policy-pack", f"policies/{pack}")]
OWN_PRICE = {
    "item": "g2-standard-96",
    "region": "us-central1",
    "usd_per_unit": 0.0012,
    "as_of": "2026-11",
    "source": "a test's own",
}
SHORT = {"requests": 4, "output_tokens": 8, "prompt_tokens": 32}
PLANTED = "hf_PlantedValueThatMustNotAppear"
# What a lease is made of; the bucket with the weights belongs to nobody.
MADE = {
    "queuedResources",
    "nodes",
    "instances",
    "networks",
    "subnetworks",
    "firewalls",
    "routers",
    "services",
    "accounts",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """One cloud for all of them: a lease of one must not be another's."""
    folder = tmp_path_factory.mktemp("leases")
    made = Rehearsal.new(folder / "checkout", folder / "cloud")
    for stack in STACKS:
        for key, value in SHORT.items():
            made.set(f"smoke.{key}", value, stack)
    yield made
    made.stop_cloud()


def deploy(checkout: Rehearsal, stack: str, *options: str) -> tuple[str, dict[str, Any]]:
    made = checkout.local("up", stack, *options)
    assert made.code == 0, made.text
    return made.text, checkout.outputs(stack)


def destroy(checkout: Rehearsal, stack: str) -> None:
    """The stack is gone, whatever else is there."""
    with using(checkout.cloud):  # it goes on, so that what is left can be asked for
        gone = checkout.local("down", stack)
        assert gone.code == 0, gone.text
    name = f"bezel-{stack}"
    left = {kind: [one for one in names if name in str(one)] for kind, names in checkout.exists().items()}
    assert not {kind: names for kind, names in left.items() if names and kind in MADE}, left


@pytest.mark.wide
def test_a_lease_moves_on_serves_behind_its_gateway_and_leaves_nothing(checkout: Rehearsal) -> None:
    text, outputs = deploy(checkout, "v6e4-moe")
    assert text.index("europe-west4-a: requested ") < text.index("us-east5-a: requested ")
    for line in ("then us-east5-a", "us-east5-a: ACTIVE", "healthy running"):
        assert line in text, line
    assert "5.4000 USD per hour and 21.60 USD for 4 h of accelerators; with the gateway at most 5.5818 USD" in text
    (lease,) = outputs["leases"].values()
    assert (lease["state"], lease["zone"]) == ("active", "us-east5-a")
    assert lease["cost"]["at_end_usd"] == 21.6
    assert outputs["smoke"]["verdict"]["ok"] is True
    assert outputs["smoke"]["figures"]["completed"] == 4
    assert outputs["plan"]["cost"]["usd_per_lease"] == 21.6
    (queued,) = checkout.exists()["queuedResources"]
    assert "/us-east5-a/" in queued

    body = {"model": outputs["model"], "prompt": "Hello", "max_tokens": 4}
    url = f"{outputs['url']}/v1/completions"
    assert httpx.post(url, json=body, timeout=30).status_code in {401, 403}
    token = {"Authorization": f"Bearer {checkout.token(outputs['url'])}"}
    assert httpx.post(url, json=body, headers=token, timeout=60).status_code == 200
    assert httpx.post(f"{outputs['url']}/invocations", json=body, headers=token, timeout=30).status_code == 404

    unchanged = checkout.local("preview", "v6e4-moe", "--", "--expect-no-changes")
    assert unchanged.code == 0, unchanged.text
    destroy(checkout, "v6e4-moe")


# Judged in `prod`, and three leases at a time; the others are like these and that of the faults.
SOME = ("v6e8-31b", "v6e1-fleet")


@pytest.mark.wide
@pytest.mark.parametrize(
    "stack",
    [
        pytest.param(stack, marks=() if stack in SOME else pytest.mark.long)
        for stack in STACKS
        if stack.startswith("v6e") and stack != "v6e4-moe"
    ],
)
def test_a_lease_stack_is_judged_by_both_packs_and_serves(checkout: Rehearsal, stack: str) -> None:
    if stack == "v6e8-31b":  # of `prod`, which is protected
        checkout.set("deletion_protection", "never", stack)
    # One of each environment is enough: a preview of the same resources says the same.
    judged = stack in {"v6e1-12b", "v6e8-31b"}
    text, outputs = deploy(checkout, stack, *(("--", *PACKS) if judged else ()))
    assert ("Previewing update" in text) is judged
    assert {lease["state"] for lease in outputs["leases"].values()} == {"active"}
    assert outputs["smoke"]["verdict"]["ok"] is True
    if stack == "v6e1-fleet":
        assert len(outputs["leases"]) == 3
        fewer_change_only_what_must(checkout, stack)
    destroy(checkout, stack)


def fewer_change_only_what_must(checkout: Rehearsal, stack: str) -> None:
    """Two of three machines stay the very ones that they were."""
    before = dict(zip(checkout.exists()["nodes"], _creation_times(checkout), strict=True))
    checkout.set("lease.count", 2, stack)
    _, outputs = deploy(checkout, stack)
    assert len(outputs["leases"]) == 2
    after = dict(zip(checkout.exists()["nodes"], _creation_times(checkout), strict=True))
    assert len(after) == 2
    assert after.items() <= before.items()


def _creation_times(checkout: Rehearsal) -> list[str]:
    with checkout.api() as api:
        return [api.get(f"/tpu/v2alpha1/{node}").json()["createTime"] for node in checkout.exists()["nodes"]]


@pytest.mark.wide
def test_eight_gpus_are_refused_without_a_price_and_leased_with_one(checkout: Rehearsal) -> None:
    refused = checkout.local("up", "gce-l4x8")
    assert refused.code == 1
    assert "compute, g2-standard-96, us-central1, spot" in refused.text
    checkout.set("cost.prices", [OWN_PRICE], "gce-l4x8")
    checkout.set("deletion_protection", "never", "gce-l4x8")
    _, outputs = deploy(checkout, "gce-l4x8")
    assert [lease["zone"] for lease in outputs["leases"].values()] == ["us-central1-a"]
    assert outputs["smoke"]["verdict"]["ok"] is True
    destroy(checkout, "gce-l4x8")


@pytest.mark.wide
def test_a_chip_is_leased_with_the_secret_in_no_file_and_no_text(checkout: Rehearsal) -> None:
    """The other control plane, with a way to the internet for Docker, and a token for the hub."""
    stack = "v6e1-12b"
    file = checkout.folder / f"Pulumi.{stack}.yaml"
    stack_text = file.read_text()
    checkout.set("lease.back_end", "flex_start_vm", stack)
    checkout.set("network", {"nat": True}, stack)
    checkout.set("secrets", {"HF_TOKEN": "hf-token"}, stack)
    checkout.start_cloud()
    with checkout.api() as api:
        make_secret(api, "hf-token")
        add_version(api, "hf-token", PLANTED)
    text, outputs = deploy(checkout, stack)
    assert checkout.exists()["instances"]
    assert outputs["smoke"]["verdict"]["ok"] is True
    with checkout.api() as api:
        (instance,) = checkout.exists()["instances"]
        console = api.get(f"/compute/v1/{instance}/serialPort").json()["contents"]
        metadata = json.dumps(api.get(f"/compute/v1/{instance}").json())
    assert "healthy done" in console
    texts = {"up": text, "outputs": json.dumps(outputs), "console": console, "metadata": metadata}
    destroy(checkout, stack)
    file.write_text(stack_text)  # for the tests beside this one
    assert checkout.local("stop").code == 0
    for kept in checkout.cloud.rglob("*"):
        # Secret Manager itself has to keep it.
        if kept.is_file() and not kept.name.startswith("cloud.db"):
            texts[str(kept)] = kept.read_text(errors="replace")
    assert len(texts) > 20
    assert [name for name, content in texts.items() if PLANTED in content] == []
