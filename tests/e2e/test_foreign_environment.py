"""A user's own cloud account in the environment is of no matter to a run on localcloud, and reaches nobody there."""

import pytest

from tests.support.e2e.rehearsal import SPEED, Rehearsal

TOKEN = "ya29.a-real-token-that-must-stay-here"


@pytest.mark.usefixtures("first_preview")  # which has made the state with a passphrase of its own
def test_a_run_on_localcloud_takes_nothing_of_the_users_own_account(shared_rehearsal: Rehearsal) -> None:
    own_variables = {
        "GOOGLE_PROJECT": "my-project",
        "GOOGLE_CLOUD_PROJECT": "my-project",
        "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "somebody@my-project.iam.gserviceaccount.com",
        "PULUMI_CONFIG_PASSPHRASE": "of another state",
    }
    shared_rehearsal.local("stop")  # the cloud starts with them as well
    place = ("--dir", str(shared_rehearsal.cloud), "--speed", SPEED)
    preview = shared_rehearsal.bezel("local", "preview", "l4-qat", *place, **own_variables)
    assert preview.code == 0, preview.text
    assert "warning" not in preview.text
    assert shared_rehearsal.exists()["buckets"] == ["bezel-local-models"]
    files = [file for file in shared_rehearsal.cloud.rglob("*.*") if file.is_file()]
    assert [file for file in files if TOKEN.encode() in file.read_bytes()] == []
