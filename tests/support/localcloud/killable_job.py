"""A run of `bezel bench job` without its figures, for tests to end: `killable_job URL TASKS PROJECT REGION ACCOUNT`.

Prints what the merged load was, as JSON.
"""

import json
import sys

from bezel.bench_jobs.job_runner import Fleet, send_by_tasks
from bezel_base.errors import UserError
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target

IMAGE = "localhost/bezel-bench:0.1.0"


def main(url: str, tasks: str, project: str, region: str, account: str) -> int:
    prompts = PromptPlan(input_tokens=64, output_tokens=8)
    load = Load(Target(url, "tiny"), Closed(2 * int(tasks)), Stop(requests=12), prompts)
    fleet = Fleet(project, region, int(tasks), IMAGE, account, "loads", ready_seconds=60, seconds=120)
    try:
        merged = send_by_tasks(load, fleet, lambda text: print(text, file=sys.stderr, flush=True))
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    samples = merged.measured.samples
    results = {
        "indices": [one.index for one in samples],
        "workers": sorted({one.worker for one in samples}),
        "failures": sorted({one.failure for one in samples} - {""}),
        "by": merged.by,
        "notes": merged.notes,
    }
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
