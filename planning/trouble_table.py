"""The whole trouble table, in the order of its page."""

from collections.abc import Mapping

from planning import trouble_cards, trouble_work
from planning.trouble import Symptom

SYMPTOMS: tuple[Symptom, ...] = (*trouble_work.SYMPTOMS, *trouble_cards.SYMPTOMS)
BY_KEY: Mapping[str, Symptom] = {symptom.key: symptom for symptom in SYMPTOMS}
