"""Other clients of Cloud Storage, unmodified: Google's for Go and Node.js, gcloud, gsutil, gcsfs and rclone."""

import shutil

import pytest

from tests.support.cli.served import Served
from tests.support.clients import environment, programs
from tests.support.docs.markdown import ROOT, after
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients, pytest.mark.timeout(900)]
ABOUT = (
    "Google's packages for Go and Node.js, gcloud, gsutil, gcsfs and rclone, of the versions below, with the variables "
    "of `bezel local env` and the address of the API; that for Go also, and that for Node.js only, by "
    "`STORAGE_EMULATOR_HOST`, without credentials. gsutil has the settings of docs/localcloud.md, with the https "
    "address. Uploads are of 0 bytes to 20 MB, in one request and in chunks."
)
NOT_SERVED = {
    "go": {"ACL.List", "Bucket.Notifications", "Client.CreateHMACKey"},
    "node": {"Acl.get", "File.makePublic", "Bucket.getNotifications", "createHmacKey", "getHmacKeys"},
    "gcloud": set(),
    "gsutil": {"acl get", "hmac list", "notification list", "xml: stat, which asks for the access control list"},
    "gcsfs": set(),
    "rclone": set(),
}


@pytest.fixture(scope="module")
def served_cloud(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("home"), "--dir", "cloud", "--emulator", "--tls")
    yield served
    served.end()


@pytest.fixture(scope="module")
def calls():
    """The calls of the programs that passed; when all have, their table is compared or written."""
    made = {}
    yield made
    if made.keys() == NOT_SERVED.keys():
        ordered = [call for name in sorted(made) for call in made[name]]
        table = programs.table("Other clients of Cloud Storage", 72, ABOUT, "", ordered)
        check_results("clients-storage-others", table | {"command": "make clients", "checked": "make clients"})


def variables_of(served_cloud, *, emulated):
    own_variables = (
        served_cloud.variables | served_cloud.report["environment"] | {"TRIED_ENDPOINT": served_cloud.report["base"]}
    )
    # No program may leave this machine.
    own_variables |= {
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "NO_PROXY": "127.0.0.1,localhost",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    return (
        own_variables
        if emulated
        else {name: value for name, value in own_variables.items() if name != "STORAGE_EMULATOR_HOST"}
    )


def boto_file(served_cloud):
    """The settings of gsutil that docs/localcloud.md shows, with the addresses of a localcloud."""
    report = served_cloud.report
    text = after(
        ROOT / "docs" / "localcloud.md", "the boto file of gsutil, run by tests/clients/test_storage_clients.py"
    )
    for shown, own_value in {
        "8443": report["tls"].rpartition(":")[2],
        "http://127.0.0.1:8085": report["base"],
        "DIR/certificates/authority.pem": report["authority"],
        "DIR/credentials.json": report["credentials"],
    }.items():
        text = text.replace(shown, own_value)
    file = served_cloud.home / "boto"
    file.write_text(text)
    return file


def command_of(name):
    match name:
        case "go":
            return [environment.go_tool("google_storage")]
        case "node":
            return ["node", programs.PROGRAMS / "storage_node.cjs"]
        case "gcsfs":
            return [environment.python("gcsfs"), programs.PROGRAMS / "storage_gcsfs.py"]
        case "gsutil":
            python = environment.python("gsutil")
            return [python, programs.PROGRAMS / "gsutil_commands.py", python.parent / "gsutil"]
    program = environment.go_tool("rclone") if name == "rclone" else shutil.which("gcloud")
    if program is None:
        pytest.skip("gcloud is not on PATH")
    return [environment.python("storage"), programs.PROGRAMS / "storage_commands.py", name, program]


@pytest.mark.wide_except("go", "node")
@pytest.mark.parametrize("name", sorted(NOT_SERVED))
def test_every_call_of_a_storage_client_passes_or_is_refused_by_name(served_cloud, calls, name):
    # Google's package for Node.js gets tokens at a fixed address: without the emulator's port it sends none.
    for emulated in {"go": (False, True), "node": (True,)}.get(name, (False,)):
        variables = variables_of(served_cloud, emulated=emulated)
        if name == "node":
            variables["NODE_PATH"] = str(environment.npm("storage") / "node_modules")
        if name == "gsutil":
            variables["BOTO_CONFIG"] = str(boto_file(served_cloud))
        made = programs.run(command_of(name), variables, timeout=600)
        programs.assert_served(made, not_served=NOT_SERVED[name])
        calls[name] = calls.get(name, []) + made
