"""The story that went the whole way: asked for, bought, burned in, in service, used and looked back at."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.files.base import ContentFile

from planning.calibration.apply import class_of
from planning.models import CapacityRequest
from planning.models.calibration import OutcomeKind
from planning.models.telemetry import Ownership, SourceKind
from planning.services import allocations, calibration, discussion, month_one
from planning.services.estimates import estimate_request
from planning.services.requests import record_fulfilment
from planning.services.telemetry_sources import create_source, push, receive_file
from planning.workloads import Kind
from procurement.demo.evidence import dcgm_diag, gpu_burn, sacct, use_of_cards, uuid_of
from procurement.demo.stage import (
    ZONE,
    Stage,
    Story,
    bought,
    decide,
    file_request,
    plan_and_submit,
    run_job,
)
from procurement.demo.terms import FULL, SHORT, card_line
from procurement.models import Delivery, Rma
from procurement.selectors.burn_in import burn_in_board, manual_items
from procurement.serials import UnitEntry
from procurement.services import (
    acceptance,
    awards,
    burn_in,
    deliveries,
    evidence,
    invoices,
    orders,
    payments,
    quotes,
    rfqs,
    rmas,
)

H100 = "nvidia-h100-sxm5-80gb"
NAME = "NVIDIA H100 80GB HBM3"  # as the driver prints it
SERIALS = tuple(f"16524230411{n:02}" for n in (7, 12, 18, 23, 31, 44, 52, 69))
FAULTY = 5
PRICE = Decimal(228_000)


def delivered(s: Stage) -> Story:
    """Eight cards for fine-tuning: seven serve since about five weeks, one is at the vendor."""
    yield s.office(118, 10)
    request = file_request(
        s, by=s.lin, team="foundation", kind=Kind.GPU_HOURS,
        title="对话模型微调集群 Dialogue fine-tuning cluster",
        workload={"gpu_hours": "60000", "accelerators": "8", "accelerator": H100},
        justification="对话模型每周微调两次，训练数据含用户会话，不得离开本机房；现租用的云上卡年费已超过自购。",
        need_in=-40, duration_days=1095, data_residence="organisation",
    )  # fmt: skip
    study = plan_and_submit(request, by=s.lin, choose=bought)
    yield s.office(117, 11)
    discussion.comment(
        request_id=request.pk, by=s.he,
        text="现有云上合同 Q2 到期，续租前先比较自购三年的总成本。请在论证里注明。",
    )  # fmt: skip
    yield s.office(117, 16)
    decide(request, s.chen, reason=f"数据不出机房，自购合理。Study {study.pk} reviewed.")
    yield s.office(116, 15)
    decide(request, s.he)
    yield s.office(115, 9, 30)
    decide(request, s.chen)
    yield from _buy(s, request)


def _buy(s: Stage, request: CapacityRequest) -> Story:
    yield s.office(112, 14)
    rfq = rfqs.create_rfq(
        by=s.wu, title="8 × H100 SXM5 微调集群", request_ids=[request.pk], deadline=s.at(103, 17),
        vendor_ids=[s.vendors[name].pk for name in ("xinghe", "borealis", "dingsheng")],
        sealed=True, deliver_by=s.day(40), warranty_months=36,
        terms="含 72 小时烤机验收；序列号清单随货同行。Burn-in of 72 h before acceptance.",
    )  # fmt: skip
    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.wu)
    yield s.office(107, 11)
    chosen = quotes.record_quote(
        rfq_id=rfq.pk, vendor_id=s.vendors["xinghe"].pk, by=s.wu, currency="CNY", reference="XH-0412",
        valid_until=s.day(60), lead_time_days=55, lines=[card_line("NVIDIA H100 80GB SXM5", 8, PRICE)],
        warranty=FULL, payment_terms="30 % / 60 % / 10 %", incoterm="DAP Singapore",
    )  # fmt: skip
    yield s.office(105, 15)
    quotes.record_quote(
        rfq_id=rfq.pk, vendor_id=s.vendors["borealis"].pk, by=s.wu, currency="USD", reference="Q-88120",
        valid_until=s.day(60), lead_time_days=70,
        lines=[card_line("NVIDIA H100 80GB SXM5", 8, Decimal(34_500), tax="0.09")], warranty=SHORT,
    )  # fmt: skip
    yield s.at(103, 17, 5)
    rfqs.close_rfq(rfq_id=rfq.pk, by=None)
    yield s.office(102, 9, 30)
    rfqs.open_bids(rfq_id=rfq.pk, by=s.wu)
    yield s.office(102, 10)
    rfqs.open_bids(rfq_id=rfq.pk, by=s.chen)
    yield s.office(101, 14)
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=chosen.pk, by=s.wu,
        reason="三年质保自验收起算、先换后退，折合每质保卡年最低；交期比另一家早两周。",
    )  # fmt: skip
    yield s.office(100, 11)
    awards.approve_award(award_id=award.pk, by=s.chen)
    yield s.office(99, 15)
    order = orders.issue_order(order_id=award.orders.get().pk, by=s.wu)
    yield s.office(97, 10)
    orders.acknowledge_order(order_id=order.pk, promised_on=s.day(45), by=s.wu)
    yield s.office(48, 16)
    notice = deliveries.announce_delivery(
        order_id=order.pk, note_number="XH-DN-20711", by=s.wu, expected_on=s.day(42),
        shipped_on=s.day(46), serials=SERIALS,
    )  # fmt: skip
    yield s.at(42, 10)
    deliveries.receive_delivery(
        order_id=order.pk, delivery_id=notice.pk, note_number=notice.note_number, arrived_on=s.day(42),
        by=s.zhao, packaging_intact=True, shock_label_clear=True, notes="外箱完好，震动标签未变色。",
        lines=[
            {
                "position": 1,
                "quantity": "8",
                "units": [UnitEntry(serial, uuid_of(serial)) for serial in SERIALS],
            }
        ],
    )  # fmt: skip
    yield from _prove(s, request, order.pk, notice.pk)


def _prove(s: Stage, request: CapacityRequest, order_id: int, delivery_id: int) -> Story:
    yield s.at(41, 9)
    burn_in.start_burn_in(delivery_id=delivery_id, by=s.zhao, site="SG1", rack="R12")
    uuids = [uuid_of(serial) for serial in SERIALS]
    _upload(s, delivery_id, "dcgmi-diag-r3.json", dcgm_diag(SERIALS))
    yield s.at(38, 11)
    log = gpu_burn(model=NAME, uuids=uuids, end=s.at(38, 10), faulty=frozenset({FAULTY}))
    _upload(s, delivery_id, "gpu-burn-72h.log", log)
    yield s.at(38, 14)
    board = burn_in_board(Delivery.objects.get(pk=delivery_id))
    burn_in.decide_items(
        delivery_id=delivery_id, codes=[row.item.code for row in manual_items(board.rows)], result="pass", by=s.zhao,
        note="nvidia-smi -q 与订单逐项核对，型号、显存、功耗上限一致。",
    )  # fmt: skip
    burn_in.complete_ready(delivery_id=delivery_id, by=s.zhao)
    yield s.office(36, 10)
    s.cards = tuple(uuid for n, uuid in enumerate(uuids) if n != FAULTY)
    proposed = acceptance.propose_acceptance(
        delivery_id=delivery_id, by=s.gao, reason="烤机末段出现计算错误，退换处理。"
    )
    rma = Rma.objects.get(asset__serial=SERIALS[FAULTY])
    rmas.file_rma(rma_id=rma.pk, by=s.zhao)
    yield s.office(36, 15)
    acceptance.sign_acceptance(acceptance_id=proposed.pk, by=s.chen)
    yield s.office(35, 11)
    record_fulfilment(
        request_id=request.pk, accepted=7, by=s.wu,
        short_close_reason="七张先投入使用；第八张走 RMA，到货后另行验收。",
    )  # fmt: skip
    allocations.book(
        request_id=request.pk, cards=6, first_day=s.day(35), last_day=s.day(-150), by=s.zhao
    )
    yield from _afterwards(s, request, order_id, rma.pk)


def _upload(s: Stage, delivery_id: int, name: str, content: bytes) -> None:
    run_job(
        evidence.upload_evidence(
            delivery_id=delivery_id, upload=ContentFile(content, name=name), by=s.zhao
        )
    )


def _afterwards(s: Stage, request: CapacityRequest, order_id: int, rma_id: int) -> Story:
    yield s.office(34, 14)
    net = 7 * PRICE
    tax = (net * Decimal("0.13")).quantize(Decimal("0.01"))
    invoice = invoices.capture_invoice(
        order_id=order_id, number="XH-INV-3307", dated_on=s.day(36), currency="CNY", by=s.he,
        lines=[{"position": 1, "quantity": "7", "unit_price": str(PRICE), "tax_rate": "0.13"}],
        stated_tax=tax, stated_gross=net + tax,
    )  # fmt: skip
    invoices.match_invoice(invoice_id=invoice.pk, by=s.he)
    yield s.office(33, 10)
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.chen)
    rmas.authorise_rma(rma_id=rma_id, vendor_number="XH-RMA-0098", by=s.wu, answer="先换后退已受理")
    yield s.office(31, 16)
    rmas.ship_rma(rma_id=rma_id, tracking="SF 1392 7741 0086", by=s.zhao)
    yield s.office(20, 11)
    payments.pay_invoice(
        invoice_id=invoice.pk, by=s.he, paid_on=s.day(22), amount=invoice.gross.amount,
        reference="ICBC 20-88141",
    )  # fmt: skip
    yield s.at(6, 12)  # by the clock, on whatever day of the week
    month_one.look_back(request_id=request.pk)


# --- use and what was learned --------------------------------------------------------------------------------------


def used(s: Stage) -> Story:
    """A collector pushes what the cards do, every week; Slurm's jobs come as a file."""
    yield s.office(35, 15)
    fields: dict[str, Any] = {
        "time_zone": str(ZONE),
        "team": s.team("foundation"),
        "step_seconds": 3600,
    }
    live = create_source(
        by=s.zhao, name="SG1 dcgm-exporter", kind=SourceKind.PUSH, accelerator_slug=H100,
        ownership=Ownership.OWNED, raw_days=14, **fields,
    )  # fmt: skip
    queue = create_source(by=s.zhao, name="SG1 Slurm", kind=SourceKind.SACCT, **fields)
    rented = create_source(
        by=s.zhao, name="Strait Cloud agents 海峡云", kind=SourceKind.PUSH, accelerator_slug="nvidia-l40s",
        ownership=Ownership.RESERVED, **{**fields, "team": s.team("search")},
    )  # fmt: skip
    for week in range(5):
        begun = s.at(35 - 7 * week, 0)
        yield s.at(28 - 7 * week, 0, 10)
        level = 0.66 + 0.04 * week  # the team moves in
        push(source=live, items=use_of_cards(uuids=s.cards, host="sg1-gpu-07", model=NAME, first=begun,
                                             hours=7 * 24, level=level))  # fmt: skip
        push(source=rented, items=use_of_cards(
            uuids=[uuid_of(f"strait-{n}") for n in range(4)], host="strait-l40s-2", model="NVIDIA L40S",
            first=begun, hours=7 * 24, level=0.21))  # fmt: skip
        jobs = sacct(
            account="foundation", first=begun + timedelta(hours=9), days=6, number=4100 + 20 * week
        )
        row, _is_new = receive_file(
            source_id=queue.pk, upload=ContentFile(jobs, name=f"sacct-sg1-{begun:%m%d}.psv"), by=s.zhao
        )  # fmt: skip
        run_job(row)


RUNS = (  # days ago, kind, model, cards, measured speed ÷ what the product had estimated, what ran
    (33, Kind.FINETUNING, "llama-3.1-8b", 4, 0.933, "SFT dialogue v31, 8B, 4 cards"),
    (31, Kind.FINETUNING, "llama-3.1-8b", 7, 0.944, "SFT dialogue v31, 8B, 7 cards"),
    (28, Kind.LORA, "llama-3.1-70b", 4, 0.907, "LoRA 70B 客服语料, 4 cards"),
    (26, Kind.FINETUNING, "llama-3.1-8b", 4, 0.957, "SFT dialogue v32, 8B, 4 cards"),
    (24, Kind.PREFERENCE, "llama-3.1-8b", 4, 0.891, "DPO 8B round 2, 4 cards"),
    (21, Kind.FINETUNING, "llama-3.1-8b", 4, 0.936, "SFT dialogue v33, 8B, 4 cards"),
    (19, Kind.FINETUNING, "llama-3.1-8b", 7, 0.931, "SFT dialogue v33, 8B, 7 cards"),
    (17, Kind.LORA, "llama-3.1-70b", 4, 0.932, "LoRA 70B 客服语料 第二轮, 4 cards"),
)


def learned(s: Stage) -> Story:
    """Measured training speeds beside what the product estimates for the same run; the product learns from them."""
    for ago, kind, model, cards, ratio, what in RUNS:
        yield s.at(ago, 18)
        answer = estimate_request(
            {"kind": str(kind), "model": model, "tokens": 2e8, "sequence_length": 4096,
             "accelerator": [H100], "accelerators": cards}
        )  # fmt: skip
        speed = answer.estimates[0].estimate.figures["throughput"]
        calibration.record_outcome(
            by=s.zhao, reference=what, kind=OutcomeKind.SPEED, estimated=round(speed.p50),
            measured=round(ratio * speed.p50), low=round(speed.p10), high=round(speed.p90), unit="tokens/s",
            accelerator_slug=H100, work=class_of(kind), team=s.team("foundation"), measured_at=s.at(ago, 16),
        )  # fmt: skip
    yield s.at(14, 4, 20)
    calibration.learn()
