"""Changes made by hand under the real engine: a deploy, drift, status and doctor name what no program declares."""

import pytest

from tests.support.e2e.rehearsal import Rehearsal

SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"


@pytest.mark.wide
@pytest.mark.timeout(300)  # three runs of the engine, two commands and a preview, one after the other
def test_what_nobody_declares_is_named_until_it_is_gone(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    made = rehearsal.local("up", "l4-qat")
    assert made.code == 0, made.text
    variables = rehearsal.variables()
    with rehearsal.api() as api:
        before = api.get(f"{SERVICE}:getIamPolicy").json()
        policy = {**before, "bindings": [{"role": "roles/run.invoker", "members": ["allUsers"]}]}
        assert api.post(f"{SERVICE}:setIamPolicy", json={"policy": policy}).is_success
        for field, body in (
            ("scaling.minInstanceCount", {"scaling": {"minInstanceCount": 1}}),
            ("invokerIamDisabled", {"invokerIamDisabled": True}),
        ):
            assert api.patch(SERVICE, params={"updateMask": field}, json=body).is_success
    minimum = "service bezel-l4-qat: scaling.minInstanceCount: cloud 1, program not set (costs money)"
    everyone = "service bezel-l4-qat: roles/run.invoker: cloud allUsers, program not set (changes who has access)"
    unchecked = "service bezel-l4-qat: invokerIamDisabled: cloud true, program not set (changes who has access)"

    refused = rehearsal.local("up", "l4-qat")
    assert refused.code == 1, refused.text
    assert "the drift check fails: settings were changed outside of the program" in refused.text
    for line in (minimum, everyone, unchecked, "gcloud run services update bezel-l4-qat --region=us-east4"):
        assert line in refused.text, (line, refused.text)

    drifted = rehearsal.bezel("ci", "drift", "l4-qat", **variables)
    assert drifted.code == 4, drifted.text
    assert "    invokerIamDisabled: cloud true, program not set" in drifted.text
    assert minimum in drifted.text
    assert everyone in drifted.text
    shown = rehearsal.bezel("status", "l4-qat", **variables).text
    assert "1.0465 USD per hour with everything running, 1.0465 USD idle" in shown
    assert all(line in shown for line in (minimum, everyone, unchecked)), shown
    checked = rehearsal.bezel("doctor", "l4-qat", **variables)
    assert checked.code == 1
    assert f"problem: access, l4-qat: {everyone}" in checked.text

    # The engine restores what the provider declares; the rest is undone by the commands that were named.
    with rehearsal.api() as api:
        assert api.patch(SERVICE, params={"updateMask": "scaling"}, json={}).is_success
        now = api.get(f"{SERVICE}:getIamPolicy").json()
        policy = {"etag": now["etag"], "bindings": before.get("bindings", [])}
        assert api.post(f"{SERVICE}:setIamPolicy", json={"policy": policy}).is_success
    mended = rehearsal.local("up", "l4-qat", "--", "--refresh")
    assert mended.code == 0, mended.text
    with rehearsal.api() as api:
        assert "invokerIamDisabled" not in api.get(SERVICE).json()
    assert rehearsal.bezel("ci", "drift", "l4-qat", **variables).code == 0
