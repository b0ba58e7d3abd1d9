"""The text at the end of `make up`: where the service is, what was checked, measured, what it costs, what to try next.

Leaves out where the outputs come from. A figure that is missing is left out or called unknown, never made up.
"""

from collections.abc import Mapping


def summary(stack: str, outputs: Mapping[str, object], *, behind: str) -> str:
    """Readable text for the outputs of a stack (`url`, `revision` or `leases`, `model`, `plan`, `smoke`, `simulated`).

    `behind` names what answers there, e.g. "a simulated vLLM".
    """
    # Both ways the figures say nothing of the accelerator that the price is for.
    kind = " (simulated)" if outputs.get("simulated") else " (on this machine)"
    url, model = str(outputs.get("url", "")), str(outputs.get("model", ""))
    rows = {
        "url": url,
        "revision": str(outputs.get("revision", "")).rpartition("/")[2],
        **_leases(_at(outputs, "leases")),
        "model": model,
        "memory": _memory(_at(outputs, "plan", "fit")),
        "price": _price(_at(outputs, "plan", "cost")),
        "price basis": _basis(_at(outputs, "plan", "cost")),
        "checked": _verdict(_at(outputs, "smoke", "verdict")),
        f"measured{kind}": _figures(_at(outputs, "smoke", "figures")),
    }
    width = max(len(label) for label in rows)
    lines = ["", f"{stack} is in service on localcloud, behind it {behind}", ""]
    lines += [f"  {label:<{width}}  {text}" for label, text in rows.items() if text]
    lines += ["", "Ask it something, look at everything it told, take it away:", "", *_completion(url, model)]
    return "\n".join([*lines, "", f"  make outputs{_stack(stack)}", f"  make down{_stack(stack)}", "", ""])


def _at(outputs: Mapping[str, object], *path: str) -> Mapping[str, object]:
    value: object = outputs
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _leases(leases: Mapping[str, object]) -> dict[str, str]:
    """Each lease: where it is, when it ends, what it has cost and is going to."""
    return {f"lease {name}": _lease(_at(leases, name)) for name in leases}


def _lease(lease: Mapping[str, object]) -> str:
    cost = _at(lease, "cost")
    where, until = f"{lease.get('state')} in {lease.get('zone')}", lease.get("ends_at")
    return (
        f"{where}, {f'ends {until}' if until else 'without an end'}; {_cents(cost, 'so_far_usd')} so far"
        f" (as of {cost.get('as_of')}), {_cents(cost, 'at_end_usd')} at its end"
    )


def _memory(fit: Mapping[str, object]) -> str:
    if not fit:
        return ""
    return (
        f"{fit['weights_gib']} GiB of weights and {fit['kv_cache_gib']} GiB for the KV cache, "
        f"of {fit['budget_gib']} GiB: "
        f"{fit['full_context_sequences']} sequences of {fit['max_model_len']} tokens fit (planned)"
    )


def _price(cost: Mapping[str, object]) -> str:
    if not cost:
        return ""
    if "usd_per_lease" in cost:
        hours = f"{float(str(cost.get('lease_seconds'))) / 3600:g} h"
        return (
            f"{_cents(cost, 'usd_per_hour')} per hour and {_cents(cost, 'usd_per_lease')} for {hours} of accelerators; "
            f"with the gateway at most {_cents(cost, 'usd_per_hour_with_gateway')} per hour, "
            f"{_cents(cost, 'usd_per_lease_with_gateway')} for {hours}"
        )
    return (
        f"{_usd(cost, 'usd_per_hour')} per hour while an instance runs, "
        f"{_usd(cost, 'usd_per_month_always_on')} per month if always on, "
        f"{_usd(cost, 'usd_per_month_without_traffic')} per month without traffic"
    )


def _basis(cost: Mapping[str, object]) -> str:
    """What of the price is derived from another row, and what it leaves out."""
    lines = cost.get("lines")
    derived = [
        str(line["item"])
        for line in (lines if isinstance(lines, list) else [])
        if isinstance(line, Mapping) and str(line.get("source", "")).startswith("derived")
    ]
    left_out = cost.get("not_included")
    parts = [f"derived: {', '.join(derived)}"] if derived else []
    parts += [f"not included: {', '.join(map(str, left_out))}"] if isinstance(left_out, list) and left_out else []
    return "; ".join(parts)


def _usd(cost: Mapping[str, object], key: str) -> str:
    value = cost.get(key)
    return f"{value:g} USD" if isinstance(value, int | float) else f"an unknown price ({value})"


def _cents(cost: Mapping[str, object], key: str) -> str:
    """An amount of a lease: to the cent, as an invoice has it."""
    value = cost.get(key)
    return f"{value:.2f} USD" if isinstance(value, int | float) else f"an unknown price ({value})"


def _verdict(verdict: Mapping[str, object]) -> str:
    checks = _at(verdict, "checks")
    return f"{', '.join(sorted(checks))}: all passed" if checks and verdict.get("ok") else ""


def _figures(figures: Mapping[str, object]) -> str:
    if not figures:
        return ""
    ttft, tpot = _at(figures, "ttft_ms").get("p50"), _at(figures, "tpot_ms").get("p50")
    first, each = ("not measurable" if value is None else f"{value} ms" for value in (ttft, tpot))
    return (
        f"ttft p50 {first}, tpot p50 {each}, {figures.get('output_tokens_per_second')} output tokens/s with "
        f"{figures.get('concurrency')} users; {figures.get('completed')} of {figures.get('requests')} requests answered"
        + _failures(_at(figures, "failed"))
    )


def _failures(failed: Mapping[str, object]) -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
    return f", the others failed ({kinds}): read the container's log before you trust the figures" if kinds else ""


def _completion(url: str, model: str) -> list[str]:
    body = f'{{"model": "{model}", "stream": true, "messages": [{{"role": "user", "content": "Say hello."}}]}}'
    return [
        f"  curl -N {url}/v1/chat/completions \\",
        f'    -H "Authorization: Bearer $(.venv/bin/bezel local token {url})" \\',
        f"    -H 'Content-Type: application/json' -d '{body}'",
    ]


def _stack(stack: str) -> str:
    return "" if stack == "l4-qat" else f" STACK={stack}"
