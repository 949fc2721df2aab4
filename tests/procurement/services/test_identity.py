"""Who a card is, against order, catalogue, packing list and what came before; what is not known is said."""

import pytest

from catalog.reference import accelerators, device_identity, document
from procurement.evidence.policy import EvidenceContext, default_policy
from procurement.evidence.read import read_evidence
from procurement.identity import expected_identity
from procurement.models import BurnInRun, EvidenceFile, UnitVerdict
from procurement.models.burn_in import ItemResult
from procurement.services.evidence import context_for
from tests.procurement import builders as b

SAMPLE = (b.SAMPLES / "15_nvidia_smi_qx_identity_mismatch.xml").read_text("utf-8")
H100 = "nvidia-h100-sxm5-80gb"


def read(text: str, **order):
    context = EvidenceContext.from_json({"order_context": {"condition": "new", **order}})
    return read_evidence(text.encode(), context=context)


def codes(found, index: int = 0) -> set[str]:
    return {reason.code for reason in found.devices[index].reasons}


def test_the_catalogue_and_the_policy_say_the_same_of_a_device():
    for row in document("device_identity")["devices"]:
        assert row["slug"] in accelerators()
        assert row["source"]
        assert row["as_of"]
        model = default_policy().model(accelerators()[row["slug"]]["name"])
        assert model is not None
        assert model.identity["device_id"] == row["device_id"]
        assert model.identity["memory_mib"] == row["memory_mib"]
        assert model.identity["power_w"] == row["power_default_w"]
    assert device_identity("amd-instinct-mi300x-oam") is None
    assert expected_identity("amd-instinct-mi300x-oam") == {}


def first_h100(found) -> int:
    return next(
        i
        for i, d in enumerate(found.devices)
        if d.model == "NVIDIA H100 80GB HBM3" and d.verdict != "fail"
    )


def test_what_is_not_known_is_told_one_by_one_and_never_passes():
    found = read(
        SAMPLE, tell_unknown=True, ordered_model="NVIDIA H100 80GB HBM3", **expected_identity(H100)
    )
    told = codes(found, first_h100(found))
    assert {"vbios_not_known", "part_number_not_known"} <= told
    assert not told & {
        "device_id_not_known",
        "memory_not_known",
        "power_not_known",
        "clocks_not_known",
    }
    bare = read(SAMPLE, tell_unknown=True)
    assert "vbios_not_known" in codes(bare, first_h100(bare))


@pytest.mark.parametrize(
    ("old", "new", "code", "verdict"),
    [
        ("<max_power_limit>700.00 W", "<max_power_limit>800.00 W", "power_max_differs", "fail"),
        ("<default_power_limit>700.00 W", "<default_power_limit>600.00 W", "power_default_differs", "fail"),
        ("<sm_clock>1980 MHz", "<sm_clock>2100 MHz", "max_sm_differs", "fail"),
        ("<total>81559 MiB", "<total>81000 MiB", "memory_not_golden", "warn"),
        ("<total>81559 MiB", "<total>40960 MiB", "memory_size", "fail"),
        ("233010DE", "232210DE", "model_mismatch", "fail"),
    ],
)  # fmt: skip
def test_each_relabelled_or_overclocked_figure_is_named(old, new, code, verdict):
    assert old in SAMPLE
    before = read(SAMPLE, ordered_model="NVIDIA H100 80GB HBM3", **expected_identity(H100))
    index = first_h100(before)
    found = read(
        SAMPLE.replace(old, new), ordered_model="NVIDIA H100 80GB HBM3", **expected_identity(H100)
    )
    reasons = {reason.code: reason.verdict.value for reason in found.devices[index].reasons}
    assert reasons[code] == verdict
    assert code not in codes(before, index)


def test_part_number_and_vbios_are_compared_with_order_and_earlier_cards():
    found = read(SAMPLE, expected_part_number="900-00000-0000-000", vbios_seen=["11.11.11.11.11"])
    assert {"part_number_differs", "vbios_new"} <= codes(found, first_h100(found))


@pytest.mark.django_db
def test_the_order_and_what_was_accepted_before_are_what_files_are_judged_by():
    s = b.shop()
    first = b.burned_in(s)
    b.accepted(s, first)
    file = first.evidence.get()
    card = UnitVerdict.objects.filter(evidence=file).first().asset
    other = EvidenceFile.objects.create(
        delivery=first, file=file.file, sha256="0" * 64, created_by=s.engineer
    )
    UnitVerdict.objects.create(
        evidence=other,
        asset=card,
        bound_by="serial",
        verdict="pass",
        figures={"vbios": "96.00.A5.00.01"},
    )
    second = b.received(
        s, b.issued(s), note_number="DN-2",
        lines=[{"position": 1, "quantity": "8", "units": b.units([f"Z{n}" for n in range(8)], [])}],
    )  # fmt: skip
    order = context_for(second)["order_context"]
    assert order["expected_device_id"] == "2330"
    assert order["vbios_seen"] == ["96.00.A5.00.01"]
    assert order["tell_unknown"] is True


@pytest.mark.django_db
def test_one_item_waits_for_what_is_not_known_and_the_others_pass():
    s = b.shop()
    delivery = b.received(s)
    run = b.burning(s, delivery)[0]
    file = b.upload(s, delivery)
    BurnInRun.objects.filter(pk=run.pk).update(clock_from=file.created_at)
    EvidenceFile.objects.filter(pk=file.pk).update(format="nvidia_smi_q_xml")
    UnitVerdict.objects.filter(evidence=file, asset=run.asset).update(
        verdict="warn",
        reasons=[
            {
                "rule": "vbios_not_known",
                "verdict": "warn",
                "message": {"template": "not known", "params": {}},
            }
        ],
    )
    run.refresh_from_db()
    b.burn_in.refresh_run(run)
    results = dict(run.items.values_list("item__code", "result"))
    assert results["A2.8"] == ItemResult.REVIEW
    assert results["A2.5"] == ItemResult.PASS
