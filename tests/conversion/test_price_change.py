"""Price of what serves today, and of the stack in its place; an unknown price is unknown."""

import pytest

from bezel.conversion.conversion import convert
from bezel.planner.base.money import Priced, Unpriced, round_usd

COMMAND = (
    "gcloud run deploy chat --image vllm/vllm-openai:v0.32.0 --region us-east4 --gpu 1 --gpu-type nvidia-l4 --cpu 8"
    " --memory 32Gi --max-instances 2 --min-instances 1 --no-gpu-zonal-redundancy --args=--model=google/gemma-4-E2B-it"
)


def before(command: str) -> tuple[str, str, str]:
    prices = convert(command, "FILE").prices.before
    amounts = (prices.hourly, prices.monthly_without_traffic, prices.hourly_at_max)
    texts = [round_usd(each.usd, 2) if isinstance(each, Priced) else each.reason for each in amounts]
    return texts[0], texts[1], texts[2]


def test_today_is_priced_by_the_services_own_hardware_and_instances() -> None:
    assert before(COMMAND) == ("1.42", "1037.27", "2.84")
    assert before(COMMAND.replace("--min-instances 1", ""))[1] == "0.00"
    assert before(COMMAND.replace(" --no-gpu-zonal-redundancy", ""))[0] > "1.42"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (" --cpu 8", "", "the input does not say its CPU"),
        (" --memory 32Gi", "", "the input does not say its memory"),
        ("--gpu-type nvidia-l4", "--gpu-type nvidia-t4", "no price of nvidia-t4 is known"),
        ("us-east4", "us-west9", "us-west9"),
    ],
)
def test_a_price_that_is_not_known_is_unknown(old: str, new: str, reason: str) -> None:
    made = convert(COMMAND.replace(old, new), "FILE")
    assert isinstance(made.prices.before.hourly, Unpriced)
    assert reason in made.prices.before.hourly.reason
    assert made.prices.before.as_output()["usd_per_hour"] == "unknown"
    assert any(line.startswith("unknown: ") for line in made.prices.lines())


def test_no_maximum_leaves_the_price_of_all_instances_unknown() -> None:
    hourly, _, at_max = before(COMMAND.replace("--max-instances 2", ""))
    assert hourly == "1.42"
    assert at_max == "the input sets no maximum of instances"


def test_a_plan_with_objections_has_a_price() -> None:
    objected = convert(COMMAND.replace("E2B-it", "31B-it"), "FILE")
    assert objected.plan is None
    assert objected.prices.after == objected.prices.before
    unknown = convert(COMMAND.replace("nvidia-l4", "nvidia-h100"), "FILE")
    assert isinstance(unknown.prices.after.hourly, Unpriced)


def test_the_limits_of_the_stack_file_are_what_it_costs() -> None:
    cost = convert(COMMAND, "FILE").converted.settings["cost"]
    assert cost == {"max_hourly_usd": 2.85, "max_idle_hourly_usd": 1.43}
    assert (
        "max_idle_hourly_usd"
        not in convert(COMMAND.replace("--min-instances 1", ""), "FILE").converted.settings["cost"]
    )
