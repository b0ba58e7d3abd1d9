"""`bezel local serve`: localcloud for anybody, in any folder, in the foreground; several at once do not clash."""

import json
import os
import signal
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from bezel_base.loopback.listeners import bind, free_port
from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from localcloud_support.client import PARENT, REPOSITORY, Client, is_alive
from tests.support.cli.served import BEZEL, Served
from tests.support.other_user import as_other_user, sent_by_other_user

pytestmark = pytest.mark.slow
BUCKETS = "/storage/v1/b"


@pytest.fixture
def serve(tmp_path):
    """A function that starts one in a folder of this test; all are ended afterwards."""
    served = []

    def start(*options, **variables):
        served.append(Served(tmp_path, *options, **variables))
        return served[-1]

    start.home = tmp_path
    yield start
    for one in served:
        one.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def shared_cloud(tmp_path_factory):
    """One that is served to every test that leaves it as it is: with all its ports, a seed and two APIs."""
    home = tmp_path_factory.mktemp("shared")
    folder = home / "seed"
    (folder / "seeded-bucket" / "a b").mkdir(parents=True)
    (folder / "seeded-bucket" / "a b" / "ä.txt").write_text("one")
    (folder / "empty-bucket").mkdir()
    enabled = ("--enable", "secretmanager", "--enable", "run.googleapis.com,iam")
    served = Served(home, "--dir", "a cloud", "--emulator", "--tls", *enabled, "--seed", "seed")
    yield served
    served.end(signal.SIGTERM)


def folder_of(served):
    return Path(served.report["directory"])


def client_of(served):
    return Client(Endpoint.read(folder_of(served)))


def test_ctrl_c_ends_it_and_leaves_its_data_and_no_process(serve):
    """It serves in a folder that was empty."""
    first = serve()
    assert folder_of(first) == first.home / ".local/state/bezel/localcloud"
    assert [path.name for path in first.home.iterdir()] == [".local"]
    client = client_of(first)
    client.post(BUCKETS, {"name": "kept"}, project=first.report["project"])
    client.prepare()
    client.create("service", client.template("/m"), scaling={"minInstanceCount": 0})
    assert first.run("local", "status").returncode == 0
    assert first.end(signal.SIGINT) == (0, "")
    with bind("127.0.0.1", int(first.report["base"].rpartition(":")[2])):  # so that nothing else draws it
        assert not is_alive(first.pid)
        assert first.run("local", "status").returncode == 1
        with pytest.raises(httpx.ConnectError):
            httpx.get(first.report["base"], trust_env=False, verify=NO_TLS)
        again = serve()
    assert again.report["base"] == first.report["base"]
    assert client_of(again).get(f"{BUCKETS}/kept").status_code == 200
    assert again.end(signal.SIGTERM) == (0, "")


def test_a_killed_one_that_is_started_again_keeps_its_data_and_address(serve):
    # Bound here too, it is drawn by nothing else while none listens.
    with bind("127.0.0.1", free_port()) as drawn:
        first = serve("--dir", "cloud", "--port", str(drawn.getsockname()[1]), "--tls")
        assert first.report["tls"]
        client_of(first).post(BUCKETS, {"name": "kept"}, project=first.report["project"])
        first.end(signal.SIGKILL)
        again = serve("--dir", "cloud")
    assert again.report["base"] == first.report["base"]
    assert (again.report["tls"], again.report["authority"]) == ("", "")
    assert client_of(again).get(f"{BUCKETS}/kept").status_code == 200


def test_a_folder_or_port_in_use_is_refused_with_its_owner(serve, shared_cloud):
    """Two of them run at once in folders of their own, and share no data and no token."""
    one, other = serve("--dir", "one"), shared_cloud
    client_of(one).post(BUCKETS, {"name": "mine"}, project=one.report["project"])
    assert client_of(other).get(f"{BUCKETS}/mine").status_code == 404
    # A token of one is none of the other's.
    token = client_of(one).http.headers["Authorization"]
    answer = httpx.get(
        f"{other.report['base']}{BUCKETS}/mine", headers={"Authorization": token}, trust_env=False, verify=NO_TLS
    )
    assert answer.status_code == 401
    code, errors = serve("--dir", "one").end()
    assert code == 1
    assert f"(process {one.pid}, {one.report['base']})" in errors
    assert f"bezel local stop --dir {folder_of(one)}" in errors
    port = one.report["base"].rpartition(":")[2]
    code, errors = serve("--dir", "third", "--port", port).end()
    assert code == 1
    assert f"--port = {port}\n   another process listens on it" in errors
    assert client_of(one).get(f"{BUCKETS}/mine").status_code == 200


def test_no_other_command_replaces_it_and_the_one_of_the_refusal_stops_it(serve):
    first = serve("--dir", "cloud")
    replaced = first.run("local", "start", "--dir", "cloud", "--speed", "5")
    assert replaced.returncode == 1
    assert "is used by another command" in replaced.stderr
    elsewhere = first.run("local", "start", "--dir", "cloud", "--port", str(free_port()))
    assert f"already runs in cloud at {first.report['base']}" in elsewhere.stderr
    assert first.run("local", "start", "--dir", "cloud").returncode == 0
    assert first.run("local", "stop", "--dir", "cloud").returncode == 0
    assert first.end() == (0, "")


def test_apis_are_enabled_and_buckets_filled_before_it_says_that_it_serves(shared_cloud):
    client = client_of(shared_cloud)
    assert client.get(f"/secretmanager/v1/{PARENT}/secrets").status_code == 200
    assert client.get(f"{BUCKETS}/seeded-bucket/o/a%20b%2F%C3%A4.txt", alt="media").text == "one"
    assert client.get(f"{BUCKETS}/empty-bucket/o").json().get("items", []) == []
    disabled = client.get(f"/artifactregistry/v1/{REPOSITORY}")
    assert disabled.json()["error"]["details"][0]["reason"] == "SERVICE_DISABLED"


def test_present_buckets_are_not_seeded_again_and_a_refused_seed_ends_it(serve):
    """What a client stored in the meantime stays."""
    bucket = serve.home / "seed" / "seeded-bucket"
    bucket.mkdir(parents=True)
    (bucket / "kept").write_text("from the folder")
    first = serve("--dir", "cloud", "--seed", "seed")
    client = client_of(first)
    client.delete(f"{BUCKETS}/seeded-bucket/o/kept")
    client.http.post(f"/upload{BUCKETS}/seeded-bucket/o?uploadType=media&name=kept", content=b"by a client")
    assert first.end() == (0, "")
    again = serve("--dir", "cloud", "--seed", "seed")
    assert client_of(again).get(f"{BUCKETS}/seeded-bucket/o/kept", alt="media").text == "by a client"
    (serve.home / "seed" / "No_Bucket!").mkdir()
    code, errors = serve("--dir", "other", "--seed", "seed").end()
    assert code == 1
    assert "cannot be copied to gs://No_Bucket!" in errors
    assert control.status(serve.home / "other") is None


def test_it_ends_with_its_terminal_and_temporary_data_are_gone_then(serve):
    first = serve("--temporary")
    folder = folder_of(first)
    assert client_of(first).get(BUCKETS, project="bezel-local").status_code == 200
    assert first.end(signal.SIGHUP) == (0, "")
    assert not folder.exists()


def test_a_reader_that_is_gone_ends_it(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    command = [BEZEL, "local", "serve", "--dir", "cloud"]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(writing)
    assert ended.returncode != 0
    assert b"Traceback" not in ended.stderr
    assert control.status(tmp_path / "cloud") is None


def test_it_says_how_clients_reach_it_and_the_lines_of_env_work_in_a_shell(shared_cloud):
    first = shared_cloud
    status = first.run("local", "status", "--dir", "a cloud").stdout
    for text in (first.report["project"], first.report["credentials"], *first.report["endpoints"].values()):
        assert text in status
    lines = first.run("local", "env", "--dir", "a cloud").stdout
    shown = 'printf \'%s|%s|%s\' "$GOOGLE_APPLICATION_CREDENTIALS" "$CLOUDSDK_CONFIG" "$GOOGLE_CREDENTIALS"'
    ran = subprocess.run(
        ["/bin/sh", "-c", f"{lines}\n{shown}"],
        env={"GOOGLE_CREDENTIALS": "the user's own"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout == f"{first.report['credentials']}|{folder_of(first) / 'gcloud'}|"
    as_json = json.loads(first.run("local", "env", "--dir", "a cloud", "--format", "json").stdout)
    assert first.report["environment"].items() <= as_json.items()
    as_file = first.run("local", "env", "--dir", "a cloud", "--format", "file").stdout
    assert dict(line.split("=", 1) for line in as_file.splitlines()) == as_json
    # An engine finds what it needs, and another program the user's own commands.
    assert as_json["PULUMI_BACKEND_URL"] == f"file://{folder_of(first) / 'state'}"
    assert Path(as_json["PULUMI_CONFIG_PASSPHRASE_FILE"]).read_text()
    assert as_json["PATH"].startswith(first.variables["PATH"].partition(":")[0])


def test_a_folder_that_may_not_be_written_is_refused_as_such(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    ended = as_other_user([BEZEL, "local", "serve", "--dir", str(folder / "cloud")], HOME=str(folder))
    errors = ended.stderr.decode()
    if "No such file" in errors or ("ermission denied" in errors and "bezel:" not in errors):
        pytest.skip("the other user cannot reach this interpreter")
    assert ended.returncode == 1
    assert "Permission denied" in errors
    assert "Traceback" not in errors


def test_the_port_for_clients_without_credentials_refuses_another_user(shared_cloud):
    first = shared_cloud
    address = first.report["emulator"].removeprefix("http://")
    path = f"{BUCKETS}?project=bezel-local"
    request = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
    with httpx.Client(trust_env=False, verify=NO_TLS) as client:
        assert client.get(f"http://{address}{path}").status_code == 200
        assert client.get(f"{first.report['base']}{path}").status_code == 401
        token = {"Authorization": "Bearer nonsense"}
        assert client.get(f"http://{address}{path}", headers=token).status_code == 401
    assert sent_by_other_user(address, request).startswith("HTTP/1.1 403 ")


def test_the_port_over_https_asks_for_a_token_as_the_other_one(shared_cloud):
    first = shared_cloud
    secure = ssl.create_default_context(cafile=first.report["authority"])
    assert first.report["tls"].startswith("https://127.0.0.1:")
    with httpx.Client(base_url=first.report["tls"], trust_env=False, verify=secure) as client:
        assert client.get(BUCKETS, params={"project": "bezel-local"}).status_code == 401
        printed = first.run("local", "token", "--dir", "a cloud")
        client.headers["Authorization"] = f"Bearer {printed.stdout.strip()}"
        assert client.get(BUCKETS, params={"project": "bezel-local"}).status_code == 200
    status = first.run("local", "status", "--dir", "a cloud").stdout
    assert ["https", first.report["tls"]] in [line.split() for line in status.splitlines()]
    assert first.report["authority"] in status
