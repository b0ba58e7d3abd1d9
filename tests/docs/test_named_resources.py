"""Names of accounts, projects, buckets and services in documents are ones that Google takes: a reader copies them."""

import re
from pathlib import Path

import pytest

from bezel.foundation.settings import BUCKET
from bezel.planner.base.members import SERVICE_ACCOUNT
from bezel.planner.base.names import SERVICE_LENGTH, is_project_id
from tests.support.docs.markdown import DOCUMENTS, ROOT

ACCOUNT_NAME = re.compile(r"[\w.*<>-]+@[\w.<>-]+gserviceaccount\.com")
PROJECT_NAME = re.compile(r"(?:--project[ =]|GOOGLE_(?:CLOUD_)?PROJECT=|gcp:project: |--quota-project[ =])([\w.:<>-]+)")
BUCKET_NAME = re.compile(r"(?:gs://|--bucket |--weights-bucket |--state-bucket )([\w.<>-]+)")
SERVICE_NAME = re.compile(r"(?:gcloud (?:beta )?run deploy |locations/[\w-]+/services/)([a-z][\w-]*)(?=[\s/`\"]|$)")
PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*(?:-\w+)?|<[\w-]+>[\w-]*|\w+-<[\w-]+>|\.\.\.")
"""A word for the reader's own name."""


def is_account(name: str) -> bool:
    """Whether it is a service account's address, its project perhaps a word for the reader's."""
    local, _, domain = name.partition("@")
    with_names = f"{'caller' if PLACEHOLDER.fullmatch(local) else local}@{domain}"
    return bool(SERVICE_ACCOUNT.fullmatch(re.sub(r"@(?:PROJECT|<\w+>)\.", "@my-project.", with_names)))


def wrong_names(text: str) -> list[str]:
    """The names in a text that Google does not take."""
    wrong = [name for name in ACCOUNT_NAME.findall(text) if not is_account(name)]
    wrong += [name for name in PROJECT_NAME.findall(text) if not (is_project_id(name) and len(name) >= 6)]
    buckets = [name for name in BUCKET_NAME.findall(text) if not re.fullmatch(BUCKET, name)]
    services = [name for name in SERVICE_NAME.findall(text) if len(name) > SERVICE_LENGTH or "_" in name]
    return [name for name in (*wrong, *buckets, *services) if not PLACEHOLDER.fullmatch(name)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_what_google_takes(document: Path) -> None:
    assert wrong_names(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "bezel:smoke: {impersonate: smoke@my-project.iam.gserviceaccount.com}",
        f"{'a' * 31}@my-project.iam.gserviceaccount.com",
        "bezel init --project llm",
        "GOOGLE_PROJECT=My_Project",
        "gs://My-Bucket/x",
        "--bucket ab",
        f"gcloud run deploy {'a' * 50} --image i",
    ],
)
def test_a_name_that_google_refuses_is_found(text: str) -> None:
    assert wrong_names(text)


def test_words_for_the_readers_own_names_are_left_alone() -> None:
    assert wrong_names("--project PROJECT gs://BUCKET/x bench-load@PROJECT.iam.gserviceaccount.com") == []
