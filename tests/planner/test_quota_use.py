"""What is used of a quota, by whom it is told, and what follows: a table, and properties that hold for any numbers."""

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.assemble.quota import Need, Quota, Unread, is_short
from bezel.planner.assemble.quota_use import (
    changed_since,
    crowding,
    in_use,
    is_crowded,
    own_most,
    tight_deploy,
    uncounted_warning,
    use_line,
    worst_moment,
)

L4 = Quota("run.googleapis.com", "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion", "GPU")
MEMORY = Quota("run.googleapis.com", "MemAllocPerProjectRegion", "GiB", 1 << 30)
AMOUNTS = st.integers(0, 40)


def need(quota: Quota = L4, instances: int = 1, revisions: int = 1) -> Need:
    return Need(quota, "us-east4", quota.unit, instances, revisions)


@pytest.mark.parametrize(
    ("listed", "counted", "answer"),
    [
        (0, None, None),
        (2, None, (2, False)),
        (0, 0, (0, True)),
        (0, 3, (3, True)),
        (2, 2, (2, True)),
        (2, 3, (3, True)),
        (2, 0, (2, False)),
    ],
)
def test_the_larger_number_is_reported_with_its_source(listed: int, counted: int | None, answer: object) -> None:
    assert in_use(listed, counted) == answer


@pytest.mark.slow
@given(AMOUNTS, st.none() | AMOUNTS)
def test_what_runs_for_certain_counts_and_unknown_is_not_zero(listed: int, counted: int | None) -> None:
    answer = in_use(listed, counted)
    assert (answer is None) is (counted is None and listed == 0)
    if answer is not None:
        assert answer[0] == max(listed, counted or 0)
        assert answer[1] is (counted is not None and counted >= listed)


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 2), AMOUNTS, st.none() | AMOUNTS, AMOUNTS)
def test_a_quota_is_crowded_only_by_what_cannot_be_ones_own(
    instances: int, revisions: int, allowed: int, counted: int | None, own_amount: int
) -> None:
    wanted = need(instances=instances, revisions=revisions)
    crowded = is_crowded(wanted, allowed, counted, own_amount)
    if counted is None:
        assert not crowded
        return
    assert crowded is is_short(wanted, allowed, max(0, counted - own_amount * revisions))
    if counted <= own_amount:
        assert crowded is is_short(wanted, allowed)
    if crowded:
        assert is_crowded(wanted, allowed, counted + 1, own_amount)
        assert not is_crowded(wanted, wanted.amount + counted, counted, own_amount)
    assert not is_crowded(wanted, math.inf, counted, own_amount)


def test_what_a_service_may_have_is_its_own() -> None:
    template = {
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        "scaling": {"maxInstanceCount": 3},
    }
    services = [{"name": f"projects/p/locations/l/services/{name}", "template": template} for name in ("own", "other")]
    assert own_most(services, "own", L4.id) == 3
    assert own_most(services, "new", L4.id) == 0


@pytest.mark.parametrize(
    ("quota", "allowed", "listed", "counted", "text"),
    [
        (L4, 3, 0, (1, 40.0), "1 GPU used (Cloud Monitoring, 40s ago), 3 GPUs allowed, 1 GPU needed."),
        (L4, 3, 0, (0, 7260.0), "0 GPUs used (Cloud Monitoring, 2h1m ago), 3 GPUs allowed, 1 GPU needed."),
        (L4, math.inf, 0, (2, 0.2), "2 GPUs used (Cloud Monitoring, 0s ago), no limit, 1 GPU needed."),
        (L4, 3, 0, Unread("403"), "use not known, 3 GPUs allowed, 1 GPU needed."),
        (
            MEMORY,
            40 << 30,
            16 << 30,
            Unread("403"),
            "at least 16 GiB used (by the services that run without traffic), 40 GiB allowed, 1 GiB needed.",
        ),
        (
            L4,
            3,
            2,
            (1, 60.0),
            (
                "at least 2 GPUs used (by the services that run without traffic; less by Cloud Monitoring, 1m ago), "
                "3 GPUs allowed, 1 GPU needed."
            ),
        ),
    ],
)
def test_a_preview_shows_the_use_of_a_quota_its_source_and_its_age(
    quota: Quota, allowed: float, listed: int, counted: tuple[int, float] | Unread, text: str
) -> None:
    assert use_line(need(quota), allowed, listed, counted) == f"{quota.id} in us-east4: {text}"


def test_a_refusal_is_reported_with_its_needs_and_a_missing_value_without() -> None:
    refused = uncounted_warning(
        (need(), need(MEMORY), need()), "p", Unread("403 PERMISSION_DENIED: no", is_denied=True)
    )
    assert f"the use of {L4.id}, {MEMORY.id} (403 PERMISSION_DENIED: no)" in refused
    assert "roles/monitoring.viewer and run `gcloud services enable monitoring.googleapis.com --project=p`" in refused
    absent = uncounted_warning((need(),), "p", Unread("it has no value of the last day"))
    assert absent.endswith("jobs, instances that serve requests and other users are not counted.")


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 2), st.integers(1, 40), st.integers(0, 90_000))
def test_what_is_asked_for_beside_a_crowd_would_hold_it(instances: int, revisions: int, used: int, age: int) -> None:
    wanted = need(instances=instances, revisions=revisions)
    text = crowding(wanted, 1, (used, float(age)), "p")
    value = int(text.partition("request ")[2].partition(":")[0])
    assert not is_crowded(wanted, value, used, 0)
    assert f"--preferred-value={value} " in text


def serving(name: str, *, least: int = 0, most: int = 1) -> dict[str, object]:
    return {
        "name": f"projects/p/locations/us-east4/services/{name}",
        "template": {
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1", "memory": "16Gi"}}}],
            "scaling": {"minInstanceCount": least, "maxInstanceCount": most},
        },
    }


@pytest.mark.parametrize(
    ("wanted", "services", "amount", "most_of_others"),
    [
        pytest.param(need(), [], 1, 0, id="first deploy"),
        pytest.param(need(revisions=2), [], 2, 0, id="first deploy, gated"),
        pytest.param(need(), [serving("own")], 2, 0, id="redeploy"),
        pytest.param(need(), [serving("own", least=1)], 2, 0, id="redeploy, kept instance"),
        pytest.param(need(revisions=2), [serving("own")], 2, 0, id="gated redeploy"),
        pytest.param(need(revisions=2), [serving("own", most=3)], 4, 0, id="gated redeploy, lower maximum"),
        pytest.param(need(instances=3), [serving("own")], 4, 0, id="redeploy, higher maximum"),
        pytest.param(need(), [serving("other", least=1, most=2)], 1, 2, id="second service"),
        pytest.param(need(), [serving("own"), serving("other", most=2)], 2, 2, id="second service, redeploy"),
    ],
)
def test_the_worst_moment_has_both_revisions_and_all_others(
    wanted: Need, services: list[dict[str, object]], amount: int, most_of_others: int
) -> None:
    moment = worst_moment(wanted, services, "own")
    assert (moment.amount, moment.others.max_held) == (amount, most_of_others)
    value = amount + most_of_others
    assert tight_deploy(moment, value, "p") is None
    assert tight_deploy(moment, math.inf, "p") is None
    warning = tight_deploy(moment, value - 1, "p")
    assert warning
    assert f"may need {L4.things(value)} of the {L4.things(value - 1)} allowed" in warning
    assert f"--preferred-value={value} " in warning
    assert ("of the old one" in warning) is (amount > wanted.per_instance * wanted.instances)
    assert ("its other services may take" in warning) is (most_of_others > 0)


def test_maxima_of_services_without_a_gpu_are_no_warning() -> None:
    moment = worst_moment(need(MEMORY), [serving("other", least=1, most=100)], "own")
    assert tight_deploy(moment, 17 << 30, "p") is None
    warning = tight_deploy(moment, 16 << 30, "p")
    assert warning
    assert "its other services hold without traffic" in warning


@pytest.mark.parametrize(
    ("updated", "names"),
    [
        ("2026-11-27T11:55:00Z", ("own",)),
        ("2026-11-27T11:50:00.5Z", ()),
        ("2026-11-27T11:51:00.5Z", ("own",)),
        ("", ()),
        (None, ()),
        ("soon", ()),
        ("2026-11-27T11:55:00", ()),
    ],
)
def test_a_figure_is_older_than_a_later_change(updated: object, names: tuple[str, ...]) -> None:
    now = datetime(2026, 11, 27, 12, tzinfo=UTC)
    assert changed_since([{**serving("own"), "updateTime": updated}], 540.0, now) == names


def test_the_line_says_what_the_figure_leaves_out() -> None:
    moment = worst_moment(need(), [serving("own"), serving("chat", most=2)], "own")
    line = use_line(need(), 3, 0, (2, 540.0), moment=moment, changed=("chat",))
    assert line.endswith(
        "2 GPUs used (Cloud Monitoring, 9m ago, before chat changed), 3 GPUs allowed, 1 GPU needed, 2 GPUs while the "
        "old revision still runs; other services may take 2 GPUs."
    )
