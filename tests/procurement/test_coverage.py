from core.messages import msg
from procurement.coverage import covered_seconds
from procurement.evidence.types import Caution, DeviceEvidence, Evidence, Reason, Verdict


def evidence(device, *cautions, **metrics):
    return Evidence(
        format="gpu_burn", verdict=device.verdict, policy_version="1", complete=True, devices=(device,),
        cautions=tuple(Caution(code, msg("x")) for code in cautions), metrics=metrics,
    )  # fmt: skip


def card(verdict=Verdict.PASS, *codes):
    return DeviceEvidence(verdict, reasons=tuple(Reason(code, msg("x"), verdict) for code in codes))


def covered(device, *cautions, planned=259200, done=100.0):
    found = evidence(device, *cautions, planned_duration_s=planned, last_pct=done)
    return covered_seconds(found, device)


def test_a_whole_run_covers_what_was_planned():
    assert covered(card()) == 259200
    assert covered(card(), done=50.0) == 129600


def test_a_short_run_covers_what_it_ran():
    assert covered(card(Verdict.INCONCLUSIVE, "too_short"), planned=3600) == 3600


def test_what_proves_nothing_covers_nothing():
    assert covered(card(Verdict.INCONCLUSIVE, "no_work")) == 0
    assert covered(card(Verdict.INCONCLUSIVE)) == 0
    assert covered(card(Verdict.NOT_TESTED)) == 0
    assert covered(card(), "clock_backwards") == 0
    assert covered(card(), "no_stamps") == 0
    assert covered(card(), planned=None) == 0
    assert covered(card(), done=None) == 0


def test_a_sampled_log_covers_its_span_only_when_it_is_whole():
    device = card()
    whole = evidence(device, span_hours=72.0)
    holes = evidence(device, "gap_in_log", span_hours=72.0)
    assert (covered_seconds(whole, device), covered_seconds(holes, device)) == (259200, 0)
