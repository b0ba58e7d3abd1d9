"""Digits of callers are ASCII and within a bound: superscripts and other scripts' digits are no server error."""

import ast
from pathlib import Path

import pytest

import bezel_localcloud
from bezel_localcloud.http.methods import served_methods
from localcloud_support.in_process import PARENT, Project
from localcloud_support.registry_harness import APP, Registry

ROOT = Path(bezel_localcloud.__file__).parent
DIGITS = ["%C2%B2", "%D9%A1", "%EF%BC%91", "9" * 5000, "1_0", "%2B1", "0x1", "1e5", ""]
HEADERS = ["9" * 5000, "\u00b2", "1_0", "+1", "0x1"]
# Where a text's own methods say what a digit is, after a check for ASCII.
CHECKED = {("core/decimal_text.py", "isdigit")}


def faults_of(source):
    """(line, what) of each question for digits of any script in a module's text."""
    faults = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in {"isdigit", "isdecimal", "isnumeric"}:
            faults.append((node.lineno, node.attr))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and r"\d" in node.value:
            faults.append((node.lineno, r"\d"))
    return faults


@pytest.mark.slow
def test_no_module_asks_for_digits_of_any_script():
    modules = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        modules |= {(name, what) for _, what in faults_of(path.read_text(encoding="utf-8"))}
    assert modules == CHECKED


@pytest.mark.parametrize("source", ["a.isdigit()", "a.isdecimal() and b", "x = re.compile(r'[a-f\\d]')", "r'\\d+'"])
def test_a_question_for_digits_of_any_script_is_found(source):
    assert len(faults_of(source)) == 1


@pytest.mark.parametrize("source", ["decimal(a)", "re.compile('[0-9]+')", "isdigit = 1"])
def test_another_text_is_not_taken_for_such_a_question(source):
    assert faults_of(source) == []


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Registry(tmp_path_factory.mktemp("digits") / "cloud")
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    new_project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"content")
    yield new_project
    new_project.close()


def numeric_queries():
    """(HTTP method, path, parameter) of each query parameter that is a number, of every served method."""
    kinds = ("int32", "int64", "uint32", "uint64", "double")
    for method in sorted(served_methods().values(), key=lambda each: each.id):
        path = method.path.replace("projects/{}", PARENT).replace("/b/{}", "/b/shelf").replace("{}", "a")
        for name, kind in method.query.items():
            if kind.removeprefix("[]") in kinds:
                yield method.http, path, name


@pytest.mark.slow
def test_every_numeric_parameter_takes_other_digits_for_a_fault(project):
    asked = [(verb, f"{path}?{name}={digits}") for verb, path, name in numeric_queries() for digits in DIGITS[:4]]
    wrong = [(verb, path[:90]) for verb, path in asked if project.raw(verb, path, b"{}").status_code >= 500]
    assert wrong == []
    assert len(asked) > 400


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/shelf?max-keys={}"),
        ("PUT", "/shelf/a?uploadId=x&partNumber={}"),
        ("GET", "/shelf/a?generation={}"),
        ("GET", "/storage/v1/b/shelf/o/a?generation={}"),
        ("GET", "/shelf/a?X-Goog-Signature=aa&X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Expires={}&X-Goog-Date={}"),
        ("GET", "/v2/_catalog?n={}"),
        ("GET", f"{APP}/tags/list?n={{}}"),
        ("GET", "/localcloud/hold?count={}"),
        ("GET", f"/secretmanager/v1/{PARENT}/secrets/a/versions/{{}}:access"),
        ("POST", "/localcloud/faults?count={}"),
    ],
)
def test_other_digits_in_a_path_or_query_are_no_server_error(project, verb, path, digits):
    assert project.raw(verb, path.replace("{}", digits)).status_code < 500


@pytest.mark.parametrize("digits", HEADERS)
@pytest.mark.parametrize(
    ("verb", "path", "name", "form"),
    [
        ("GET", "/storage/v1/b/shelf/o/a?alt=media", "range", "bytes={0}-"),
        ("GET", "/shelf/a", "range", "bytes=0-{0}"),
        ("GET", "/shelf/a", "x-goog-if-generation-match", "{0}"),
        ("PUT", "/shelf/a", "x-goog-if-metageneration-match", "{0}"),
        ("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable&name=b", "x-upload-content-length", "{0}"),
        ("PATCH", f"{APP}/blobs/uploads/x", "content-range", "{0}-{0}"),
        ("GET", "/huggingface/google/gemma-4-12B-it/resolve/main/config.json", "range", "bytes={0}-{0}"),
    ],
)
def test_other_digits_in_a_header_are_no_server_error(project, verb, path, name, form, digits):
    value = form.format(digits).encode("latin-1", "replace")
    assert project.raw(verb, path, b"", {name: value}).status_code < 500


def session_of(project):
    begun = project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable&name=c", b"{}")
    return begun.headers["location"].removeprefix(project.cloud.base)


@pytest.mark.parametrize("digits", HEADERS)
@pytest.mark.parametrize("form", ["bytes {0}-{0}/{0}", "bytes 0-0/{0}", "bytes */{0}", "bytes 0-{0}/*"])
def test_other_digits_in_the_range_of_a_chunk_are_refused(project, form, digits):
    value = form.format(digits).encode("latin-1", "replace")
    place = session_of(project)
    assert project.raw("PUT", place, b"x", {"content-range": value}).status_code == 400
    assert project.raw("PUT", place, b"x", {"content-range": b"bytes 0-0/1"}).status_code == 200


@pytest.mark.parametrize("memory", ["9" * 400 + "Gi", "\u0661Gi", "\u00b2Gi", "9" * 5000])
@pytest.mark.parametrize("name", ["memory", "cpu", "nvidia.com/gpu"])
def test_other_digits_in_a_quantity_are_a_violation(project, name, memory):
    project.cloud.store.put("api", "run.googleapis.com", {"state": "ENABLED"})
    container = {"image": "docker.io/vllm/vllm-openai:v0.32.0", "resources": {"limits": {name: memory}}}
    path = f"/run/v2/{PARENT}/locations/us-east4/services"
    assert (
        Project.call(project, "POST", path, {"template": {"containers": [container]}}, serviceId="a").status_code == 400
    )
