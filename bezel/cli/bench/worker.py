"""`bezel bench worker PLACE`: one task of a load sent by many machines. Only `bezel bench job` starts it.

Cloud Run passes it the number of its task. Leaves out how a share is sent: see `bezel_bench.distributed.worker`.
"""

import argparse
import os
from typing import Literal

from bezel.bench_jobs.gcs_exchange import BucketExchange
from bezel.cli.bench.stack_targets import headers_of
from bezel_base.console import say
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_bench.distributed.worker import run_task

_INDEX = "CLOUD_RUN_TASK_INDEX"
_SECONDS = 24 * 3600.0  # the platform ends a task by its own timeout


def run(options: argparse.Namespace) -> Literal[0]:
    """Send this task's share; return the exit code.

    Raises:
        UserError: It could not be sent.
    """
    index = os.environ.get(_INDEX, "")
    if not index.isdecimal():
        consequence = "this command runs only as a task of a Cloud Run job."
        raise UserError(Problem(_INDEX, index or NOT_SET, consequence, "use `bezel bench job`."))
    try:
        with BucketExchange(options.place, _SECONDS) as exchange:
            run_task(exchange, int(index), headers_of, say)
    except UserError as error:
        # On one line: Cloud Run stores each line as a log entry, and the job shows the last eight.
        raise UserError(" ".join(str(error).split())) from None
    return 0
