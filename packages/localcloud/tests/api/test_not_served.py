"""Every method of every version of the served APIs' discovery documents: served, or refused by its name."""

import json
import re
from collections import Counter

import pytest

from bezel_localcloud.core.errors import NOT_SERVED
from bezel_localcloud.http.methods import service_of, unserved_method
from localcloud_support.asgi import answer_of
from localcloud_support.discovery_documents import SOURCES, all_versions, document, methods_of, path_of
from localcloud_support.in_process import PARENT, Project

SERVED = {
    (method["httpMethod"], path_of(source, method))
    for source in SOURCES
    for method in methods_of(document(source.document))
    if method["id"] in source.serves
}
# What a name looks like in the pattern of a parameter.
FORMS = {"[^/]+": "x1", ".*": "a1", ".+": "a1", "[^/]*": "x1", "[0-9]+": "12"}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Project(tmp_path_factory.mktemp("cloud"))
    yield new_project
    new_project.close()


def plain_path(source, method):
    """The path of a method with plain names."""
    return path_of(source, method).replace("{}", "x")


def patterned_path(source, method):
    """The path of a method with names after its patterns; "" where none is made of them."""
    path = source.prefix + method["path"].removeprefix(source.prefix.lstrip("/"))
    for name, parameter in method.get("parameters", {}).items():
        value = parameter.get("pattern", "^x1$").strip("^$")
        for form, text in FORMS.items():
            value = value.replace(form, text)
        path = re.sub(r"\{\+?" + re.escape(name) + r"\}", lambda _, value=value: value, path)
    return "" if set("{[(*+?") & set(path) else path


def documented_methods(path_with_names):
    """(document, method, path) of every method that is not served."""
    for source in all_versions():
        for method in methods_of(document(source.document)):
            path = path_with_names(source, method)
            if path and (method["httpMethod"], path_of(source, method)) not in SERVED:
                yield source.document, method, path


def ask(project, verb, path):
    status, body = answer_of(project.application, verb, path, project.token)
    return status, json.loads(body)["error"] if status >= 400 else {}


@pytest.mark.slow
@pytest.mark.wide_except("plain")
@pytest.mark.parametrize(
    ("path_with_names", "least"), [(plain_path, 7000), (patterned_path, 3500)], ids=["plain", "patterned"]
)
def test_every_method_that_is_not_served_is_refused_by_its_name_and_api(project, path_with_names, least):
    tried, wrong = Counter(), []
    for name, method, path in documented_methods(path_with_names):
        status, error = ask(project, method["httpMethod"], path)
        named = error.get("details", [{}])[0].get("metadata", {})
        unserved = unserved_method(method["httpMethod"], path)
        if {"method": unserved, "service": service_of(path)} != named or status != 400:
            if not _is_of_a_served_form(method["httpMethod"], path):
                wrong.append(f"{name} {method['id']}: {method['httpMethod']} {path}: {status} {error}")
        else:
            assert error["errors"][0]["reason"] == error["details"][0]["reason"] == NOT_SERVED
            assert (error["status"], named["method"]) == ("FAILED_PRECONDITION", unserved)
            assert error["message"].startswith(f"localcloud does not serve {named['method']} of {named['service']} (")
        tried[name] += 1
    assert wrong == [], "\n".join(wrong[:20])
    assert len(tried) > 40
    assert tried.total() > least


def _is_of_a_served_form(verb, path):
    """Whether a path is one of a served method too: only the forms of the parameters tell the two apart."""
    forms = [form for http, form in SERVED if http == verb]
    return any(re.fullmatch(re.escape(form).replace(r"\{\}", "[^/]+"), path) for form in forms)


@pytest.mark.parametrize(
    ("verb", "path", "name"),
    [
        ("POST", "/artifactregistry/upload/v1/P/locations/l/repositories/r/kfpArtifacts:create", "kfpArtifacts.upload"),
        ("POST", "/upload/artifactregistry/v1/P/locations/l/repositories/r/kfpArtifacts:create", "kfpArtifacts.upload"),
        ("POST", "/resumable/upload/artifactregistry/v1/P/locations/l/repositories/r/aptArtifacts:create", "aptArtif"),
        ("GET", "/storage/v1/b/x/o/a:b/acl", "storage.objectAccessControls.list"),
        ("GET", "/run/v2/projects/example.com:own/locations/l/workerPools/w", "run.projects.locations.workerPools.get"),
        ("GET", "/run/apis/serving.knative.dev/v1/namespaces/n/services", "run.namespaces.services.list"),
        ("GET", "/secretmanager/v1beta2/P/secrets", "secretmanager.projects.secrets.list"),
        ("GET", "/compute/alpha/P/zones/z/disks", "compute.disks.list"),
    ],
)
def test_a_method_is_known_at_each_place_where_google_has_it(project, verb, path, name):
    status, error = ask(project, verb, path.replace("/P/", f"/{PARENT}/"))
    assert status == 400
    assert name in error["details"][0]["metadata"]["method"]


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/run/v2/nothing"),
        ("GET", "/run/v3/projects/p/locations/l/services"),
        ("PUT", f"/run/v2/{PARENT}/locations/us-east4/services"),
        ("POST", f"/secretmanager/v1/{PARENT}/secrets/x:frobnicate"),
    ],
)
def test_a_method_that_google_does_not_have_either_is_not_found(project, verb, path):
    status, error = ask(project, verb, path)
    assert status == 404
    assert NOT_SERVED not in str(error)


def test_a_refusal_tells_which_version_or_which_methods_are_served(project):
    older = ask(project, "GET", f"/secretmanager/v1beta1/{PARENT}/secrets")[1]["message"]
    assert "It serves v1 of it." in older
    other = ask(project, "POST", "/storage/v1/b/x/o/bulkRestore")[1]["message"]
    assert "It serves: storage.objects.compose, " in other


def test_a_part_that_is_not_served_names_the_method_that_was_called(project):
    error = project.refusal(400, "GET", f"/monitoring/v3/{PARENT}/alertPolicies", filter="x")
    assert error["details"][0] == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": NOT_SERVED,
        "domain": "localcloud",
        "metadata": {
            "method": "monitoring.projects.alertPolicies.list",
            "service": "monitoring.googleapis.com",
        },
    }


@pytest.mark.parametrize("path", ["/storage/v1/b/models/", "/storage/v1/b/models/o/", "/run/v2/projects/bezel-local/"])
def test_an_empty_name_is_unknown_and_no_method_that_is_not_served(cloud, path):
    assert cloud.get(path).status_code == 404
