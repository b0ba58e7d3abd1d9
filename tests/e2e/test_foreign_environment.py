"""A user's own cloud account in the environment is of no matter to a run on localcloud, and reaches nobody there."""

from tests.support.e2e.rehearsal import Rehearsal

TOKEN = "ya29.a-real-token-that-must-stay-here"


def test_a_run_on_localcloud_takes_nothing_of_the_users_own_account(rehearsal: Rehearsal) -> None:
    own_variables = {
        "GOOGLE_PROJECT": "my-project",
        "GOOGLE_CLOUD_PROJECT": "my-project",
        "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "somebody@my-project.iam.gserviceaccount.com",
        "PULUMI_CONFIG_PASSPHRASE": "of another state",
    }
    place = ("--dir", str(rehearsal.cloud), "--speed", "2000")
    preview = rehearsal.bezel("local", "preview", "l4-qat", *place, **own_variables)
    assert preview.code == 0, preview.text
    assert "warning" not in preview.text
    assert rehearsal.exists()["buckets"] == ["bezel-local-models"]
    # The state opens without them, too.
    assert rehearsal.local("preview", "l4-qat").code == 0
    assert [
        file for file in rehearsal.cloud.rglob("*.*") if file.is_file() and TOKEN.encode() in file.read_bytes()
    ] == []
