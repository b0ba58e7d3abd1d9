import pytest

from localcloud_support.in_process import Project


@pytest.fixture
def project(tmp_path):
    """A localcloud in this process with an empty bucket, `shelf`."""
    new_project = Project(tmp_path / "cloud")
    new_project.ok("POST", "/storage/v1/b", {"name": "shelf"}, project="bezel-local")
    yield new_project
    new_project.close()


@pytest.fixture
def put(project):
    """A function that uploads an object and returns its JSON."""

    def upload(name, content=b"x", bucket="shelf"):
        path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        answer = project.raw("POST", path, content)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return upload
