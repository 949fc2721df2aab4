"""Two people write the same version of a clause at once: one does, the other is told."""

from __future__ import annotations

import pytest

from procurement.models import Clause
from procurement.services.clauses import write_clause
from tests.planning.races import together
from tests.procurement import builders as b

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]
WORDS = {"title_en": "Noise", "title_zh": "噪声", "text_zh": "安静。"}


@pytest.mark.parametrize("version", [0, 1])
def test_of_two_who_write_one_version_one_is_stale(version):
    s = b.shop()
    if version:
        write_clause(code="noise", by=s.procurement, text_en="Loud.", **WORDS)
    done = together(
        *(
            lambda text=text: write_clause(
                code="noise", by=s.procurement, version=version, reason="x", text_en=text, **WORDS
            )
            for text in ("At most 75 dB.", "At most 70 dB.")
        )
    )
    assert sorted(done) == ["ok", "stale"]
    assert Clause.objects.filter(code="noise", version=version + 1).count() == 1
