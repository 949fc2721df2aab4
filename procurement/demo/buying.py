"""What procurement has on its desk: an order on its way, quotes to compare, a sealed RFQ, an approved plan."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from core.models import User
from planning.models import CapacityRequest
from planning.services import discussion
from planning.workloads import Kind
from procurement.demo.stage import Stage, Story, bought, decide, file_request, plan_and_submit
from procurement.demo.terms import FULL, SHORT, TRAPS, card_line
from procurement.models import Quote
from procurement.services import awards, deliveries, orders, quotes, rfqs
from procurement.services.vendors import create_vendor

VENDORS = {
    "xinghe": {
        "name": "Xinghe Systems 星河系统集成", "channel": "integrator", "currency": "CNY",
        "time_zone": "Asia/Shanghai", "payment_terms": "30 % / 60 % / 10 %",
        "contacts": [{"name": "黄蕾", "role": "大客户经理", "email": "huang@xinghe.example"}],
    },
    "borealis": {
        "name": "Borealis Servers 北辰服务器", "channel": "maker", "currency": "USD", "time_zone": "Asia/Taipei",
        "payment_terms": "Net 30",
        "contacts": [{"name": "Irene Ko", "role": "Sales", "email": "irene@borealis.example"}],
    },
    "dingsheng": {
        "name": "Dingsheng Trading 鼎盛商贸", "channel": "integrator", "currency": "CNY",
        "time_zone": "Asia/Shanghai", "payment_terms": "款到发货",
    },
    "strait": {
        "name": "Strait Cloud 海峡云", "channel": "cloud", "currency": "SGD", "time_zone": "Asia/Singapore",
        "payment_terms": "Monthly",
    },
}  # fmt: skip

# Why the other team's idle cards do not do; both of its newer requests have to say it.
RENTED = "海峡云租用的四张 L40S 只用于召回压测，合同月底到期不再续租；在线服务需要自有机房的卡。"


def register(s: Stage) -> Story:
    """Four vendors: an integrator, a maker in dollars, a trader with traps, and a cloud."""
    yield s.office(125, 11)
    for key, fields in VENDORS.items():
        s.vendors[key] = create_vendor(by=s.wu, **fields)  # type: ignore[arg-type]


def _approve(s: Stage, request: CapacityRequest, days: Sequence[int], by: Sequence[User]) -> Story:
    for ago, person in zip(days, by, strict=True):
        yield s.office(ago, 11 if person is s.he else 16)
        decide(request, person)


def on_its_way(s: Stage) -> Story:
    """Recall cards of the other team, in dollars: ordered, promised, announced by the vendor."""
    yield s.office(58, 10)
    request = file_request(
        s, by=s.ming, team="search", kind=Kind.GPU_HOURS, title="Recall ranking inference 召回粗排推理卡",
        workload={"gpu_hours": "50000", "accelerators": "8", "accelerator": "nvidia-l40s"},
        justification="Recall moved from CPU to GPU; p99 must stay below 40 ms at the evening peak. "
        "Logs hold user data, so the cards stand in our own room.",
        need_in=25, duration_days=1095, data_residence="organisation",
    )  # fmt: skip
    plan_and_submit(request, by=s.ming, choose=bought)
    yield from _approve(s, request, (56, 55, 54), (s.chen, s.he, s.chen))
    yield s.office(51, 14)
    rfq = rfqs.create_rfq(
        by=s.wu, title="8 × L40S recall ranking 召回", request_ids=[request.pk], deadline=s.at(42, 17),
        vendor_ids=[s.vendors[name].pk for name in ("xinghe", "borealis")], sealed=False,
        deliver_by=s.day(-20), warranty_months=36,
    )  # fmt: skip
    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.wu)
    yield s.office(46, 15)
    quotes.record_quote(
        rfq_id=rfq.pk, vendor_id=s.vendors["xinghe"].pk, by=s.wu, currency="CNY", reference="XH-0488",
        valid_until=s.day(0), lead_time_days=45, lines=[card_line("NVIDIA L40S 48GB PCIe", 8, Decimal(79_000))],
        warranty={**FULL, "onsite_months": 12},
    )  # fmt: skip
    yield s.office(45, 10)
    chosen = quotes.record_quote(
        rfq_id=rfq.pk, vendor_id=s.vendors["borealis"].pk, by=s.wu, currency="USD", reference="Q-90377",
        valid_until=s.day(0), lead_time_days=42,
        lines=[card_line("NVIDIA L40S 48GB PCIe", 8, Decimal(9_400), tax="0.09")],
        warranty={**SHORT, "start_trigger": "delivery", "advance_replacement": True},
    )  # fmt: skip
    yield s.at(42, 17, 5)
    rfqs.close_rfq(rfq_id=rfq.pk, by=None)
    yield s.office(40, 14)
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=chosen.pk, by=s.wu,
        reason="8 % cheaper per warranted year, from the maker itself; delivery in time for the evening peak project.",
    )  # fmt: skip
    yield s.office(39, 17)
    awards.approve_award(award_id=award.pk, by=s.chen)
    yield s.office(37, 10)
    order = orders.issue_order(order_id=award.orders.get().pk, by=s.wu)
    yield s.office(35, 10)
    orders.acknowledge_order(order_id=order.pk, promised_on=s.day(-4), by=s.wu)
    yield s.office(2, 16)
    deliveries.announce_delivery(
        order_id=order.pk, note_number="BOR-55120", by=s.wu, expected_on=s.day(-4), shipped_on=s.day(3),
        serials=[f"1320724{n:06}" for n in range(81_204, 81_212)],
    )  # fmt: skip


def to_compare(s: Stage) -> Story:
    """Three opened quotes: the dear one with the best terms, one in dollars, and a cheap one with traps."""
    yield s.office(33, 10)
    request = file_request(
        s, by=s.lin, team="foundation", kind=Kind.GPU_HOURS, title="预训练扩容 16 卡 Pre-training expansion",
        workload={"gpu_hours": "120000", "accelerators": "16", "accelerator": "nvidia-h100-sxm5-80gb"},
        justification="下一代基座 Q+1 开始预训练，现有卡全部在微调；租用同等规模三年约为自购的两倍。",
        need_in=60, duration_days=1095, data_residence="organisation",
    )  # fmt: skip
    plan_and_submit(request, by=s.lin, choose=bought)
    yield from _approve(s, request, (31, 29, 28), (s.chen, s.he, s.chen))
    yield s.office(24, 14)
    rfq = rfqs.create_rfq(
        by=s.wu, title="16 × H100 SXM5 预训练扩容", request_ids=[request.pk], deadline=s.at(9, 17),
        vendor_ids=[s.vendors[name].pk for name in ("xinghe", "borealis", "dingsheng")], sealed=False,
        deliver_by=s.day(-55), warranty_months=36,
        terms="全新原厂件；72 小时烤机视为正常使用。All parts new; the burn-in counts as normal use.",
    )  # fmt: skip
    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.wu)
    offers = (
        (17, "xinghe", "CNY", "XH-0561", 231_000, "0.13", 50, FULL),
        (14, "borealis", "USD", "Q-91862", 31_800, "0.09", 65, SHORT),
        (11, "dingsheng", "CNY", "DS20-77", 198_000, "0.13", 20, TRAPS),
    )  # fmt: skip
    for ago, vendor, currency, reference, price, tax, lead, terms in offers:
        yield s.office(ago, 15)
        _quote(
            s, rfq.pk, vendor, currency, reference, price, tax, lead, terms, 16, "H100 80GB SXM5"
        )
    yield s.at(9, 17, 5)
    rfqs.close_rfq(rfq_id=rfq.pk, by=None)
    yield s.office(7, 10)
    discussion.comment(
        request_id=request.pk, by=s.wu,
        text="鼎盛最便宜，但质保自发货起 12 个月、允许翻新件、不认烤机。倾向星河，等 @chen 意见。",
    )  # fmt: skip


def _quote(
    s: Stage, rfq_id: int, vendor: str, currency: str, reference: str, price: int, tax: str, lead: int,
    terms: dict[str, object], quantity: int, name: str,
) -> Quote:  # fmt: skip
    return quotes.record_quote(
        rfq_id=rfq_id, vendor_id=s.vendors[vendor].pk, by=s.wu, currency=currency, reference=reference,
        valid_until=s.day(-30), lead_time_days=lead, warranty=terms,
        lines=[card_line(f"NVIDIA {name}", quantity, Decimal(price), tax=tax)],
    )  # fmt: skip


def sealed(s: Stage) -> Story:
    """A sealed RFQ whose deadline is ahead; two vendors have answered, nobody sees how."""
    yield s.office(20, 10)
    request = file_request(
        s, by=s.ming, team="search", kind=Kind.GPU_HOURS, title="广告精排在线推理 Ads ranking serving",
        workload={"gpu_hours": "60000", "accelerators": "8", "accelerator": "nvidia-h20-sxm5-96gb"},
        justification="精排模型升级到 13B，现有 CPU 集群晚高峰 p99 超过 120 毫秒；离线评测点击率 +2.3 %。",
        need_in=70, duration_days=1095, data_residence="organisation",
    )  # fmt: skip
    plan_and_submit(request, by=s.ming, choose=bought, use_reason=RENTED)
    yield from _approve(s, request, (18, 16, 15), (s.chen, s.he, s.chen))
    yield s.office(8, 14)
    rfq = rfqs.create_rfq(
        by=s.wu, title="8 × H20 广告精排", request_ids=[request.pk], deadline=s.at(-6, 17),
        vendor_ids=[s.vendors[name].pk for name in ("xinghe", "borealis", "dingsheng")], sealed=True,
        deliver_by=s.day(-60), warranty_months=36,
    )  # fmt: skip
    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.wu)
    yield s.office(4, 15)
    _quote(s, rfq.pk, "xinghe", "CNY", "XH-0590", 112_000, "0.13", 35, FULL, 8, "H20 96GB SXM")
    yield s.office(3, 10)
    _quote(s, rfq.pk, "borealis", "USD", "Q-92015", 15_200, "0.09", 50, SHORT, 8, "H20 96GB SXM")


def approved(s: Stage) -> Story:
    """Approved a few days ago: procurement has not asked for quotes yet."""
    yield s.office(13, 10)
    request = file_request(
        s, by=s.lin, team="foundation", kind=Kind.GPU_HOURS, title="长上下文评测集群 Long-context evaluation",
        workload={"gpu_hours": "40000", "accelerators": "8", "accelerator": "nvidia-h200-sxm5-141gb"},
        justification="128K 上下文评测单卡显存不足 100 GB 无法跑全；每个版本需两天内给出结果。",
        need_in=90, duration_days=1095, data_residence="organisation",
    )  # fmt: skip
    plan_and_submit(request, by=s.lin, choose=bought)
    yield from _approve(s, request, (10, 9, 5), (s.chen, s.he, s.chen))
