"""Configuration of the collector: what Google's sidecar takes and what it ends with.

The errors with a label, apiVersion and kind are those of the golden files in GoogleCloudPlatform/run-gmp-sidecar
(confgenerator/testdata/*/golden/error), the values those of its golden otel.yaml, read 2026-11-29.
"""

import textwrap

import pytest

from bezel_localcloud.services.monitoring.collector.run_monitoring import (
    METADATA,
    ConfigurationError,
    Limits,
    RunMonitoring,
    run_monitoring,
)

HEAD = "apiVersion: monitoring.googleapis.com/v1beta\nkind: RunMonitoring\n"


def with_rule(**rule):
    lines = "".join(f"\n        {key}: {value}" for key, value in rule.items()).replace("        ", "      - ", 1)
    return f"{HEAD}spec:\n  endpoints:\n  - port: 8080\n    interval: 10s\n    metricRelabeling:{lines}\n"


INDEX = "invalid definition for endpoint with index 0: "
REFUSED = {
    "apiVersion: monitoring.googleapis.com/v1\nkind: RunMonitoring": "apiVersion must be monitoring.googleapis.com/v1",
    "apiVersion: monitoring.googleapis.com/v1beta\nkind: PodMonitoring": "kind must be RunMonitoring",
    f"{HEAD}spce: {{}}": 'unknown field "spce"',
    f"{HEAD}spec: {{endpoint: []}}": 'spec: unknown field "endpoint"',
    f"{HEAD}spec: {{endpoints: [{{port: 1, intervall: 1s}}]}}": 'endpoints[0]: unknown field "intervall"',
    f"{HEAD}kind: RunMonitoring": 'mapping key "kind" already defined',
    f"{HEAD}spec: [": "expected the node content",
    f"{HEAD}spec: {{endpoints: [{{port: 1}}]}}": f"{INDEX}invalid scrape interval: empty duration string",
    f"{HEAD}spec: {{endpoints: [{{port: 1, interval: 30}}]}}": 'interval: not a valid duration string: "30"',
    f"{HEAD}spec: {{endpoints: [{{port: 1, interval: 1s, timeout: 2s}}]}}": "timeout 2s must not be greater",
    f"{HEAD}spec: {{endpoints: [{{port: 1, interval: 1s}}], targetLabels: {{metadata: [pod]}}}}": (
        'metadata label "pod" not allowed, must be one of [instance revision service configuration]'
    ),
    f"{HEAD}spec: {{limits: {{samples: -1}}}}": "limits.samples: a number from 0",
    with_rule(action="replace", sourceLabels="[a]", targetLabel="instance"): (
        f'{INDEX}cannot relabel with action "replace" onto protected label "instance"'
    ),
    with_rule(action="replace", sourceLabels="[instanceId]", targetLabel="a"): (
        f'{INDEX}cannot relabel with action "replace" using source label "instanceId"'
    ),
    with_rule(action="labelmap", regex="a"): 'relabeling with action "labelmap" not allowed',
    with_rule(action="lowercase", sourceLabels="[a]", targetLabel="b"): 'unknown relabeling action "lowercase"',
    with_rule(action="labeldrop", regex="inst.*"): "regex inst.* would drop at least one of the protected labels",
    with_rule(action="labelkeep", regex="a"): "would drop at least one of the protected labels location, cluster",
    with_rule(action="hashmod", sourceLabels="[a]", targetLabel="b"): "requires non-zero modulus",
    with_rule(action="replace", sourceLabels="[a]"): "requires 'target_label' value",
    with_rule(action="keep", sourceLabels="[__name__]", regex="'a('"): 'invalid regex "a("',
    with_rule(action="keep", sourceLabels="[__name__]", regex="'(?=a)'"): 'invalid regex "(?=a)"',
    with_rule(action="keep", label="a"): 'unknown field "label"',
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_sidecar_ends_with_ends_the_collector_with_the_reason(text):
    with pytest.raises(ConfigurationError) as refused:
        run_monitoring(text)
    assert REFUSED[text] in str(refused.value)


def test_a_configuration_is_laid_over_the_default_one():
    assert run_monitoring("") == run_monitoring(HEAD) == RunMonitoring()
    default = RunMonitoring().endpoints[0]
    assert (default.port, default.path, default.interval, RunMonitoring().job) == (
        "8080",
        "/metrics",
        30.0,
        "run-gmp-sidecar",
    )
    text = """
        apiVersion: monitoring.googleapis.com/v1beta
        kind: RunMonitoring
        metadata: {name: run-run-run, labels: {type: mytype}}
        spec:
          endpoints:
          - {port: 8080, interval: 1m30s, timeout: 500ms, params: {a: [1, b]}}
          - {port: "9090", path: /m, interval: 0}
          targetLabels: {metadata: [service]}
          limits: {samples: 1000}
    """
    read = run_monitoring(textwrap.dedent(text))
    assert (read.job, read.metadata, read.limits) == ("run-run-run", ("service",), Limits(1000))
    first, second = read.endpoints
    assert (first.port, first.path, first.interval, first.timeout, first.params) == (
        "8080",
        "/metrics",
        90.0,
        0.5,
        {"a": ["1", "b"]},
    )
    assert (second.port, second.path, second.interval) == ("9090", "/m", 60.0)
    assert run_monitoring(f"{HEAD}spec: {{targetLabels: {{}}}}").metadata == METADATA
    assert run_monitoring(f"{HEAD}spec: {{targetLabels: {{metadata: []}}}}").metadata == ()
