"""A project is named by its id or by its number, and both are the same project, in every full name."""

import pytest

from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER, with_project_id
from bezel_localcloud.services.compute.links import full_name


@pytest.mark.parametrize("project", [PROJECT, PROJECT_NUMBER])
def test_the_number_stands_for_the_id(project):
    assert with_project_id(f"projects/{project}/locations/us") == f"projects/{PROJECT}/locations/us"
    assert with_project_id(f"projects/{project}") == f"projects/{PROJECT}"
    link = f"https://www.googleapis.com/compute/v1/projects/{project}/global/networks/n"
    assert full_name(link, "global/networks") == f"projects/{PROJECT}/global/networks/n"


@pytest.mark.parametrize(
    "name", ["projects/1234567890123/x", f"folders/{PROJECT_NUMBER}/x", f"a/projects/{PROJECT_NUMBER}/x"]
)
def test_another_number_and_another_place_stay(name):
    assert with_project_id(name) == name
