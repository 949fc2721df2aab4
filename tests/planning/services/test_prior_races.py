"""Two people change what is assumed of a stage at once: one does, the other is told."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planning.models.probabilities import StagePrior
from planning.services.probabilities import set_prior
from tests.planning import builders
from tests.planning.races import together

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def test_of_two_first_changes_one_wins_and_the_other_is_stale():
    w = builders.world()
    done = together(
        *(
            lambda share=share: set_prior(
                stage="submitted", share=Decimal(share), weight=10, by=w.finance, version=0
            )
            for share in ("0.2", "0.8")
        )
    )
    assert sorted(done) == ["ok", "stale"]
    assert StagePrior.objects.get().version == 1
