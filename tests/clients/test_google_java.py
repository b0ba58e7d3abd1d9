"""Google's client libraries for Java, unmodified, with an address of their own."""

import re
import shutil

import pytest

from tests.support.clients import environment, programs
from tests.support.record_results import check_results

pytestmark = [pytest.mark.slow, pytest.mark.clients]
ABOUT = (
    "google-cloud-storage over HTTP and google-cloud-secretmanager over REST, of the versions below, with the key file "
    "of `bezel local env` and the address of localcloud: `StorageOptions.http().setHost(...)`, "
    "`newHttpJsonBuilder().setEndpoint(...)`. Updates are sent as POST with another method's name, bodies compressed."
)
NOT_SERVED = {
    *("createAcl", "listAcls", "listDefaultAcls", "createNotification", "listNotifications", "listHmacKeys"),
}


@pytest.mark.wide
def test_every_call_of_java_s_clients_passes_or_is_refused_by_name(endpoint, cloud, variables):
    if shutil.which("java") is None:
        pytest.skip("java is not on PATH")
    cloud.enable("secretmanager")
    packages = environment.maven("google")
    names = "\n".join(file.name for file in packages.parent.iterdir())
    match = re.search(r"google-cloud-secretmanager-([\d.]+)\.jar", names)
    own_variables = variables | {"TRIED_ENDPOINT": endpoint.base, "TRIED_VERSION": match[1] if match else "unknown"}
    own_variables |= {"NO_PROXY": "127.0.0.1", "HTTPS_PROXY": "http://127.0.0.1:1"}
    made = programs.run(
        ["java", "-cp", str(packages), programs.PROGRAMS / "GoogleJava.java"], own_variables, timeout=600
    )
    programs.assert_served(made, not_served=NOT_SERVED)
    table = programs.table("Google's clients for Java", 25, ABOUT, "tests/clients/test_google_java.py", made)
    check_results("clients-java", table | {"checked": "make test-wide"})
