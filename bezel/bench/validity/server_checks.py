"""Validity checks that need the server or its manifest: counters, roofline, idleness, manifest.

Each is one function of plain values and returns one `Check`. Leaves those of the load alone to
bezel.bench.validity.load_checks, and collecting the values to bezel.bench.validity.checks.
"""

from dataclasses import dataclass

from bezel.bench.result.document import Check, Counters, Manifest, Numbers, ServedBy
from bezel.bench.server.drain import Drained
from bezel.bench.validity.roofline import Hardware, Work, shares

DISAGREEMENT = 0.02
SUSPECT_FLOPS = 0.60
# Decoding at 66 % of the bandwidth has been measured reliably; no known result comes near this.
SUSPECT_BANDWIDTH = 0.90


@dataclass(frozen=True, slots=True)
class Seen:
    """Client-side counts of the values that a server counts.

    Attributes:
        requests: Requests that succeeded; prompt and output tokens are theirs.
        unfinished: Requests that failed after they may have reached the server, which counts its work for them.
    """

    requests: int
    prompt_tokens: int
    output_tokens: int
    unfinished: int


def counters_agree(seen: Seen, counters: Counters) -> Check:
    """Check 4: the server counted what the client saw.

    Work for requests that then failed is in the server's count only, which may therefore be higher.

    Args:
        seen: Counts by the client.
        counters: Counts by the server.
    """
    name, gained = "counters", counters.gained
    if gained is None:
        text = f"the server's counters are not to be trusted here: {counters.why}"
        return Check(name=name, state="unknown", text=text, numbers={})
    pairs = {
        "requests": (seen.requests, gained.requests),
        "prompt_tokens": (seen.prompt_tokens, gained.prompt_tokens),
        "output_tokens": (seen.output_tokens, gained.generated_tokens),
    }
    numbers: Numbers = {"unfinished_requests": seen.unfinished}
    wrong, known = [], 0
    for what, (client, server) in pairs.items():
        numbers |= {f"{what}_client": client, f"{what}_server": server}
        if server is None:
            continue
        known += 1
        off = (server - client) / client if client else float(server > 0)
        numbers[f"{what}_off"] = off
        # A server that counts requests that the client gave up on counts at most their share more.
        more = seen.unfinished / seen.requests if seen.requests else float("inf")
        if off < -DISAGREEMENT or off > DISAGREEMENT + more:
            wrong.append(f"{what}: {client} seen, {server} counted ({off:+.1%})")
    if wrong:
        cause = "others used the server, or answers were counted wrongly"
        text = f"server and client disagree by more than {DISAGREEMENT:.0%}: {'; '.join(wrong)}: {cause}"
        return Check(name=name, state="failed", text=text, numbers=numbers)
    if not known:
        return Check(name=name, state="unknown", text="the server counts none of what the client sees", numbers=numbers)
    worst = max(abs(float(value or 0)) for key, value in numbers.items() if key.endswith("_off"))
    return Check(name=name, state="passed", text=f"server and client agree within {worst:.2%}", numbers=numbers)


def below_roofline(work: Work | str, hardware: Hardware | str) -> Check:
    """Check 5: the measured work is possible on the hardware.

    Args:
        work: The measured work, or why it is unknown.
        hardware: The serving hardware, or why it is unknown.
    """
    name = "roofline"
    if isinstance(work, str) or isinstance(hardware, str):
        missing = "; ".join(part for part in (work, hardware) if isinstance(part, str))
        return Check(name=name, state="unknown", text=f"not to be computed: {missing}", numbers={})
    found = shares(work, hardware)
    flops, reading = found.flops / found.peak_flops, found.bytes_per_second / found.peak_bytes_per_second
    parameters = hardware.model.architecture.active_parameters
    chips = hardware.peaks.chips * hardware.instances
    can = f"{chips} chips can" if chips > 1 else "the chip can"
    numbers: Numbers = {
        "flops": found.flops, "peak_flops": found.peak_flops, "flops_share": flops,
        "bytes_per_second": found.bytes_per_second, "peak_bytes_per_second": found.peak_bytes_per_second,
        "bandwidth_share": reading, "active_parameters": parameters, "chips": chips,
    }  # fmt: skip
    prompt = work.input_tokens_per_second
    computing = (
        f"({'no known' if prompt is None else f'{prompt:,.0f}'} computed prompt + {work.output_tokens_per_second:,.0f} "
        f"output tokens/s) x 2 x {parameters:.3g} parameters = {found.flops / 1e12:,.1f} TFLOP/s, {flops:.0%} of the "
        f"{found.peak_flops / 1e12:,.1f} that {can} do"
    )
    decoding = (
        f"decoding reads {found.bytes_per_second / 1e9:,.0f} GB/s at least, {reading:.0%} of the "
        f"{found.peak_bytes_per_second / 1e9:,.0f} that {can}"
    )
    if flops > 1 or reading > 1:
        over = " and ".join(text for text, share in ((computing, flops), (decoding, reading)) if share > 1)
        text = f"impossible: {over}. Tokens were cached or counted wrongly, or the hardware is another"
        return Check(name=name, state="failed", text=text, numbers=numbers)
    if flops > SUSPECT_FLOPS or reading > SUSPECT_BANDWIDTH:
        return Check(
            name=name, state="suspect", text=f"no server gets so near: {computing}; {decoding}", numbers=numbers
        )
    if prompt is None:
        text = f"computed prompt tokens are not known; without them, {computing}; {decoding}"
        return Check(name=name, state="unknown", text=text, numbers=numbers)
    return Check(name=name, state="passed", text=f"{computing}; {decoding}", numbers=numbers)


def drained_before(drained: Drained) -> Check:
    """Check 6: the server was idle when the load began."""
    name = "drained"
    numbers: Numbers = {
        "seconds": drained.seconds, "running": drained.running, "waiting": drained.waiting,
    }  # fmt: skip
    if drained.idle is None:
        return Check(
            name=name, state="unknown", text=f"whether the server was idle is not known: {drained.why}", numbers={}
        )
    if not drained.idle:
        text = (
            f"{drained.running} requests ran and {drained.waiting} waited after {drained.seconds:.0f} s: what was "
            "measured is this load and another"
        )
        return Check(name=name, state="failed", text=text, numbers=numbers)
    return Check(name=name, state="passed", text=f"idle after {drained.seconds:.1f} s", numbers=numbers)


def manifest_complete(manifest: Manifest, served: ServedBy) -> Check:
    """Check 8: the manifest identifies the run completely.

    Args:
        manifest: The document's manifest.
        served: The model and engine that served this load: the manifest's, or the variant's.
    """
    platform, price = manifest.platform, manifest.price
    said = {
        "image digest": served.digest, "vLLM version": served.vllm_version, "arguments": served.arguments,
        "accelerator": platform.accelerator, "revision or lease": platform.revision or platform.lease,
        "instances": platform.instances, "concurrency": platform.concurrency, "region": platform.region,
        "price": price.usd_per_hour, "date of the price": price.as_of,
    }  # fmt: skip
    # A leased machine has no platform in front of it that limits concurrency.
    wanted = {what: value for what, value in said.items() if not (what == "concurrency" and platform.lease)}
    missing = [what for what, value in wanted.items() if value is None]
    numbers: Numbers = {"told": len(wanted) - len(missing), "wanted": len(wanted)}
    if missing:
        text = f"not told: {', '.join(missing)}. Who reads the figures cannot know what they are figures of"
        return Check(name="manifest", state="unknown", text=text, numbers=numbers)
    return Check(name="manifest", state="passed", text="everything that was run is in the manifest", numbers=numbers)
