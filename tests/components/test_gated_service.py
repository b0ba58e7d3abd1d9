"""A gated service is declared with what serves now by name, and a direct one with the newest revision."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest

from bezel.diagnosis.revision_traffic import FINGERPRINT
from bezel.outside_changes.rollback import ANNOTATION
from bezel_base.run_facts import VARIABLE, read_facts
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.cloud_run_gpu_service import CloudRunGpuService
from bezel_components.lookups.cloud_run import UnknownServiceError
from tests.components.test_serving_components import service_args
from tests.support.components.fake_cloud_run import LATEST, TAGGED, FakeRun, description, pin, running
from tests.support.components.fake_engine import OUTPUTS, Declarations, declare, has_unknown
from tests.support.rest.fake_google import Answer

TOKEN = "cloudrunv2/service:Service"
pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        yield fake


def declarations_of(*, preview: bool = False, gated: bool = True, **more: Any) -> Declarations:
    args = service_args(gated=gated, **more)
    return declare(lambda: CloudRunGpuService("service", args), preview=preview)


def inputs(**more: Any) -> dict[str, Any]:
    return declarations_of(**more).one(TOKEN).inputs


def test_without_a_gate_the_newest_revision_has_the_traffic(run: FakeRun) -> None:
    """Without a gate the newest revision has the traffic, and without retries nobody is asked."""
    present = inputs(gated=False, retries_failed=False)
    assert present["traffics"] == [{"type": LATEST, "percent": 100}]
    assert "annotations" not in present
    assert run.server.calls == []
    assert inputs(gated=False) == present
    assert [call.method for call in run.server.calls] == ["GET"], "a failed revision is retried unless said otherwise"


def test_a_first_gated_revision_has_the_traffic_and_an_address_of_its_own() -> None:
    assert inputs()["traffics"] == [{"type": LATEST, "percent": 100, "tag": "newest"}]


def test_what_serves_is_named_when_a_new_revision_is_made(run: FakeRun) -> None:
    run.service = description(pin("chat-1"), TAGGED, annotations={FINGERPRINT: "of something else"})
    assert inputs()["traffics"] == [pin("chat-1"), TAGGED]


@pytest.mark.parametrize(("state", "annotations"), [("FAILED", {"bezel-attempt": "chat-2"}), ("SUCCEEDED", None)])
def test_without_a_gate_another_revision_follows_one_that_failed(
    run: FakeRun, state: str, annotations: dict[str, str] | None
) -> None:
    terminal = {"type": "Ready", "state": f"CONDITION_{state}"}
    ready = "chat-1" if state == "FAILED" else "chat-2"
    run.service = description(created="chat-2", ready=ready, terminalCondition=terminal)
    again = inputs(gated=False, retries_failed=True)
    assert again["template"].get("annotations") == annotations
    assert again["traffics"] == [{"type": LATEST, "percent": 100}]


def test_the_attempt_stays_in_the_template_once_it_serves(run: FakeRun) -> None:
    """Else the next deploy would change the template back, and make a revision for nothing."""
    run.service = description(template={"annotations": {"bezel-attempt": "chat-2"}}, created="chat-3", ready="chat-3")
    assert inputs(gated=False, retries_failed=True)["template"]["annotations"] == {"bezel-attempt": "chat-2"}


@pytest.mark.slow
def test_a_service_that_stays_as_it_is_keeps_the_traffic_that_it_has(run: FakeRun) -> None:
    run.service = description(pin("chat-2"), TAGGED, annotations=inputs()["annotations"])
    assert "traffics" not in inputs()
    of_service: dict[str, Any] = {"audiences": ("https://llm.acme.example",), "scheduled_minimum": 1}
    for change in ({"labels": {"a": "b"}}, {"max_instances": 3}, {"timeout_seconds": 60}, of_service):
        assert inputs(**change)["traffics"] == [pin("chat-2"), TAGGED], change
    for key, value in of_service.items():
        # No revision comes of these, and an update without traffic sends that of the state, of before the last move.
        assert inputs(**{key: value})["traffics"] == [pin("chat-2"), TAGGED], key
    run.service = description(pin("chat-2"), TAGGED, annotations=inputs(**of_service)["annotations"])
    assert "traffics" not in inputs(**of_service)


def test_after_a_failed_revision_another_one_is_made_beside_what_serves(run: FakeRun) -> None:
    failed = {"type": "Ready", "state": "CONDITION_FAILED"}
    before = inputs()
    run.service = description(
        pin("chat-1"), TAGGED, created="chat-2", ready="chat-1", terminalCondition=failed,
        annotations=before["annotations"],
    )  # fmt: skip
    again = inputs()
    assert again["template"] == before["template"] | {"annotations": {"bezel-attempt": "chat-2"}}
    assert again["traffics"] == [pin("chat-1"), TAGGED]


ROLLBACK = "chat-1 since 2026-11-27T18:00:00Z from chat-2"
ENDED = "ended 2026-11-27T18:00:00Z, from chat-2"


NEWEST = {"type": LATEST, "percent": 100}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("annotation", "traffic", "declared_as"),
    [
        (ROLLBACK, [NEWEST], ENDED),
        (ENDED, [NEWEST], ENDED),
        ("another user's", [NEWEST], None),
        (None, [pin("chat-1")], None),
    ],
)
def test_without_a_gate_what_is_no_rollback_in_force_is_declared_as_ever(
    run: FakeRun, annotation: str | None, traffic: list[dict[str, Any]], declared_as: str | None
) -> None:
    annotations = {} if annotation is None else {"annotations": {ANNOTATION: annotation}}
    run.service = description(*traffic, **annotations)
    present = inputs(gated=False, retries_failed=True)
    assert present.get("annotations", {}).get(ANNOTATION) == declared_as
    assert present["traffics"] == [NEWEST]


@pytest.mark.slow
def test_without_a_gate_a_rollback_serves_until_the_update_is_done(run: FakeRun) -> None:
    direct: dict[str, Any] = {"gated": False, "retries_failed": True}
    run.service = description(pin("chat-1"), annotations={ANNOTATION: ROLLBACK})
    first = inputs(**direct)
    assert first["traffics"] == [pin("chat-1")]
    assert first["annotations"][ANNOTATION].startswith(f"{ROLLBACK}; deployed ")
    # The run was killed before the move: the same again.
    run.service = description(pin("chat-1"), annotations=first["annotations"])
    assert inputs(**direct) == first
    # After the move, nothing is left to update; a change of the file sends the traffic as ever, and ends the record.
    run.service = description(NEWEST, annotations=first["annotations"])
    again = inputs(**direct)
    assert "traffics" not in again
    assert again["annotations"] == first["annotations"]
    changed = inputs(**direct, max_instances=3)
    assert changed["traffics"] == [NEWEST]
    assert changed["annotations"] == {ANNOTATION: ENDED}
    # Traffic that another user moved after it is sent again.
    run.service = description(pin("chat-2"), annotations=first["annotations"])
    assert inputs(**direct)["traffics"] == [NEWEST]


@pytest.mark.slow
def test_a_gated_deploy_keeps_a_rollback_until_the_checks_passed(run: FakeRun) -> None:
    """A gated deploy keeps what a rollback serves until the checks passed."""
    before = inputs()["annotations"]
    run.service = description(pin("chat-1"), TAGGED, annotations=before | {ANNOTATION: ROLLBACK})
    rolled = inputs()
    assert rolled["traffics"] == [pin("chat-1"), TAGGED]
    assert rolled["annotations"][ANNOTATION] == ROLLBACK
    assert rolled["annotations"][FINGERPRINT] != before[FINGERPRINT]
    # After the move: nothing is left to update.
    run.service = description(pin("chat-2"), TAGGED, annotations=rolled["annotations"])
    again = inputs()
    assert "traffics" not in again
    assert again["annotations"] == rolled["annotations"]


@pytest.mark.slow
def test_a_preview_says_what_becomes_of_a_rollback(
    run: FakeRun, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    monkeypatch.setenv(VARIABLE, str(facts))
    run.service = description(pin("chat-1"), TAGGED, annotations={ANNOTATION: ROLLBACK})
    for gated, sentence in (
        (True, "chat-1 has it until a new revision has passed"),
        (False, "until a new revision is"),
    ):
        caplog.clear()
        declarations_of(preview=True, gated=gated, retries_failed=True)
        assert "rolled back: the traffic of chat is pinned to chat-1 since 2026-11-27T18:00:00Z" in caplog.text
        assert sentence in caplog.text
        (fact,) = read_facts(facts)["rollback"]
        assert fact in caplog.text
        facts.unlink()
    run.service = description(pin("chat-2"), TAGGED, annotations={ANNOTATION: ROLLBACK})
    caplog.clear()
    declarations_of(preview=True)
    assert "rolled back" not in caplog.text
    assert not facts.exists()


def test_who_cannot_ask_what_serves_deploys_nothing(run: FakeRun) -> None:
    run.refusal = 403
    with pytest.raises(UnknownServiceError, match="the service cannot be read") as raised:
        declarations_of()
    assert "roles/run.viewer" in str(raised.value)
    assert isinstance(raised.value, pulumi.RunError)


def test_a_project_that_never_used_cloud_run_has_no_service(run: FakeRun) -> None:
    run.server.routes[:] = [lambda _: _disabled_answer()]
    assert inputs()["traffics"] == [{"type": LATEST, "percent": 100, "tag": "newest"}]


def _disabled_answer() -> Answer:
    text = "Cloud Run Admin API has not been used in project acme-llm before or it is disabled. Enable it."
    return Answer(403, {"error": {"code": 403, "message": text, "status": "PERMISSION_DENIED"}})


def test_the_newest_revision_is_asked_at_the_address_of_its_tag() -> None:
    assert declarations_of().one("CloudRunGpuService").outputs["newest_url"] == "https://newest---chat.example"
    direct = declarations_of(gated=False).one("CloudRunGpuService").outputs
    assert direct["newest_url"] == direct["url"] == "https://chat.example"


def test_where_the_tag_has_no_address_the_service_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `--replace`: the service is new, and its first revision has the traffic."""
    monkeypatch.delitem(OUTPUTS["gcp:cloudrunv2/service:Service"], "trafficStatuses")
    assert declarations_of().one("CloudRunGpuService").outputs["newest_url"] == "https://chat.example"


def test_in_a_first_preview_all_that_a_policy_judges_is_known() -> None:
    assert not has_unknown(declarations_of(preview=True).one(TOKEN).inputs)


def test_a_gate_needs_to_know_the_image() -> None:
    with pytest.raises(ArgumentsError, match="gated requires an image reference"):
        declare(lambda: service_args(gated=True, image=pulumi.Output.from_input("x@sha256:" + "0" * 64)))
