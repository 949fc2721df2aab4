"""A study of a request that names its accelerator."""

import pytest

from core.organisation import today
from planning.services.studies import prepare
from planning.study.request import parse_request

pytestmark = pytest.mark.django_db


def test_a_named_accelerator_is_resolved_against_the_catalogue(organisation):
    from planning.services.snapshots import snapshot
    from planning.study.search.run import Setting

    request = parse_request(
        {"kind": "gpu_hours", "gpu_hours": 1000, "accelerators": 8, "accelerator": "H100"}
    )
    inputs = prepare(request, snapshot(today()), Setting(currency="CNY"))
    assert [
        slug.startswith("nvidia-h100") or slug.startswith("h100")
        for slug in inputs.request.accelerators
    ] == [True]


def test_a_market_has_one_hash_whoever_reads_it(organisation):
    """Labels in the reader's language would make two studies of the same inputs out of one."""
    from django.utils import translation

    from catalog.models import CloudOffer
    from catalog.services.loading import load_reference
    from planning.services.snapshots import database_snapshot
    from planning.study.search.snapshot import content_hash

    load_reference()
    CloudOffer.objects.filter(pk=CloudOffer.objects.values("pk")[:1]).update(complete=False)
    found = []
    for language in ("en", "zh-hans"):
        with translation.override(language):
            found.append(database_snapshot(today()))
    assert any("%(way)s" in row.reason.template for row in found[0].unpriced)
    assert content_hash(found[0].to_json()) == content_hash(found[1].to_json())
