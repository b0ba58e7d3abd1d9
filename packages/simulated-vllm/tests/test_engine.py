"""The engine in virtual time: it slows down as its roofline says, queues, shares prefixes, preempts, drafts."""

from __future__ import annotations

import pytest

from bezel_simulated_vllm.scheduling.virtual_load import Rig
from simulated_vllm_support.arguments import L4_QAT

QAT = ("/mnt/models/qat", *L4_QAT)
L4_FLOPS, L4_BANDWIDTH = 121e12, 300e9


@pytest.fixture
def rig(settings):
    def make(*arguments: str, **hardware: object) -> Rig:
        return Rig(settings(*(arguments or QAT), **hardware))

    return make


def test_the_time_to_the_first_token_grows_with_the_prompt(rig):
    """A prompt ten times as long takes about ten times as long."""
    rigs = [rig(), rig()]
    short, long = rigs[0].ask(2000, 1), rigs[1].ask(20_000, 1)
    for one in rigs:
        one.run()
    assert 9 < long.ttft / short.ttft < 13  # attention over a longer context adds to the tenfold arithmetic


def test_the_first_token_comes_no_sooner_than_the_accelerators_peak_allows(rig):
    one = rig()
    outcome = one.ask(20_000, 1)
    one.run()
    least = 2 * one.engine.settings.model.active_parameters * 20_000 / L4_FLOPS
    assert least < outcome.ttft < 4 * least


def test_a_short_prompt_is_bound_by_memory_not_by_its_length(rig):
    rigs = [rig(), rig()]
    tiny, small = rigs[0].ask(8, 1), rigs[1].ask(80, 1)
    for one in rigs:
        one.run()
    assert small.ttft < 1.2 * tiny.ttft


def test_a_decoded_token_takes_as_long_as_reading_the_weights(rig):
    one = rig()
    outcome = one.ask(100, 50)
    one.run()
    peak = one.engine.settings.model.weight_bytes / L4_BANDWIDTH
    assert all(peak < gap < 2 * peak for gap in outcome.gaps)


def test_a_longer_context_slows_decoding(rig):
    # Five sixths of the layers see a window only, so it takes several long sequences to be felt.
    short, long = rig(), rig()
    quick = [short.ask(100, 100) for _ in range(6)]
    slow = [long.ask(30_000, 100) for _ in range(6)]
    short.run()
    long.run()
    assert slow[0].gaps[-1] > 1.15 * quick[0].gaps[-1]


def test_a_batch_shares_the_reading_of_the_weights(rig):
    alone, together = rig(), rig()
    single = alone.ask(100, 50)
    alone.run()
    batch = [together.ask(100, 50) for _ in range(8)]
    together.run()
    assert max(outcome.latency for outcome in batch) < 2.5 * single.latency


def users(one: Rig, count: int, rounds: int = 4) -> None:
    """Closed-loop users: each asks again as soon as it is answered."""
    left = count * (rounds - 1)

    def again() -> None:
        nonlocal left
        if left > 0:
            left -= 1
            one.ask(200, 40, then=again)

    for _ in range(count):
        one.ask(200, 40, then=again)


@pytest.mark.slow
def test_twice_as_many_users_as_places_show_as_waiting_and_in_latency(rig):
    places, crowd = rig(), rig()
    users(places, 8)
    users(crowd, 16)
    assert crowd.value("num_requests_waiting") == 16
    for one in (places, crowd):
        one.step()
    assert (places.value("num_requests_running"), places.value("num_requests_waiting")) == (8, 0)
    assert (crowd.value("num_requests_running"), crowd.value("num_requests_waiting")) == (8, 8)
    assert crowd.value("num_requests_waiting_by_reason", "capacity") == 8
    for one in (places, crowd):
        one.run()
    mean = [sum(outcome.latency for outcome in one.outcomes) / len(one.outcomes) for one in (places, crowd)]
    assert 1.5 < mean[1] / mean[0] < 2.5
    assert crowd.value("num_requests_waiting") == 0


@pytest.mark.slow
def test_throughput_saturates_at_the_number_of_places(rig):
    rates = []
    for count in (1, 4, 8, 16):
        one = rig()
        users(one, count)
        one.run()
        rates.append(sum(len(outcome.tokens) for outcome in one.outcomes) / one.clock.time)
    assert rates[1] > 2 * rates[0]
    assert rates[2] > rates[1]
    assert rates[3] == pytest.approx(rates[2], rel=0.1)


def test_a_long_prompt_delays_others_by_one_chunk_at_most(rig):
    one = rig()
    steady = one.ask(100, 60)
    for _ in range(5):
        one.step()
    one.ask(20_000, 1)
    one.run()
    chunk = 2 * one.engine.settings.model.active_parameters * 4096 / L4_FLOPS
    assert max(steady.gaps) < 4 * chunk
    assert sum(gap > 0.3 * max(steady.gaps) for gap in steady.gaps) >= 20_000 // 4096


def test_a_step_never_computes_more_than_the_batched_tokens(rig):
    one = rig()
    for _ in range(8):
        one.ask(3000, 5)
    while (step := one.engine.scheduler.next_step(0.0)) is not None:
        assert sum(share.tokens for share in step.shares) <= 4096
        one.engine.end(step, 0.0)


def test_a_repeated_prompt_is_taken_from_the_cache_except_its_end(rig):
    one = rig()
    prompt = list(range(5000))
    first = one.ask(prompt, 1)
    one.run()
    second = one.ask(prompt, 1)
    one.run()
    assert second.ttft < first.ttft / 5
    assert one.value("prefix_cache_hits_total") == 5000 // 64 * 64
    assert one.value("prompt_tokens_by_source_total", "local_cache_hit") == 5000 // 64 * 64


@pytest.mark.parametrize("arguments", [("--no-enable-prefix-caching",), ()])
def test_another_prompt_or_a_switched_off_cache_saves_nothing(rig, arguments):
    one = rig(*QAT, *arguments)
    first = one.ask(list(range(5000)), 1)
    one.run()
    second = one.ask([7, *range(5000)] if not arguments else list(range(5000)), 1)
    one.run()
    assert second.ttft == pytest.approx(first.ttft, rel=0.05)
    assert one.value("prefix_cache_hits_total") == 0


SCARCE = ("/mnt/models/tiny", "--max-model-len=2048", "--max-num-seqs=16", "--max-num-batched-tokens=2048")


def test_requests_wait_for_blocks_and_all_are_answered(rig):
    one = rig(*SCARCE, "--num-gpu-blocks-override=200")
    outcomes = [one.ask(1000, 100) for _ in range(12)]
    one.step()
    assert one.value("num_requests_running") < 12
    assert one.value("kv_cache_usage_perc") > 0.5
    one.run()
    assert all(len(outcome.tokens) == 100 for outcome in outcomes)
    assert one.value("kv_cache_usage_perc") == 0


@pytest.mark.slow
def test_a_full_cache_preempts_the_last_and_nothing_is_lost(rig):
    one = rig(*SCARCE, "--num-gpu-blocks-override=200", "--no-enable-prefix-caching")
    outcomes = [one.ask(100, 900) for _ in range(8)]
    one.run()
    assert one.value("num_preemptions_total") > 0
    assert outcomes[0].request.preemptions == 0
    assert all(len(outcome.tokens) == 900 for outcome in outcomes)
    roomy = rig(*SCARCE)
    again = [roomy.ask(100, 900) for _ in range(8)]
    roomy.run()
    assert roomy.value("num_preemptions_total") == 0
    assert [outcome.tokens for outcome in again] == [outcome.tokens for outcome in outcomes]


def test_an_aborted_request_frees_its_place_and_counts_as_no_success(rig):
    one = rig()
    going = [one.ask(100, 400) for _ in range(9)]
    one.step()
    one.engine.abort(going[0].request)
    one.step()
    assert one.value("num_requests_running") == 8
    one.run()
    assert going[0].finish is None
    assert one.value("request_success_total", "length") == 8
    assert one.value("request_success_total", "abort") == 0
    assert one.value("kv_cache_usage_perc") == 0


def test_drafting_yields_several_tokens_a_step_and_counts_them(rig):
    drafting = rig(*QAT, "--spec-model=/mnt/models/assistant", "--spec-tokens=3")
    outcome = drafting.ask(100, 300)
    drafting.run()
    plain = rig()
    same = plain.ask(100, 300)
    plain.run()
    assert outcome.tokens == same.tokens
    assert outcome.chunks < 250 < same.chunks == 300
    assert outcome.latency < same.latency
    drafts, drafted = (
        drafting.value("spec_decode_num_drafts_total"),
        drafting.value("spec_decode_num_draft_tokens_total"),
    )
    accepted = drafting.value("spec_decode_num_accepted_tokens_total")
    by_place = [drafting.value("spec_decode_num_accepted_tokens_per_pos_total", str(place)) for place in range(3)]
    assert drafted == 3 * drafts
    assert accepted == sum(by_place)
    assert by_place == sorted(by_place, reverse=True)
    assert 0.2 < accepted / drafted < 0.7


def test_the_same_seed_writes_the_same_and_another_does_not(rig):
    texts = []
    for seed in (1, 1, 2):
        one = rig()
        outcome = one.ask(list(range(50)), 64, seed=seed, ignore_eos=False)
        one.run()
        texts.append(outcome.tokens)
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.slow
def test_an_answer_ends_by_itself_unless_it_ignores_its_end(rig):
    one = rig()
    natural, forced = one.ask(list(range(50)), 2000, ignore_eos=False), one.ask(list(range(50)), 2000)
    one.run()
    assert natural.finish == "stop"
    assert 40 <= len(natural.tokens) <= 640
    assert (forced.finish, len(forced.tokens)) == ("length", 2000)


@pytest.mark.slow
def test_the_counters_agree_with_what_the_clients_saw(rig):
    one = rig()
    users(one, 6)
    one.run()
    assert one.value("generation_tokens_total") == sum(len(outcome.tokens) for outcome in one.outcomes)
    assert one.value("prompt_tokens_total") == sum(len(outcome.request.prompt) for outcome in one.outcomes)
    assert one.value("request_success_total", "length") == len(one.outcomes)
    # The plain value of a histogram is its sum.
    assert one.value("time_to_first_token_seconds") == pytest.approx(sum(outcome.ttft for outcome in one.outcomes))
    assert one.value("e2e_request_latency_seconds") == pytest.approx(sum(outcome.latency for outcome in one.outcomes))
    assert one.value("inter_token_latency_seconds") == pytest.approx(sum(sum(outcome.gaps) for outcome in one.outcomes))


@pytest.mark.slow
def test_a_mixture_of_experts_decodes_faster_alone_than_in_a_crowd(rig):
    hardware = {"memory_gib": 64, "accelerator": "nvidia-rtx-pro-6000"}
    arguments = ("/mnt/models/moe", "--max-model-len=8192", "--max-num-seqs=64")
    alone, crowd = rig(*arguments, **hardware), rig(*arguments, **hardware)
    single = alone.ask(50, 40)
    alone.run()
    many = [crowd.ask(50, 40) for _ in range(64)]
    crowd.run()
    assert sum(many[0].gaps) > 2 * sum(single.gaps)
