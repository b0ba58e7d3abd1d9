"""A report names the keys of the stack's file that change, with the values in the file's own words."""

import pytest

from bezel.engine.changes.settings import deployed_settings, setting_changes
from bezel_base.errors import NOT_SET, NOT_SHOWN

OLD = {"model": "m", "scaling": {"max_instances": 1}, "cost": {"max_hourly_usd": 1.1}}


def rows(old, new):
    return [(change.key, change.old, change.new) for change in setting_changes(old, new)]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (OLD, []),
        ({**OLD, "scaling": {"max_instances": 40}}, [("scaling.max_instances", "1", "40")]),
        ({**OLD, "model": "n"}, [("model", "m", "n")]),
        # One is the default, so neither to write it down nor to leave it out changes anything.
        ({"model": "m", "cost": {"max_hourly_usd": 1.1}}, []),
        ({**OLD, "scaling": {"max_instances": 1, "min_instances": 0}}, []),
        ({**OLD, "scaling": {}, "cost": {}}, [("cost.max_hourly_usd", "1.1", NOT_SET)]),
        ({**OLD, "vllm": {"max-model-len": 8192}}, [("vllm.max-model-len", NOT_SET, "8192")]),
        ({**OLD, "restarted_at": "x"}, [("restarted_at", '""', "x")]),
        ({**OLD, "lease": {"zones": [{"zone": "a"}]}}, [("lease.zones", "[]", '[{"zone": "a"}]')]),
        ({**OLD, "secrets": {"HF_TOKEN": "hunter2"}}, [("secrets.HF_TOKEN", NOT_SET, NOT_SHOWN)]),
        ({**OLD, "variables": {"X": f"hf_{'Ab3' * 12}"}}, [("variables.X", NOT_SET, NOT_SHOWN)]),
        ({**OLD, "scaling": {"max_instances": 1.0}}, []),
        ({**OLD, "lease": {"duration": "240m"}}, []),  # 4h is the default
        ({**OLD, "lease": {"duration": "5h"}}, [("lease.duration", "4h", "5h")]),
        ({**OLD, "variables": {"DB_PASS": "hunter33x"}}, [("variables.DB_PASS", NOT_SET, NOT_SHOWN)]),
        ({**OLD, "variables": {"VLLM_LOGGING_LEVEL": "DEBUG"}}, [("variables.VLLM_LOGGING_LEVEL", NOT_SET, "DEBUG")]),
        ({**OLD, "unknown": True}, [("unknown", NOT_SET, "true")]),
    ],
)
def test_changed_keys_have_old_and_new_values(new, expected):
    assert rows(OLD, new) == expected


def test_engine_passes_numbers_of_the_top_level_as_text():
    assert rows({"restarted_at": "5"}, {"restarted_at": 5}) == []


@pytest.mark.parametrize(
    ("outputs", "settings"),
    [
        ({"settings": OLD}, OLD),
        ({}, None),
        ({"settings": "text"}, None),
    ],
)
def test_deployed_settings_are_those_of_the_state(outputs, settings):
    stack = {"type": "pulumi:pulumi:Stack", "urn": "urn:pulumi:s::p::pulumi:pulumi:Stack::p-s", "outputs": outputs}
    other = {"type": "gcp:storage/bucket:Bucket", "outputs": {"settings": {"model": "wrong"}}}
    assert deployed_settings({"deployment": {"resources": [other, stack]}}) == settings


def test_without_deployed_settings_no_change_is_claimed():
    assert rows(None, OLD) == []
    assert deployed_settings(None) is None
