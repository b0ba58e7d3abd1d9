"""Analysis of a log: the same request as for advice, of the log alone."""

import pytest

from tests.operations.test_advise import OUT_OF_MEMORY, Model
from tests.support.operations.deployed import Deployed


def test_the_log_alone_is_sent_and_judged(cloud: Deployed) -> None:
    model = Model(cloud)
    model.log.add(OUT_OF_MEMORY, 60)
    analysis = model.analyze()
    assert [each.kind for each in analysis.findings] == ["gpu_memory"]
    assert "metric: " not in model.message()
    assert "rule: " not in model.message()
    assert "/metrics" not in {call.path for call in model.server.calls}
    assert (analysis.lines_read, analysis.revision, analysis.exit_code) == (1, "llm-00002-abc", 0)


@pytest.mark.slow
def test_a_log_without_a_problem_has_no_finding(cloud: Deployed) -> None:
    model = Model(cloud)
    model.log.add("(APIServer pid=1) INFO:     Application startup complete.", 60)
    analysis = model.analyze()
    assert analysis.findings == ()
    assert "no known cause of a problem" in analysis.text()
