"""Client, report and helpers of the calls of google-cloud-storage."""

import base64
import datetime as dt
import hashlib
import json
import os
import tempfile
import traceback
import urllib.parse
from pathlib import Path

import google_crc32c
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

BASE = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(os.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"]))
KEY_FILE = os.environ["GOOGLE_APPLICATION_CREDENTIALS"]
OPTIONS = {"api_endpoint": BASE}
CLIENT = f"google-cloud-storage {storage.__version__}"
KMS_KEY = os.environ["TRIED_KMS_KEY"]
HOUR = dt.timedelta(hours=1)
FOLDER = Path(tempfile.mkdtemp(prefix="storage-"))
CALLS = []

client = storage.Client.from_service_account_json(KEY_FILE, client_options=OPTIONS)
anonymous = storage.Client(project=client.project, credentials=AnonymousCredentials(), client_options=OPTIONS)


def call_of(name):
    """A decorator that notes a function as the call of a name; "" for what is only prepared for later calls."""

    def note(function):
        CALLS.append((name, function))
        return function

    return note


def run():
    """Make all calls in the order in which they were noted, and print the outcome of each."""
    for name, function in CALLS:
        outcome, text = "passed", ""
        try:
            function()
        except Exception as error:
            if not name:
                raise
            if "localcloud does not serve" in str(error):
                print(json.dumps({"client": CLIENT, "call": name, "outcome": "not served", "text": _message(error)}))
                continue
            place = traceback.extract_tb(error.__traceback__)[1:2]
            outcome, text = "failed", f"{type(error).__name__}: {error} ({place[0].line if place else ''})"[:600]
        if name:
            print(json.dumps({"client": CLIENT, "call": name, "outcome": outcome, "text": text}), flush=True)


def expect_refusal(kind, function, *arguments, **named):
    """Assert that a call raises an exception of a kind."""
    try:
        function(*arguments, **named)
    except kind:
        return
    text = f"{kind.__name__} was not raised"
    raise AssertionError(text)


def crc(data):
    """CRC32C as an object shows it."""
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def md5(data):
    """MD5 as an object shows it."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def names(blobs):
    """Names of some objects."""
    return [blob.name for blob in blobs]


def _message(error):
    """The first sentence of the server's own text, without the address of the request."""
    return (
        "localcloud " + error.message.partition("localcloud ")[2].partition('"')[0].partition(". ")[0].rstrip(".") + "."
    )
