"""A vendor's quote as a table: its columns in English and Chinese, the file an RFQ produces, and how a row is read.

One row is one line. What holds for the whole quote (currency, last valid day, lead time, terms, warranty) stands in the
last columns of any row; rows that say it must agree. Nothing here asks the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from core.errors import InputError
from core.exports import Column
from core.imports import (
    Row,
    Table,
    heading,
    parse_date,
    parse_decimal,
    read_table,
    uses_decimal_comma,
)
from core.messages import Message, msg
from procurement.promises import read_promises
from procurement.requirements import read_answers

MAX_LINES = 10_000
# column: what a vendor reads above it
HEADINGS: dict[str, tuple[str, str]] = {
    "line": ("Line", "行号"),
    "rfq_line": ("Answers RFQ line", "对应询价行"),
    "kind": ("Kind", "类别"),
    "description": ("Description", "描述"),
    "manufacturer": ("Manufacturer", "制造商"),
    "part_number": ("Part number", "型号"),
    "bundle": ("Bundle", "套装"),
    "quantity": ("Quantity", "数量"),
    "unit": ("Unit", "单位"),
    "list_price": ("List price", "目录价"),
    "discount_percent": ("Discount (%)", "优惠幅度 (%)"),
    "unit_price": ("Unit price without tax", "不含税单价"),
    "price_breaks": ("Price breaks", "阶梯价"),
    "tax_percent": ("Tax rate (%)", "税率 (%)"),
    "accelerators_per_item": ("Accelerators in one item", "每件加速卡数"),
    "serialised": ("Has serial numbers", "有序列号"),
    "alternative_to": ("Instead of line", "替代行号"),
    "promised": ("Promised throughput", "承诺性能"),
    "currency": ("Currency", "币种"),
    "valid_until": ("Valid until", "报价有效期至"),
    "lead_time_days": ("Lead time (days)", "交期 (天)"),
    "partial_delivery": ("May come in parts", "可分批交货"),
    "tax_mode": ("Tax is computed", "计税方式"),
    "reference": ("Vendor's reference", "报价编号"),
    "incoterm": ("Delivery term", "交货条款"),
    "payment_terms": ("Payment terms", "付款条件"),
    "warranty_months": ("Warranty (months)", "质保 (月)"),
    "warranty_start": ("Warranty starts with", "质保起算"),
    "registration_days": ("Warranty: to be registered within (days)", "质保: 注册期限 (天)"),
    "warrantor": ("Warranty: who answers for it", "质保: 责任方"),
    "covered_items": ("Warranty: what is covered", "质保: 覆盖范围"),
    "labour_months": ("Warranty: months (labour)", "质保: 人工 (月)"),
    "onsite_months": ("Warranty: months (on site)", "质保: 上门 (月)"),
    "service_level": ("Warranty: service level", "质保: 服务级别"),
    "service_hours": ("Warranty: hours, holidays, country", "质保: 服务时段与地区"),
    "response_hours": ("Warranty: response within (h)", "质保: 响应时限 (小时)"),
    "response_clock": ("Warranty: what starts the clock", "质保: 计时起点"),
    "fix_hours": ("Warranty: repaired within (h)", "质保: 修复时限 (小时)"),
    "missed_remedy": ("Warranty: remedy when a target is missed", "质保: 超时补救"),
    "advance_replacement": ("Warranty: replacement sent before the return", "质保: 先行更换"),
    "advance_months": ("Warranty: sent before the return for (months)", "质保: 先行更换期限 (月)"),
    "advance_deposit": ("Warranty: deposit for it", "质保: 先行更换押金"),
    "return_days": ("Warranty: failed part returned within (days)", "质保: 故障件退回期限 (天)"),
    "doa_days": ("Warranty: dead on arrival (days)", "质保: 到货即损 (天)"),
    "doa_from_delivery": ("Warranty: these days count from delivery", "质保: 到货即损自到货起算"),
    "doa_new": ("Warranty: dead on arrival swapped for new", "质保: 到货即损换新"),
    "replacement_new": ("Warranty: replacements are new", "质保: 替换件为新件"),
    "replacement_warranty": ("Warranty: of a replacement", "质保: 替换件的质保"),
    "remedy": ("Warranty: remedy and who chooses it", "质保: 补救方式及选择权"),
    "exclusions": ("Warranty: exclusions", "质保: 免责情形"),
    "burn_in_permitted": (
        "Warranty: a 72 h burn-in is normal use",
        "质保: 72 小时烤机视为正常使用",
    ),
    "continuous_use_permitted": (
        "Warranty: 24×7 full load is normal use",
        "质保: 7×24 满载视为正常使用",
    ),
    "diagnosis": ("Warranty: who diagnoses, by which tool", "质保: 诊断方与工具"),
    "failure_criteria": ("Warranty: what counts as failed", "质保: 故障判定"),
    "performance_promise": ("Warranty: promised performance", "质保: 性能承诺"),
    "no_fault_fee": ("Warranty: fee when no fault is found", "质保: 无故障收费"),
    "freight": ("Warranty: who pays freight and duty", "质保: 运费与关税"),
    "export_control": ("Warranty: export licence for a replacement", "质保: 替换件出口许可"),
    "media_kept": ("Warranty: data-bearing parts may be kept", "质保: 存储介质可保留"),
    "spares": ("Warranty: spares on site", "质保: 现场备件"),
    "transferable": ("Warranty: may be passed on", "质保: 可转让"),
    "customer_swap": ("Warranty: own staff may swap parts", "质保: 可自行更换"),
    "environment": ("Warranty: operating limits", "质保: 运行环境"),
    "firmware_access": ("Warranty: access to firmware", "质保: 固件获取"),
    "software_support": ("Warranty: software subscriptions", "质保: 软件订阅"),
    "extension": ("Warranty: price of an extension", "质保: 延保价格"),
    "end_of_life": ("Warranty: end of life", "质保: 停产日期"),
    "spare_part_years": ("Warranty: spare parts available (years)", "质保: 备件供应 (年)"),
    "cloud_sla": ("Warranty: of cloud capacity", "质保: 云服务承诺"),
    "new_parts_only": ("Warranty: all parts new", "质保: 全新件"),
    "authorised_channel": ("Warranty: authorised channel", "质保: 授权渠道"),
    "requirements": ("What must be reached", "须达到的指标"),
    "answers": ("Answers to the criteria", "指标答复"),
}
LINE_COLUMNS = tuple(HEADINGS)[: tuple(HEADINGS).index("currency")]
HEAD_COLUMNS = tuple(HEADINGS)[len(LINE_COLUMNS) :]
REQUIRED = ("description", "quantity")
# As a quote keeps it: the column that says it.
COLUMN_OF = {
    "tax_rate": "tax_percent", "discount_rate": "discount_percent", "breaks": "price_breaks",
    "promises": "promised", "months": "warranty_months", "start_trigger": "warranty_start",
}  # fmt: skip
PRICE_COLUMNS = frozenset({"list_price", "discount_percent", "unit_price", "price_breaks"})
NUMBER_COLUMNS = ("quantity", "list_price", "discount_percent", "unit_price", "tax_percent")
# Words of a cell, in both languages, and what they stand for.
KINDS = {
    "server": "server", "服务器": "server", "整机": "server",
    "accelerator": "accelerator", "accelerator_card": "accelerator", "加速卡": "accelerator", "显卡": "accelerator",
    "cloud": "cloud", "cloud_capacity": "cloud", "云": "cloud", "云资源": "cloud",
    "network": "network", "网络": "network",
    "storage": "storage", "存储": "storage",
    "service": "service", "服务": "service",
    "software": "software", "软件": "software",
    "freight": "freight", "freight_and_insurance": "freight", "运费": "freight", "运费与保险": "freight",
    "other": "other", "其他": "other",
}  # fmt: skip
STARTS = {
    "order": "order", "订单": "order", "invoice": "invoice", "发票": "invoice", "shipment": "shipment",
    "发货": "shipment", "delivery": "delivery", "到货": "delivery", "power_on": "power_on", "上电": "power_on",
    "首次上电": "power_on", "acceptance": "acceptance", "验收": "acceptance", "签署验收": "acceptance",
    "registration": "registration", "注册": "registration",
}  # fmt: skip
TAX_MODES = {
    "document": "document", "单据": "document", "整单": "document", "line": "line", "逐行": "line", "行": "line",
}  # fmt: skip
SERVICE_LEVELS = {
    "rtb": "rtb", "return_to_the_workshop": "rtb", "送修": "rtb", "返厂": "rtb", "depot": "depot", "网点更换": "depot",
    "parts": "parts", "parts_only": "parts", "仅配件": "parts", "onsite_nbd": "onsite_nbd", "nbd": "onsite_nbd",
    "次日上门": "onsite_nbd", "onsite_4h": "onsite_4h", "4h": "onsite_4h", "4小时上门": "onsite_4h",
    "credits": "credits", "服务抵扣": "credits",
}  # fmt: skip
WARRANTORS = {
    "maker": "maker", "oem": "maker", "整机厂商": "maker", "chip_maker": "chip_maker", "芯片厂商": "chip_maker",
    "distributor": "distributor", "经销商": "distributor", "分销商": "distributor", "reseller": "reseller",
    "seller": "reseller", "卖方": "reseller",
}  # fmt: skip
WHOLE_TERMS = frozenset(
    {
        "lead_time_days", "warranty_months", "labour_months", "onsite_months", "response_hours", "fix_hours",
        "advance_months", "return_days", "doa_days", "spare_part_years", "registration_days",
    }
)  # fmt: skip
YES_TERMS = frozenset(
    {
        "partial_delivery", "advance_replacement", "doa_from_delivery", "doa_new", "replacement_new",
        "burn_in_permitted", "continuous_use_permitted", "media_kept", "transferable", "customer_swap",
        "new_parts_only", "authorised_channel",
    }
)  # fmt: skip
YES = frozenset({"yes", "true", "1", "y", "是"})
NO = frozenset({"no", "false", "0", "n", "否"})
# column that every row must say, and what it may be: nothing is guessed, and no tax is written 0
SAID = {
    "kind": ", ".join(dict.fromkeys(KINDS.values())),
    "tax_percent": "0 … 100",
    "serialised": "yes, no",
}
BREAK = re.compile(r"(\d{1,9})\s*(?:-|–|~|to|至)\s*(\d{0,9})\s*[:：]\s*(\S+)")


def _folded(text: str) -> str:
    return heading(text).replace("（", "(").replace("）", ")")


ALIASES = {
    alias: name
    for name, names in HEADINGS.items()
    for word in names
    for alias in (heading(word), heading(word.replace("(", "（").replace(")", "）")))
}


@dataclass(slots=True)
class Line:
    """One row: where it begins in the file, its cells, what they mean, and what is wrong with it."""

    row: int
    cells: Mapping[str, str]
    given: dict[str, Any] = field(default_factory=dict)  # as a service takes a line
    errors: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QuoteTable:
    """A file that was read: its lines in order, and what it says for the whole quote."""

    table: Table
    lines: list[Line]
    head: dict[str, Any]
    problems: list[Message]


def template_columns(language: str) -> list[Column[Mapping[str, Any]]]:
    """The columns of the file an RFQ produces, headed in `language` (Chinese for zh…, else English)."""
    index = int(language.lower().startswith("zh"))

    def column(name: str) -> Column[Mapping[str, Any]]:
        return Column(HEADINGS[name][index], lambda row: row.get(name))

    return [column(name) for name in HEADINGS]


def template_rows(lines: Iterable[Any], head: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A row for each asked line, with everything filled in that the RFQ decides; the first bears `head`."""
    rows: list[Mapping[str, Any]] = [
        {
            "line": number,
            "rfq_line": line.position,
            "kind": "accelerator",
            "description": line.description,
            "quantity": line.accelerators,
            "unit": "pcs",
            "accelerators_per_item": 1,
            "serialised": True,
        }
        for number, line in enumerate(lines, 1)
    ]
    if rows:
        rows[0] = {**rows[0], **head}
    return rows


def as_in_sheet(name: str, headings: Mapping[str, str], *, chinese: bool = False) -> str:
    """A column as the sheet's own header calls it; as the RFQ's table would, where the sheet has no such column."""
    column = COLUMN_OF.get(name, name)
    if column in headings:
        return headings[column]
    return HEADINGS[column][chinese] if column in HEADINGS else name


def read_quote(
    content: bytes, *, encoding: str = "", delimiter: str = "", hide_prices: bool = False
) -> QuoteTable:
    """Read a quote. `hide_prices`: what is wrong with a price is told without the price.

    Raises EncodingNeeded, or InputError for a file that is no such table.
    """
    table = read_table(
        content, columns=HEADINGS, required=REQUIRED, encoding=encoding, delimiter=delimiter,
        aliases=ALIASES, max_rows=MAX_LINES,
    )  # fmt: skip
    comma = uses_decimal_comma(
        row.cells.get(name, "") for row in table.rows for name in NUMBER_COLUMNS
    )
    lines = [_line(row, comma=comma, hide=hide_prices) for row in table.rows]
    _point_alternatives(lines)
    told = [name for name in HEAD_COLUMNS if name in table.columns]
    head, problems = _head(table.rows, told)
    return QuoteTable(table, lines, head, problems)


def _line(row: Row, *, comma: bool, hide: bool) -> Line:
    line = Line(row.line, row.cells, errors=[row.problem] if row.problem else [])
    cells, given = row.cells, line.given
    for name in ("description", "manufacturer", "part_number", "bundle", "unit"):
        given[name] = cells.get(name, "")
    read: dict[str, Any] = {
        "kind": lambda text: _word("kind", text, KINDS),
        "quantity": lambda text: parse_decimal("quantity", text, decimal_comma=comma),
        "list_price": lambda text: parse_decimal("list_price", text, decimal_comma=comma),
        "discount_percent": lambda text: _share("discount_percent", text, comma),
        "unit_price": lambda text: parse_decimal("unit_price", text, decimal_comma=comma),
        "price_breaks": lambda text: _breaks(text, comma),
        "tax_percent": lambda text: _share("tax_percent", text, comma),
        "rfq_line": lambda text: _whole("rfq_line", text),
        "accelerators_per_item": lambda text: _whole("accelerators_per_item", text),
        "serialised": lambda text: _yes("serialised", text),
        "promised": read_promises,
    }
    keys = {
        "discount_percent": "discount_rate",
        "price_breaks": "breaks",
        "tax_percent": "tax_rate",
        "promised": "promises",
    }
    for name, parse in read.items():
        text = cells.get(name, "").strip()
        if not text:
            if name in SAID:
                limit = SAID[name]
                line.errors.append(
                    msg("%(field)s is missing; say one of: %(limit)s", field=name, limit=limit)
                )
            continue
        try:
            given[keys.get(name, name)] = parse(text)
        except InputError as error:
            line.errors.append(
                msg("%(field)s cannot be read", field=name)
                if hide and name in PRICE_COLUMNS
                else error.message
            )
    return line


def _word(name: str, text: str, words: Mapping[str, str]) -> str:
    found = words.get(_folded(text))
    if found is None:
        choices = ", ".join(sorted({*words.values()}))
        raise InputError(
            name,
            msg("%(field)s: %(value)s is none of %(limit)s", field=name, value=text, limit=choices),
            value=text, limit=choices,
        )  # fmt: skip
    return found


def _share(name: str, text: str, comma: bool) -> Decimal:
    """13 or 13 % as 0.13."""
    percent = parse_decimal(name, text.rstrip("%％ "), decimal_comma=comma)
    return percent / 100


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InputError(
            name, msg("%(field)s: %(value)s is not a whole number", field=name, value=text),
            value=text,
        )  # fmt: skip
    return int(text)


def _yes(name: str, text: str) -> bool:
    if text.lower() not in YES | NO:
        raise InputError(
            name, msg("%(field)s: %(value)s is neither yes nor no", field=name, value=text),
            value=text,
        )  # fmt: skip
    return text.lower() in YES


def _breaks(text: str, comma: bool) -> list[dict[str, Any]]:
    """ "1-9: 26000; 10-: 25000" as price breaks."""
    steps = []
    for part in re.split(r"[;；\n]", text):
        if not part.strip():
            continue
        found = BREAK.fullmatch(part.strip())
        if found is None:
            raise InputError(
                "price_breaks",
                msg("%(field)s: %(value)s is not “from-to: unit price”", field="price_breaks",
                    value=part.strip()),
                value=part.strip(),
            )  # fmt: skip
        steps.append(
            {
                "from_quantity": int(found[1]),
                "to_quantity": int(found[2]) if found[2] else None,
                "unit_price": parse_decimal("price_breaks", found[3], decimal_comma=comma),
            }
        )
    return steps


def _point_alternatives(lines: Sequence[Line]) -> None:
    """`alternative_to` names a line by its own number where the file numbers its lines, else by its place."""
    numbers: dict[str, int] = {}
    for place, line in enumerate(lines, 1):
        number = line.cells.get("line", "").strip()
        if number in numbers:
            line.errors.append(msg("The line number %(value)s occurs twice", value=number))
        numbers.setdefault(number or str(place), place)
    for line in lines:
        text = line.cells.get("alternative_to", "").strip()
        if not text:
            continue
        if text in numbers:
            line.given["alternative_to"] = numbers[text]
        else:
            line.errors.append(
                msg("%(field)s: there is no line %(value)s", field="alternative_to", value=text)
            )


def _head(rows: Sequence[Row], columns: Sequence[str]) -> tuple[dict[str, Any], list[Message]]:
    """What the file says for the whole quote, and what is wrong with that."""
    said: dict[str, str] = {}
    head: dict[str, Any] = {}
    problems: list[Message] = []
    for row in rows:
        for name in columns:
            text = row.cells.get(name, "").strip()
            if text and said.setdefault(name, text) != text:
                problems.append(
                    msg("Row %(line)s says %(field)s is %(value)s, an earlier row %(other)s",
                        line=row.line, field=name, value=text, other=said[name])
                )  # fmt: skip
    said.pop("requirements", None)  # told to the vendor, not by it
    for name, text in said.items():
        try:
            head[name] = _head_value(name, text)
        except InputError as error:
            problems.append(error.message)
    return head, problems


def _head_value(name: str, text: str) -> Any:
    if name in WHOLE_TERMS:
        return _whole(name, text)
    if name in YES_TERMS:
        return _yes(name, text)
    match name:
        case "valid_until":
            return parse_date(name, text).isoformat()
        case "service_level":
            return _word(name, text, SERVICE_LEVELS)
        case "warrantor":
            return _word(name, text, WARRANTORS)
        case "warranty_start":
            return _word(name, text, STARTS)
        case "tax_mode":
            return _word(name, text, TAX_MODES)
        case "currency":
            return text.upper()
        case "answers":
            return read_answers(text)
    return text
