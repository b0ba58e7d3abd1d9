"""Google's gem for REST, unmodified, with an address of its own and a printed access token."""

import os
import shutil
import subprocess

import pytest

from bezel_localcloud import control
from tests.support.clients import environment, programs
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients]
ABOUT = (
    "Debian's package of google-api-client with Cloud Storage, Secret Manager and Resource Manager over REST: "
    "`root_url`, and in `authorization` what `bezel local token` prints. It sends uploads by `X-Goog-Upload` commands."
)
NOT_SERVED = {
    "batch_upload",
    "insert_object_access_control",
    "list_bucket_access_controls",
    "list_notifications",
    "list_object_access_controls",
    "list_project_hmac_keys",
}


def ruby():
    """(program, its variables): Ruby and its gems from Debian's packages, or the machine's where it has them."""
    folder = environment.debian("ruby-google-api-client") / "usr"
    installed = shutil.which("ruby")
    program = folder / "bin" / "ruby3.1"
    gems = [folder / "share" / "rubygems-integration" / "all"]
    if not program.exists() and installed:
        return installed, {"GEM_PATH": os.pathsep.join(map(str, [*gems, "/usr/share/rubygems-integration/all"]))}
    native = next(iter(folder.glob("lib/*-linux-gnu")))
    library_paths = [folder / "lib" / "ruby" / name for name in ("vendor_ruby", "3.1.0")]
    library_paths += [native / "ruby" / name for name in ("3.1.0", "vendor_ruby/3.1.0")]
    return program, {
        "LD_LIBRARY_PATH": str(native),
        "RUBYLIB": os.pathsep.join(map(str, library_paths)),
        "GEM_PATH": os.pathsep.join(map(str, [*gems, folder / "lib" / "ruby" / "gems" / "3.1.0"])),
    }


def test_every_call_of_ruby_s_client_passes_or_is_refused_by_name(endpoint, cloud, variables):
    cloud.enable("secretmanager")
    program, own_variables = ruby()
    own_variables |= variables | {"LANG": "C.UTF-8", "TRIED_ENDPOINT": endpoint.base}
    own_variables["ACCESS_TOKEN"] = control.access_token(endpoint)
    made = programs.run([program, "-W0", programs.PROGRAMS / "storage_ruby.rb"], own_variables, timeout=300)
    programs.assert_served(made, not_served=NOT_SERVED)
    table = programs.table("Google's client for Ruby", 26, ABOUT, "tests/clients/test_google_ruby.py", made)
    check_results("clients-ruby", table)


@pytest.mark.wide  # beside test_external_account.py
def test_the_client_without_a_token_is_refused(endpoint, variables):
    """The negative twin."""
    program, own_variables = ruby()
    own_variables |= variables | {"LANG": "C.UTF-8", "TRIED_ENDPOINT": endpoint.base, "ACCESS_TOKEN": "wrong"}
    command = [str(program), "-W0", str(programs.PROGRAMS / "storage_ruby.rb")]
    ended = subprocess.run(command, env=own_variables, capture_output=True, text=True, timeout=120, check=False)
    assert '"passed"' not in ended.stdout
    assert "Unauthorized" in ended.stdout
