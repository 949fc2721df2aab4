from decimal import Decimal

import pytest

from core.errors import InputError
from core.money import Money
from planning.economics.advice import PlanFacts, Situation, Stage, advise, five_rules


def text(situation: Situation) -> str:
    return "\n".join(str(message) for message in advise(situation))


def test_a_student_gets_free_tiers_and_one_card_for_3_to_5_k_a_year():
    assert "3000 to 5000 CNY a year" in text(Situation(Stage.STUDENT))
    poor = Situation(Stage.STUDENT, yearly_budget=Money(Decimal(1000), "CNY"))
    assert "1,000.00 CNY is below that" in text(poor)


def test_a_start_up_is_warned_of_two_idle_servers():
    told = text(Situation(Stage.START_UP, planned_utilisation=0.2, spot_saving=0.52))
    assert "classic death" in told
    assert "at 20 % use" in told
    assert "Spot saves 52 %" in told
    assert "classic death" not in text(Situation(Stage.START_UP, planned_utilisation=0.6))


def test_a_mid_size_firm_owns_from_a_hundred_cards_at_70_percent():
    own = Situation(Stage.MID_SIZE, cards_needed=104, planned_utilisation=0.72)
    assert "Own: 72 %" in text(own)
    assert "below the break-even of 70 %" in text(
        Situation(Stage.MID_SIZE, cards_needed=104, planned_utilisation=0.6)
    )
    assert "fewer than the 100" in text(
        Situation(Stage.MID_SIZE, cards_needed=16, planned_utilisation=0.9)
    )


def test_the_computed_break_even_goes_before_the_rule_of_thumb():
    told = text(
        Situation(
            Stage.MID_SIZE, cards_needed=16, planned_utilisation=0.6, break_even_utilisation=0.55
        )
    )
    assert "Own: 60 % planned use is at or above the break-even of 55 %" in told


def test_a_swinging_demand_is_rented_however_busy():
    told = text(
        Situation(Stage.MID_SIZE, cards_needed=200, planned_utilisation=0.9, demand_swing=0.6)
    )
    assert "renting is the safe side" in told
    assert "Own:" not in told


def test_a_large_firm_keeps_cards_busy_before_it_buys():
    told = text(Situation(Stage.LARGE, owned_cards=512, utilisation=0.45, pooling_saving=0.3))
    assert "used 45 %, buy from 70 %" in told
    assert "saves 30 % of the cards" in told


@pytest.mark.parametrize("stage", list(Stage))
def test_idle_cards_and_compliance_come_first_at_any_stage(stage):
    told = advise(Situation(stage, owned_cards=16, utilisation=0.12, may_leave=False))
    assert "public cloud is out" in str(told[0])
    assert "16 owned cards are busy 12 %" in str(told[1])


def test_unknown_figures_keep_their_rules_silent():
    assert advise(Situation(Stage.MID_SIZE)) == ()
    assert five_rules(PlanFacts(training=True)) == ()


def test_the_five_rules():
    bomb = five_rules(PlanFacts(training=True, spot=True))
    assert "bomb" in str(bomb[0])
    assert "about halves" in str(five_rules(PlanFacts(training=True, checkpointable=True))[0])
    service = five_rules(
        PlanFacts(
            training=False,
            latency_checked=False,
            quantised=False,
            batched=False,
            benchmarked=False,
            headroom=0.05,
        )
    )
    assert len(service) == 5
    assert str(service[2]) == "Batch requests: utilisation rises from about 20 % to 80 %"
    assert str(service[4]) == "Headroom is 5 %; keep 20 % and never plan for 100 %"
    exact_only = PlanFacts(training=False, quantised=False, accuracy_loss_allowed=False)
    assert five_rules(exact_only) == ()


def test_a_utilisation_over_100_percent_is_refused():
    with pytest.raises(InputError) as error:
        Situation(Stage.LARGE, utilisation=1.2)
    assert error.value.field == "utilisation"
