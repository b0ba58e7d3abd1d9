"""Summary at the end of `make up`: the service's address, checks, measurements, cost, and commands to try next.

Leaves out reading the outputs and probing the service. A missing figure is left out or called unknown, never made up;
one that is no measurement is not shown as one.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal

from bezel.engine.changes.figure_lines import fit_line, is_pooled, rates_of
from bezel.planner.base.hours import Window, is_within, next_start
from bezel.planner.base.money import exact, round_usd
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role
from bezel_base.text.shell import shell_word, shell_word_for_make

# States of a benchmark whose figures describe the service. For the others only the reason is shown.
_MEASURED = frozenset({"ok", "queueing", "saturated"})
# States of a lease that has ended.
_OVER = frozenset({"expired", "gone"})


def summary(
    stack: str, outputs: Mapping[str, object], *, behind: str, now: datetime, not_serving: str = "", folder: str = ""
) -> Iterator[Block]:
    """Blocks for the outputs of a stack (`url`, `revision` or `leases`, `model`, `plan`, `smoke`, `simulated`).

    Args:
        stack: The stack's name.
        outputs: Outputs of the program.
        behind: The kind of server, e.g. "a simulated vLLM".
        now: The time, for the hours of leases.
        not_serving: The failure of the health probe, "" where the service answers.
        folder: Folder of localcloud that the commands have to name, "" where they find it by themselves.
    """
    # Either way the figures do not describe the accelerator that the price is for.
    kind = " (simulated)" if outputs.get("simulated") else " (on this machine)"
    leases = _at(outputs, "leases")
    url, model = own_url(outputs), str(outputs.get("model", ""))
    pooled_at = _at(outputs, "plan").get("pooled_at")
    rows = {
        **_addresses(stack, outputs),
        "revision": str(outputs.get("revision", "")).rpartition("/")[2],
        **{f"lease {name}": _lease(_at(leases, name), serving=not not_serving) for name in leases},
        "model": model,
        "memory": _memory(_at(outputs, "plan", "fit")),
        **_prices(outputs),
        "samples of figures": _samples(_at(outputs, "plan", "metrics", "samples")),
        "price basis": _basis(_at(outputs, "plan", "cost")),
        "checked" if not not_serving else "checked before": _verdict(
            _at(outputs, "smoke", "verdict"), serving=not not_serving
        ),
        **_measured_lines(_at(outputs, "smoke", "figures"), kind),
    }
    headline = f"{stack} is in service on localcloud, served by {behind}"
    if not_serving:
        headline = f"{stack} is deployed on localcloud and not in service: {off_hours(outputs, now) or not_serving}"
    yield from (Line(), Line(headline, Role.HEADING), Line())
    yield NamedValues([(label, text or None) for label, text in rows.items()])
    yield Line()
    if not_serving:
        yield Line(_repair(outputs, now))
    else:
        yield Line("Send a request, show the outputs, tear it down:")
        yield Line()
        commands = [*_request(url, model, pooled_at, folder), *_question(stack, pooled_at, folder)]
        yield from (Line(command, is_verbatim=True) for command in commands)
    yield Line()
    yield from (Line(command, is_verbatim=True) for command in _actions(stack, folder))
    yield Line()


def own_url(outputs: Mapping[str, object]) -> str:
    """URL of the first region's service: an address with a name of its own is in no DNS of this machine."""
    first = next(iter(_region_names(outputs)), "")
    return str(_at(outputs, "urls").get(first) or outputs.get("url", ""))


def _addresses(stack: str, outputs: Mapping[str, object]) -> dict[str, str]:
    """The address with a name of its own, the URL of each region, and the door for callers by key."""
    door = {}
    if outputs.get("door"):
        door["door for keys"] = f"{outputs['door']}; `bezel keys create {shell_word(stack)}` makes a key"
    urls, address = _at(outputs, "urls"), _at(outputs, "address")
    rows = {"address": f"https://{address.get('domain')}, at {address.get('ip')}"} if address else {}
    if _at(address, "check").get("judged") is False:
        why, asked = _at(address, "check").get("detail"), f"`bezel endpoint {shell_word(stack)}`"
        rows["callers"] = f"could not connect when a deploy last tried: {why}; {asked} tries again"
    named = _region_names(outputs)
    if len(named) < 2:
        return {**rows, "url": own_url(outputs), **door}
    return rows | {f"url {region}": str(urls.get(region, "")) for region in named} | door


def _region_names(outputs: Mapping[str, object]) -> list[str]:
    """Regions in the order of the stack file, which an output that is a mapping does not keep."""
    regions = outputs.get("regions")
    return [str(each) for each in regions] if isinstance(regions, list) else []


def off_hours(outputs: Mapping[str, object], now: datetime) -> str:
    """When the next lease is requested, outside its hours; "" in them, and for stacks without hours."""
    leases = _at(outputs, "leases")
    windows = [window for name in leases for window in _windows(_at(leases, name))]
    start = next_start(windows, now) if windows and not is_within(windows, now) else None
    return f"it is outside its hours, and the next lease is requested at {start:%Y-%m-%d %H:%M} UTC" if start else ""


def _windows(lease: Mapping[str, object]) -> list[Window]:
    hours = lease.get("hours")
    return [Window(**window) for window in hours] if isinstance(hours, list) else []


def _repair(outputs: Mapping[str, object], now: datetime) -> str:
    if off_hours(outputs, now):
        return "A change of the stack leases a machine for its checks at any time. Or:"
    if "leases" in outputs:
        return (
            "A lease that has ended is requested again only with `renew: true` under `bezel:lease` in the stack file; "
            "otherwise run `make up` again, or:"
        )
    return "Run `make up` again; it reports why a service stays down. Or:"


def _at(outputs: Mapping[str, object], *path: str) -> Mapping[str, object]:
    value: object = outputs
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _lease(lease: Mapping[str, object], *, serving: bool) -> str:
    """A lease's zone, its end, its cost so far and in total."""
    cost = _at(lease, "cost")
    state, zone, until, as_of = (lease.get("state"), lease.get("zone"), lease.get("ends_at"), cost.get("as_of"))
    so_far = f"{_usd(cost, 'so_far_usd', 2)} so far (as of {as_of})"
    if state in _OVER:
        return f"{state}, was in {zone}{f', planned end {until}' if until else ''}; {so_far}"
    if windows := _windows(lease):
        times = "; ".join(f"from {window.start} until {window.end} ({window.zone})" for window in windows)
        return f"{zone}, leased {times}; {_usd(cost, 'at_end_usd', 2)} at most for each"
    where = f"{state} in {zone}" if serving else f"was {state} in {zone} at the last check"
    ends = f"ends {until}" if until else "without an end"
    return f"{where}, {ends}; {so_far}, {_usd(cost, 'at_end_usd', 2)} at its end"


def _memory(fit: Mapping[str, object]) -> str:
    if not fit:
        return ""
    line = fit_line(fit)
    return f"{line} (planned)" if line else ""


def _prices(outputs: Mapping[str, object]) -> dict[str, str]:
    """The price; where several regions or an address add to it, that of an instance in each, and the sum."""
    cost, total = _at(outputs, "plan", "cost"), _at(outputs, "plan", "cost", "total")
    regions = _at(total, "regions")
    if "usd_per_hour_of_fallback" in cost:
        return {"price": _price(cost), "price of the fallback": _price_of_fallback(cost)}
    if not total or "usd_per_lease" in cost:
        return {"price": _price(cost)}
    if len(regions) < 2:
        rows = {"price of an instance": _price(cost)}
    else:
        names = [name for name in _region_names(outputs) if name in regions] or list(regions)
        rows = {f"price in {name}": _price(_at(regions, name), months=False) for name in names}
    together = (
        f"{_usd(total, 'usd_per_hour_all_instances')} per hour at most, {_usd(total, 'usd_per_month_without_traffic')} "
        "per month without traffic"
    )
    return rows | {"price in all": together}


def _samples(by_period: Mapping[str, object]) -> str:
    """The most samples of vLLM's figures over time and their price; "" where none are kept."""
    if not by_period:
        return ""
    period = max(by_period, key=lambda name: float(str(_at(by_period, name).get("millions_at_most", 0))))
    samples = _at(by_period, period)
    until = "per month" if period.startswith("month") else "until the leases end"
    return f"{samples.get('millions_at_most')} million and {_usd(samples, 'usd_at_most', 2)} {until} at most"


def _price_of_fallback(cost: Mapping[str, object]) -> str:
    return (
        f"{_usd(cost, 'usd_per_hour_of_fallback', 4)} per hour at most while it serves, with the gateway; "
        f"{_usd(cost, 'usd_per_hour_in_a_change', 4)} per hour at most while one takes over from the other; "
        f"{_usd(cost, 'usd_per_hour_at_rest', 4)} per hour without a lease and without requests"
    )


def _price(cost: Mapping[str, object], *, months: bool = True) -> str:
    if not cost:
        return ""
    if "usd_per_lease" in cost:
        hours = f"{float(str(cost.get('lease_seconds'))) / 3600:g} h"
        door = " and the door" if cost.get("door") else ""
        return (
            f"{_usd(cost, 'usd_per_hour', 4)} per hour and {_usd(cost, 'usd_per_lease', 2)} for {hours} of "
            f"accelerators; with the gateway{door} at most {_usd(cost, 'usd_per_hour_with_gateway', 4)} per hour, "
            f"{_usd(cost, 'usd_per_lease_with_gateway', 2)} for {hours}"
        )
    hour = f"{_usd(cost, 'usd_per_hour')} per hour while an instance runs"
    if not months:
        return hour
    return (
        f"{hour}, {_usd(cost, 'usd_per_month_always_on')} per month if always on, "
        f"{_usd(cost, 'usd_per_month_without_traffic')} per month without traffic"
    )


def _basis(cost: Mapping[str, object]) -> str:
    """Notes on the price: which parts are derived from another row, and what it leaves out."""
    lines = cost.get("lines")
    derived = [
        str(line["item"])
        for line in (lines if isinstance(lines, list) else [])
        if isinstance(line, Mapping) and line.get("kind") == "derived"
    ]
    left_out = cost.get("not_included")
    parts = [f"derived: {', '.join(derived)}"] if derived else []
    parts += [f"not included: {', '.join(map(str, left_out))}"] if isinstance(left_out, list) and left_out else []
    return "; ".join(parts)


def _usd(cost: Mapping[str, object], key: str, digits: int | None = None) -> str:
    """Format an amount with the digits of the output; one of a lease to the cent, as on an invoice."""
    value = cost.get(key)
    if not isinstance(value, int | float):
        return f"an unknown price ({value})"
    amount = Decimal(repr(value))
    return f"{exact(amount) if digits is None else round_usd(amount, digits)} USD"


def _verdict(verdict: Mapping[str, object], *, serving: bool) -> str:
    """Passed checks, and skipped ones with the reason; in the past tense where the service has stopped serving."""
    checks = _at(verdict, "checks")
    if not checks or not verdict.get("ok"):
        return ""
    left_out = {name: _at(checks, name).get("detail") for name in checks if _at(checks, name).get("judged") is False}
    passed = sorted(set(checks) - set(left_out))
    how = "passed" if left_out or not serving else "all passed"
    parts = [f"{', '.join(passed)}: {how}"] if passed else []
    return "; ".join([*parts, *(f"{name}: not checked ({why})" for name, why in sorted(left_out.items()))])


def _measured_lines(figures: Mapping[str, object], kind: str) -> dict[str, str]:
    """The figures, or the reason for their absence, with notes for the reader."""
    if not figures:
        return {}
    state = str(figures.get("state") or "ok")
    texts = figures.get("notes")
    notes = [str(text) for text in texts] if isinstance(texts, list) else []
    row = {f"measured{kind}": _figures(figures)} if state in _MEASURED else {"not measured": state.replace("_", " ")}
    return row | {f"note{'' if len(notes) == 1 else f' {number}'}": note for number, note in enumerate(notes, 1)}


def _figures(figures: Mapping[str, object]) -> str:
    if is_pooled(figures):
        rates = ", ".join(rates_of(figures))
        counted = f"{figures.get('completed')} of {figures.get('requests')} requests answered"
        return f"{rates}, with {figures.get('concurrency')} users; {counted}{_failures(_at(figures, 'failed'))}"
    ttft, tpot = _at(figures, "ttft_ms").get("p50"), _at(figures, "tpot_ms").get("p50")
    first, further = ("not measurable" if value is None else f"{value} ms" for value in (ttft, tpot))
    return (
        f"ttft p50 {first}, tpot p50 {further}, {figures.get('output_tokens_per_second')} output tokens/s with "
        f"{figures.get('concurrency')} users; {figures.get('completed')} of {figures.get('requests')} requests answered"
        + _failures(_at(figures, "failed"))
    )


def _failures(failed: Mapping[str, object]) -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
    return f", the others failed ({kinds}): read the container's log before trusting the figures" if kinds else ""


def _request(url: str, model: str, pooled_at: object, folder: str) -> list[str]:
    """A request as a command: a chat's, or to the endpoint of a model that pools; none where only a plugin asks it."""
    if pooled_at == "":
        return ["  only a plugin of the server asks this model"]
    body = (
        f'{{"model": {json.dumps(model)}, "stream": true, "messages": [{{"role": "user", "content": "Say hello."}}]}}'
    )
    if pooled_at is not None:
        ranks = str(pooled_at).endswith("/rerank")
        fields = '"query": "Who?", "documents": ["We.", "They."]' if ranks else '"input": "Say hello."'
        body = f'{{"model": {json.dumps(model)}, {fields}}}'
    address = f"{url}{'/v1/chat/completions' if pooled_at is None else pooled_at}"
    return [
        f"  curl -N {shell_word(address)} \\" if pooled_at is None else f"  curl {shell_word(address)} \\",
        f'    -H "Authorization: Bearer $(.venv/bin/bezel local token {shell_word(url)} --dir {shell_word(folder)})" \\'
        if folder
        else f'    -H "Authorization: Bearer $(.venv/bin/bezel local token {shell_word(url)})" \\',
        f"    -H 'Content-Type: application/json' -d {shell_word(body)}",
    ]


def _question(stack: str, pooled_at: object, folder: str) -> list[str]:
    """The commands that ask the server as an operator does, with its times; none where only a plugin asks it."""
    if pooled_at == "":
        return []
    arguments = '"Who?" --document "We." --document "They."' if str(pooled_at).endswith("/rerank") else '"Say hello."'
    option = f" --dir {shell_word(folder)}" if folder else ""
    return [
        "",
        f'  eval "$(.venv/bin/bezel local env{option})"',
        f"  .venv/bin/bezel query {shell_word(stack)} {arguments} --stats",
    ]


def _actions(stack: str, folder: str) -> list[str]:
    """The commands for outputs and end; a recipe of make takes no folder."""
    if folder:
        return [
            f"  .venv/bin/bezel local outputs {shell_word(stack)} --dir {shell_word(folder)}",
            f"  .venv/bin/bezel local down {shell_word(stack)} --dir {shell_word(folder)}",
        ]
    if stack == "l4-qat":
        return ["  make outputs", "  make down"]
    return [f"  make outputs STACK={shell_word_for_make(stack)}", f"  make down STACK={shell_word_for_make(stack)}"]
