"""After a kill: what the cloud has made is taken in, what it has not is dropped, and nothing else is touched."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.events.open_changes import OpenChange, unfinished_changes
from bezel.engine.events.reader import read_events
from bezel.engine.recover.plan import State
from bezel.engine.recover.recover import Recovered, reconcile
from bezel.engine.run.record import LastRun
from bezel_base.errors import UserError

URN = "urn:pulumi:one::bezel::gcp:cloudrunv2/service:Service::service"
ACCOUNT = "urn:pulumi:one::bezel::gcp:serviceaccount/account:Account::account"
MODEL = "urn:pulumi:one::bezel::pulumi-python:dynamic/components:ModelFiles::model"
VERSION = "urn:pulumi:one::bezel::gcp:secretmanager/secretVersion:SecretVersion::version"
ID = "projects/acme/locations/us-east4/services/llm"
NEW = "projects/acme/locations/europe-west4/services/llm"
INPUTS = {"project": "acme", "location": "us-east4", "name": "llm"}


def resource(urn: str = URN, **others: Any) -> dict[str, Any]:
    return {"urn": urn, "custom": True, "type": urn.split("::")[2], "inputs": INPUTS} | others


class Engine:
    """A stack's state and a cloud, with the three commands that a recovery needs as the engine has them."""

    def __init__(self, resources: Sequence[State], pending: Sequence[tuple[str, State]], cloud: set[str]) -> None:
        operations = [{"type": kind, "resource": item} for kind, item in pending]
        self.state: State = {"version": 3, "deployment": {"resources": [*resources], "pending_operations": operations}}
        self.cloud = cloud
        self.commands: list[str] = []
        self.fails = False

    def __call__(self, arguments: Sequence[str]) -> str:
        command = " ".join(arguments[:2])
        self.commands.append(arguments[0] if arguments[0] == "refresh" else command)
        if command == "stack export":
            return json.dumps(self.state)
        if command == "stack import":
            self.state = json.loads(Path(arguments[3]).read_text())
            return ""
        if self.fails:
            raise UserError("the cloud does not answer")
        targets = [arguments[place + 1] for place, word in enumerate(arguments) if word == "--target"]
        resources = self.state["deployment"]["resources"]
        self.state["deployment"]["resources"] = [
            item for item in resources if item["urn"] not in targets or item["id"] in self.cloud or item.get("delete")
        ]
        return ""

    def recover(self, *changes: OpenChange, remembered: list[list[OpenChange]] | None = None) -> Recovered:
        kept = [] if remembered is None else remembered
        return reconcile(
            self, "acme", lambda _line: None, changes, lambda remembered_changes: kept.append([*remembered_changes])
        )

    def contents(self) -> list[tuple[str, str, bool]]:
        return [(item["urn"], item["id"], bool(item.get("delete"))) for item in self.state["deployment"]["resources"]]


def test_a_create_that_the_cloud_has_made_is_taken_in() -> None:
    """A create that the cloud has made is taken in with its dependencies."""
    engine = Engine([resource(ACCOUNT, id="a")], [("creating", resource(dependencies=[ACCOUNT]))], {"a", ID})
    lost_track = OpenChange(URN, "creating", resource())
    recovered = engine.recover(lost_track)
    assert (recovered.adopted, recovered.checked, recovered.cut_off) == ((URN,), 1, True)
    taken = engine.state["deployment"]["resources"][-1]
    assert (taken["id"], taken["dependencies"]) == (ID, [ACCOUNT])
    assert taken["outputs"] == INPUTS | {"id": ID}
    assert "pending_operations" not in engine.state["deployment"]


def test_a_create_whose_plugin_died_is_taken_in_too() -> None:
    recovered = Engine([], [], {ID}).recover(OpenChange(URN, "creating", resource()))
    assert (recovered.adopted, recovered.cut_off) == ((URN,), False)


def test_a_create_whose_secret_the_log_masks_is_not_written_into_the_state() -> None:
    masked = {**INPUTS, "env": [{"4dabf18193072939515e22adb298388d": "x", "ciphertext": "[secret]"}]}
    engine = Engine([], [], {ID})
    assert engine.recover(OpenChange(URN, "creating", resource(inputs=masked))).adopted == ()
    assert engine.contents() == []
    encrypted = {**INPUTS, "env": [{"4dabf18193072939515e22adb298388d": "x", "ciphertext": "v1:abc"}]}
    assert Engine([], [("creating", resource(inputs=encrypted))], {ID}).recover().adopted == (URN,)


def test_a_create_that_the_cloud_does_not_have_is_dropped() -> None:
    """A create that the cloud knows nothing of is dropped and remembered."""
    engine = Engine([], [("creating", resource())], set())
    remembered: list[list[OpenChange]] = []
    recovered = engine.recover(remembered=remembered)
    assert engine.contents() == []
    assert [change.urn for change in recovered.missing] == [URN]
    assert [[change.urn for change in kept] for kept in remembered] == [[URN], [URN]]


def test_what_was_being_changed_or_deleted_is_read_again() -> None:
    """What was being changed or deleted is read again and the rest is left alone."""
    there, gone, other = (resource(f"{ACCOUNT}{name}", id=name) for name in "abc")
    engine = Engine([there, gone, other], [("updating", there), ("deleting", gone)], {"a"})
    assert engine.recover().adopted == ()
    assert [name for _, name, _ in engine.contents()] == ["a", "c"]


def test_a_state_in_which_nothing_is_open_is_only_looked_at() -> None:
    engine = Engine([resource(id=ID)], [], set())
    assert engine.recover() == Recovered()
    assert engine.commands == ["stack export"]


@pytest.mark.parametrize("kind", ["creating", "updating", "deleting"])
def test_what_makes_nothing_is_left_to_the_next_up(kind: str) -> None:
    """What makes nothing is left to the next up without asking the cloud."""
    there = [resource(MODEL, id="m")] if kind != "creating" else []
    engine = Engine(there, [(kind, resource(MODEL))], set())
    engine.recover()
    assert engine.state["deployment"]["resources"] == there
    assert "refresh" not in engine.commands


def test_a_resource_that_cannot_be_found_from_here_stops_everything() -> None:
    """A resource that cannot be found from here stops everything with the way out."""
    engine = Engine([], [("creating", resource(VERSION, inputs={"secret": "s"})), ("creating", resource())], {ID})
    with pytest.raises(UserError, match=r"SecretVersion version\n   Repair: .*--clear-pending-creates"):
        engine.recover()
    assert engine.commands == ["stack export"]
    # Only told by a log, the engine holds nothing open that would be lost: the rest goes on.
    assert Engine([], [("creating", resource())], {ID}).recover(
        OpenChange(VERSION, "creating", resource(VERSION, inputs={}))
    ).adopted == (URN,)


def test_a_version_of_a_secret_that_a_stack_makes_is_made_again() -> None:
    """Nothing names the version of a killed run, and it goes with its secret; one of a user's secret is asked about."""
    inputs = {"secret": "projects/acme/secrets/bezel-stack-llm-door-program"}
    engine = Engine([], [("creating", resource(VERSION, inputs=inputs)), ("creating", resource())], {ID})
    assert engine.recover().adopted == (URN,)


def test_what_a_destroy_has_taken_away_meanwhile_is_named_by_nothing() -> None:
    engine = Engine([], [("creating", resource(dependencies=[ACCOUNT], propertyDependencies={"x": [ACCOUNT]}))], {ID})
    assert engine.recover().adopted == (URN,)
    taken = engine.state["deployment"]["resources"][0]
    assert (taken["dependencies"], taken["propertyDependencies"]) == ([], {"x": []})
    for owner in ({"parent": ACCOUNT}, {"provider": f"{ACCOUNT}::1234"}):
        engine, lines = Engine([], [("creating", resource(**owner))], {ID}), list[str]()
        assert reconcile(engine, "acme", lines.append).adopted == ()
        assert engine.contents() == []
        assert f"delete {ID} by hand" in lines[0]
        owned = Engine([resource(ACCOUNT, id="1234")], [("creating", resource(**owner))], {ID, "1234"})
        assert owned.recover().adopted == (URN,)


def test_a_replacement_takes_the_place_of_the_old_resource_which_is_to_go() -> None:
    new = resource(inputs=INPUTS | {"location": "europe-west4"})
    engine = Engine([resource(id=ID)], [("creating", new)], {ID, NEW})
    assert engine.recover().adopted == (URN,)
    assert engine.contents() == [(URN, NEW, False), (URN, ID, True)]


@pytest.mark.parametrize(("cloud", "contents"), [({ID}, [(URN, ID, False)]), (set(), [])])
def test_a_replacement_after_the_deletion_of_the_old_one_is_the_resource(
    cloud: set[str], contents: list[tuple[str, str, bool]]
) -> None:
    """A replacement after the old one was deleted is the resource from now on."""
    engine = Engine([resource(id=ID, pendingReplacement=True)], [("creating", resource())], cloud)
    engine.recover()
    assert engine.contents() == contents
    assert not any(item.get("pendingReplacement") for item in engine.state["deployment"]["resources"])


def test_a_replacement_that_was_not_made_leaves_the_old_resource() -> None:
    """A replacement that was not made leaves the old resource what it was."""
    new = resource(inputs=INPUTS | {"location": "europe-west4"})
    engine = Engine([resource(id=ID)], [("creating", new)], {ID})
    assert engine.recover().adopted == ()
    assert engine.contents() == [(URN, ID, False)]


def test_a_recovery_that_was_cut_off_is_settled_by_the_next_one() -> None:
    engine = Engine([], [("creating", resource())], set())
    engine.fails = True
    remembered: list[list[OpenChange]] = []
    with pytest.raises(UserError):
        engine.recover(remembered=remembered)
    assert engine.contents() == [(URN, ID, False)]
    engine.fails = False
    engine.recover(*remembered[-1])
    assert engine.contents() == []


def event(kind: str, urn: str = URN, **others: Any) -> str:
    if kind == "diagnosticEvent":
        return json.dumps({kind: {"urn": urn, "severity": "error"} | others})
    op = others.pop("op", "create")
    side = "old" if op.startswith("delete") else "new"
    metadata = {"op": op, "urn": urn, "type": urn.split("::")[2], side: resource(urn)}
    return json.dumps({kind: {"metadata": metadata} | others})


BEGUN = event("resourcePreEvent")
FAILED = event("resOpFailedEvent", status=0)
LOST = event("diagnosticEvent", message="http://x does not answer (Refused)")
# An update that failed, whose resource the state keeps; and a check that finds another service than was declared.
UPDATE = event("resourcePreEvent", op="update")
REFUSED = event("diagnosticEvent", message="Error updating Service: googleapi: Error 400: no")
UNENDED = event("diagnosticEvent", message="timeout while waiting for state to become 'done: true' (timeout: 8s)")
UNCONFIRMED = event("diagnosticEvent", message="timeout while waiting for state to become 'success' (timeout: 8s)")
UNREAD = event("diagnosticEvent", message="Error waiting for Creating X: error while retrieving operation: googleapi: ")
KEPT = event("resOpFailedEvent", status=1)
CHECK = "urn:pulumi:one::bezel::pulumi-python:dynamic/smoke:HealthCheck::health"
SAME = event("resourcePreEvent", op="same")
HEALTH = event("resourcePreEvent", CHECK, op="update")
ANOTHER = event("diagnosticEvent", CHECK, message="repair: Run `pulumi up --refresh`")
HEALTH_FAILED = event("resOpFailedEvent", CHECK, status=2)


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ([BEGUN], ["creating"]),
        ([BEGUN, '{"cut'], ["creating"]),
        ([event("resourcePreEvent", op="update")], ["updating"]),
        ([event("resourcePreEvent", op="delete-replaced")], ["deleting"]),
        ([BEGUN, event("diagnosticEvent", message="error reading from server: EOF"), FAILED], ["creating"]),
        ([BEGUN, LOST, FAILED], ["creating"]),
        ([event("resourcePreEvent", op="delete"), LOST, event("resOpFailedEvent", status=2)], ["deleting"]),
        ([BEGUN, event("resOutputsEvent")], []),
        ([BEGUN, event("diagnosticEvent", message="googleapi: Error 403: no"), FAILED], []),
        ([BEGUN, LOST, event("resOpFailedEvent", status=1)], []),
        ([UPDATE, REFUSED, KEPT], ["updating"]),
        ([UPDATE, LOST, KEPT], ["updating"]),
        ([UPDATE, event("diagnosticEvent", message="Error code 9, message: not ready"), KEPT], []),
        ([UPDATE, UNENDED, KEPT], []),
        ([UPDATE, UNCONFIRMED, KEPT], ["updating"]),
        (
            [BEGUN, event("diagnosticEvent", message='Error creating Secret: Post "http://x": EOF'), FAILED],
            ["creating"],
        ),
        ([BEGUN, UNCONFIRMED, FAILED], ["creating"]),
        ([BEGUN, UNREAD, FAILED], ["creating"]),
        ([SAME, HEALTH, ANOTHER, HEALTH_FAILED], ["updating"]),
        ([SAME, event("resOutputsEvent"), HEALTH, ANOTHER, HEALTH_FAILED], ["updating"]),
        ([UPDATE, event("resOutputsEvent"), HEALTH, ANOTHER, HEALTH_FAILED], ["updating"]),
        ([SAME, HEALTH, event("diagnosticEvent", CHECK, message="no answer"), HEALTH_FAILED], []),
        ([event("resourcePreEvent", op="same")], []),
        ([event("resourcePreEvent", MODEL)], []),
        ([], []),
    ],
)
def test_a_log_tells_what_was_begun_and_never_heard_of_again(
    tmp_path: Path, lines: list[str], kinds: list[str]
) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text("\n".join(lines))
    assert [change.kind for change in unfinished_changes(read_events(log))] == kinds


def test_what_a_service_that_is_gone_took_along_is_gone_from_the_state_too() -> None:
    member = URN.replace("service:Service", "serviceIamMember:ServiceIamMember")
    here = [resource(id=ID), resource(member, id="m", dependencies=[URN]), resource(MODEL, id="c", dependencies=[URN])]
    engine = Engine([*here, resource(ACCOUNT, id="a")], [], set())
    reconcile(engine, "acme", lambda _line: None, [OpenChange(URN, "updating", resource(), read=True)])
    # A check is looked at by nobody: nothing of it is in the cloud.
    assert [name for _, name, _ in engine.contents()] == ["c", "a"]


EXISTS = event("diagnosticEvent", message="googleapi: Error 409: Resource already exists.")


def run(last: LastRun, *lines: str) -> None:
    """A run that fails, with this log."""
    last.begin()
    last.events.write_text("\n".join(lines))


def test_what_exists_already_is_open_only_on_request(tmp_path: Path) -> None:
    """What exists already is open only when asked for or looked for before."""
    last = LastRun(tmp_path / "run")
    run(last, BEGUN, EXISTS, FAILED)
    assert last.open_changes() == []
    assert [change.urn for change in last.refused_creates()] == [URN]
    assert [change.urn for change in last.open_changes(existing=True)] == [URN]
    looked_for = OpenChange(URN, "creating", resource())
    last.remember([looked_for])
    last.events.write_text(f"{BEGUN}\n{EXISTS}\n{FAILED}")
    assert [change.urn for change in last.open_changes()] == [URN, URN]


ENDED = event("resOutputsEvent")


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ([BEGUN, ENDED], ["creating"]),
        ([event("resourcePreEvent", op="delete"), ENDED], ["deleting"]),
        ([BEGUN, event("resOpFailedEvent", status=1)], ["creating"]),
        ([BEGUN, LOST, FAILED, ENDED], ["creating"]),
        ([BEGUN, event("diagnosticEvent", message="googleapi: Error 403: no"), FAILED], []),
        ([event("resourcePreEvent", op="same"), ENDED], []),
        ([event("resourcePreEvent", MODEL), event("resOutputsEvent", MODEL)], []),
    ],
)
def test_a_state_that_was_set_back_has_lost_what_ended_well_too(
    tmp_path: Path, lines: list[str], kinds: list[str]
) -> None:
    last = LastRun(tmp_path / "run")
    last.begin()
    last.events.write_text("\n".join(lines))
    assert last.note_set_back()
    assert [change.kind for change in last.open_changes()] == kinds


def test_a_state_that_was_set_back_is_looked_into_until_it_is_kept(tmp_path: Path) -> None:
    """A state that was set back is looked into until its changes are kept."""
    last = LastRun(tmp_path / "run")
    assert not last.note_set_back()  # no log tells what is missing
    assert not last.ended_well()
    last.remember([OpenChange(URN, "creating", resource())])
    assert [change.urn for change in last.open_changes()] == [URN]
    assert not last.ended_well()
    last.note_set_back()
    last.forget()
    assert last.ended_well()


def test_what_exists_already_is_known_through_other_runs(tmp_path: Path) -> None:
    """What exists already is known through other runs until it is settled."""
    last = LastRun(tmp_path / "run")
    run(last, BEGUN, EXISTS, FAILED)
    run(last, event("resourcePreEvent", ACCOUNT), event("resOutputsEvent", ACCOUNT))
    run(last)
    last.forget(refused=False)
    assert [change.urn for change in last.refused_creates()] == [URN]
    assert not last.ended_well()
    run(last, BEGUN, event("resOutputsEvent"))
    assert last.refused_creates() == []
    run(last, BEGUN, EXISTS, FAILED)
    last.forget()
    assert last.refused_creates() == []


@pytest.mark.parametrize(
    "message",
    [
        "googleapi: Error 409: The operation was aborted.",
        "googleapi: Error 409: There were concurrent policy changes.",
        "googleapi: Error 400: no\n  | FileExistsError: /tmp/x already exists",
    ],
)
def test_another_conflict_is_not_taken_for_something_that_exists(tmp_path: Path, message: str) -> None:
    last = LastRun(tmp_path / "run")
    run(last, BEGUN, event("diagnosticEvent", message=message), FAILED)
    assert last.refused_creates() == []


def test_what_exists_already_and_is_gone_when_asked_for_is_open_no_more() -> None:
    remembered: list[list[OpenChange]] = []
    engine = Engine([], [], set())
    engine.recover(OpenChange(URN, "creating", resource(), exists=True), remembered=remembered)
    assert [[change.urn for change in kept] for kept in remembered] == [[URN], []]


def test_a_failed_update_is_read_again_without_a_change_by_hand() -> None:
    """A failed update is read again without a change of the state by hand."""
    engine = Engine([resource(id=ID)], [], {ID})
    lines: list[str] = []
    reconcile(engine, "acme", lines.append, [OpenChange(URN, "updating", resource(), read=True)])
    assert engine.commands == ["stack export", "refresh"]
    assert lines == ["the state of 1 resource may differ from the cloud: reading them"]


def test_changes_of_ignored_types_are_dropped_and_the_others_looked_for() -> None:
    kind = VERSION.split("::")[2]
    pending = [("creating", resource(VERSION, inputs={})), ("creating", resource())]
    engine = Engine([], pending, {ID})
    recovered = reconcile(engine, "acme", lambda _line: None, ignored={kind})
    assert (recovered.adopted, recovered.checked) == ((URN,), 1)
    assert "pending_operations" not in engine.state["deployment"]
    with pytest.raises(UserError, match="SecretVersion version"):
        reconcile(Engine([], pending, {ID}), "acme", lambda _line: None)


def test_a_record_is_kept_until_a_run_ends_well(tmp_path: Path) -> None:
    last = LastRun(tmp_path / "run")
    assert last.ended_well()
    last.begin()
    last.events.write_text(BEGUN)
    assert not last.ended_well()
    last.remember([OpenChange(URN, "creating", resource())])
    assert not last.ended_well()
    last.forget()
    assert last.ended_well()
    assert last.open_changes() == []
