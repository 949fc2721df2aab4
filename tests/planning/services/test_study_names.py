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
