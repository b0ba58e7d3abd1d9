"""Validity checks that need the server or its manifest: counters, roofline, idleness, manifest.

Each is one function of plain values and returns one `Check`. Leaves those of the load alone to
bezel_bench.validity.load_checks, and collecting the values to bezel_bench.validity.checks.
"""

from dataclasses import dataclass
from functools import partial

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Check, Counters, Numbers
from bezel_bench.result.records import Manifest, ServedBy
from bezel_bench.server.drain import Drained
from bezel_bench.validity.roofline import Hardware, Work, shares

DISAGREEMENT = 0.02
SUSPECT_FLOPS = 0.60
# Decoding at 66 % of the bandwidth has been measured reliably; no known result comes near this.
SUSPECT_BANDWIDTH = 0.90


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """Client-side counts of the values that a server counts.

    Attributes:
        requests: Requests that succeeded; prompt and output tokens are theirs.
        unfinished: Requests that failed after they may have reached the server, which counts its work for them.
    """

    requests: int
    prompt_tokens: int
    output_tokens: int
    unfinished: int


def counters_agree(client: ClientCounts, counters: Counters) -> Check:
    """Check 4: the server counted what the client saw.

    Work for requests that then failed is in the server's count only, which may therefore be higher.

    Args:
        client: Counts by the client.
        counters: Counts by the server.
    """
    gained = counters.gained
    numbers: Numbers = {}
    check = partial(Check, name="counters", numbers=numbers)
    if gained is None:
        return check(state="unknown", text=f"the server's counters cannot be used here: {counters.why}")
    pairs = {
        "requests": (client.requests, gained.requests),
        "prompt_tokens": (client.prompt_tokens, gained.prompt_tokens),
        "output_tokens": (client.output_tokens, gained.generated_tokens),
    }
    numbers["unfinished_requests"] = client.unfinished
    wrong, compared = [], 0
    # A server that counts requests that the client gave up on counts at most their share more.
    more = client.unfinished / client.requests if client.requests else float("inf")
    for what, (seen, server) in pairs.items():
        numbers |= {f"{what}_client": seen, f"{what}_server": server}
        if server is None:
            continue
        compared += 1
        off = (server - seen) / seen if seen else float(server > 0)
        numbers[f"{what}_off"] = off
        if off < -DISAGREEMENT or off > DISAGREEMENT + more:
            wrong.append(f"{what}: client {seen}, server {server} ({off:+.1%})")
    if wrong:
        cause = "others used the server, or responses were counted wrongly"
        text = f"server and client disagree by more than {DISAGREEMENT:.0%}: {'; '.join(wrong)}: {cause}"
        return check(state="failed", text=text)
    if not compared:
        return check(state="unknown", text="the server has none of the client's counters")
    worst = max(abs(float(value or 0)) for key, value in numbers.items() if key.endswith("_off"))
    text = f"server and client agree within {worst:.2%}"
    if client.unfinished:
        text += f", with work for {format_count(client.unfinished, 'requests')} that ended early on the server's side"
    return check(state="passed", text=text)


def below_roofline(work: Work | str, hardware: Hardware | str) -> Check:
    """Check 5: the measured work is possible on the hardware.

    Args:
        work: The measured work, or why it is unknown.
        hardware: The serving hardware, or why it is unknown.
    """
    check = partial(Check, name="roofline")
    if isinstance(work, str) or isinstance(hardware, str):
        missing = "; ".join(part for part in (work, hardware) if isinstance(part, str))
        return check(state="unknown", text=f"it cannot be computed: {missing}", numbers={})
    use = shares(work, hardware)
    flops, reading = use.flops / use.peak_flops, use.bytes_per_second / use.peak_bytes_per_second
    parameters = hardware.model.architecture.active_parameters
    chips = hardware.peaks.chips * hardware.instances
    can = f"{chips} chips can" if chips > 1 else "the chip can"
    numbers: Numbers = {
        "flops": use.flops, "peak_flops": use.peak_flops, "flops_share": flops,
        "bytes_per_second": use.bytes_per_second, "peak_bytes_per_second": use.peak_bytes_per_second,
        "bandwidth_share": reading, "active_parameters": parameters, "chips": chips,
    }  # fmt: skip
    check = partial(check, numbers=numbers)
    prompt = work.input_tokens_per_second
    computing = (
        f"({'unknown' if prompt is None else f'{prompt:,.0f}'} computed prompt + {work.output_tokens_per_second:,.0f} "
        f"output tokens/s) x 2 x {parameters:.3g} parameters = {use.flops / 1e12:,.1f} TFLOP/s, {flops:.0%} of the "
        f"{use.peak_flops / 1e12:,.1f} that {can} do"
    )
    decoding = (
        f"decoding reads {use.bytes_per_second / 1e9:,.0f} GB/s at least, {reading:.0%} of the "
        f"{use.peak_bytes_per_second / 1e9:,.0f} that {can}"
    )
    if flops > 1 or reading > 1:
        over = " and ".join(text for text, share in ((computing, flops), (decoding, reading)) if share > 1)
        text = f"impossible: {over}. Tokens were cached or counted wrongly, or the hardware is not the stated one"
        return check(state="failed", text=text)
    if flops > SUSPECT_FLOPS or reading > SUSPECT_BANDWIDTH:
        return check(state="suspect", text=f"no known server comes this close to the peak: {computing}; {decoding}")
    if prompt is None:
        text = f"the computed prompt tokens are unknown; without them, {computing}; {decoding}"
        return check(state="unknown", text=text)
    return check(state="passed", text=f"{computing}; {decoding}")


def drained_before(drained: Drained) -> Check:
    """Check 6: the server was idle when the load began."""
    numbers: Numbers = {"seconds": drained.seconds, "running": drained.running, "waiting": drained.waiting}
    check = partial(Check, name="drained", numbers=numbers)
    if drained.idle is None:
        return check(state="unknown", text=f"it is unknown whether the server was idle: {drained.why}", numbers={})
    if not drained.idle:
        text = (
            f"{format_count(drained.running or 0, 'requests')} ran and {drained.waiting or 0} waited after "
            f"{drained.seconds:.0f} s: the figures are of this load and another one"
        )
        return check(state="failed", text=text)
    return check(state="passed", text=f"idle after {drained.seconds:.1f} s")


def manifest_complete(manifest: Manifest, served: ServedBy) -> Check:
    """Check 8: the manifest identifies the run completely.

    Args:
        manifest: The document's manifest.
        served: The model and engine that served this load: the manifest's, or the variant's.
    """
    platform, price = manifest.platform, manifest.price
    stated = {
        "image digest": served.digest, "vLLM version": served.vllm_version, "arguments": served.arguments,
        "accelerator": platform.accelerator, "revision or lease": platform.revision or platform.lease,
        "instances": platform.instances, "concurrency": platform.concurrency, "region": platform.region,
        "price": price.usd_per_hour, "date of the price": price.as_of,
    }  # fmt: skip
    # A leased machine has no platform in front of it that limits concurrency.
    needed = {what: value for what, value in stated.items() if not (what == "concurrency" and platform.lease)}
    missing = [what for what, value in needed.items() if value is None]
    check = partial(Check, name="manifest", numbers={"told": len(needed) - len(missing), "wanted": len(needed)})
    if missing:
        text = f"not stated: {', '.join(missing)}. Without these the figures cannot be attributed to a system"
        return check(state="unknown", text=text)
    return check(state="passed", text="the manifest is complete")
