"""A cell of a run that needs no server: a server that counts what the load made it do, and the record of the cell."""

import json
from datetime import UTC, datetime

from bench_support.runs import closed_loop
from bezel_bench.cell.cell import MeasuredCell, measure_cell
from bezel_bench.cell.plan import CellPlan, ServerView
from bezel_bench.load.plan import Body, Closed, Load, PromptPlan, Stop, Target
from bezel_bench.result.document import Result
from bezel_bench.result.records import Manifest, Platform, PriceBasis, ServedBy
from bezel_bench.result.sample import Measured
from bezel_bench.server.drain import DrainClock
from bezel_bench.server.http_probe import ProbeResponse
from bezel_bench.server.manifest import this_client


class Bodies:
    turns = 1

    def body(self, index: int, turn: int = 0) -> Body:
        return Body(json.dumps({"prompt": f"{index} {turn}"}).encode(), 11)


class Server:
    """Counts what a load made it do; idle from the second look on."""

    def __init__(self, run: Measured, *, off: float = 1.0) -> None:
        self.run, self.off, self.counts, self.looks, self.order = run, off, (0, 0, 0), 0, []

    def send(self) -> Measured:
        self.order.append("load")
        good = [one for one in self.run.samples if not one.failure]
        tokens = (sum(one.prompt_tokens for one in good), sum(one.output_tokens for one in good))
        self.counts = (len(good), *(int(count * self.off) for count in tokens))
        return self.run

    def ask(self, path: str, body: object) -> ProbeResponse:
        assert (path, body) == ("/metrics", None)
        self.looks += 1
        self.order.append("look")
        lines = [f"vllm:num_requests_running {int(self.looks == 1)}", "vllm:num_requests_waiting 0"]
        lines += [f'vllm:request_success_total{{finished_reason="length"}} {self.counts[0]}']
        lines += [f"vllm:prompt_tokens_total {self.counts[1]}", f"vllm:generation_tokens_total {self.counts[2]}"]
        lines += ["vllm:prompt_tokens_cached_total 0", "process_start_time_seconds 1.5"]
        return ProbeResponse(200, "\n".join(lines).encode())


def view(server: Server, **platform: object) -> ServerView:
    manifest = Manifest(
        title="t", url="http://127.0.0.1:1", model="m", client=this_client(workers=1, tls=False),
        started_at=datetime(2026, 11, 22, tzinfo=UTC), seed=0, price=PriceBasis(usd_per_hour=3.6),
        platform=Platform(**platform), served_by=ServedBy(max_model_len=4096),
    )  # fmt: skip
    return ServerView(server.ask, lambda: manifest, 4096, clock=DrainClock(lambda: 0.0, lambda _: None))


def plan(**fields: object) -> CellPlan:
    prompts = PromptPlan(input_tokens=100, output_tokens=11)
    return CellPlan(
        "c100-u4", Load(Target("http://127.0.0.1:1", "m"), Closed(4), Stop(requests=40), prompts, **fields), Bodies()
    )


def record(run: Measured, wanted: CellPlan | None = None, *, off: float = 1.0, **platform: object) -> MeasuredCell:
    server = Server(run, off=off)
    return measure_cell(wanted or plan(), server.send, view(server, **platform), lambda _: None)


def document(measured_cell: MeasuredCell, nature: str = "measured") -> Result:
    return Result(
        kind="run", nature=nature, manifest=view(Server(closed_loop(1, 1))).manifest, cells=[measured_cell.cell]
    )
