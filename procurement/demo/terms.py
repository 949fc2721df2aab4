"""Warranty terms and lines of the demo's quotes: good ones, thin ones, and one with traps."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

FULL: dict[str, Any] = {
    "warrantor": "reseller", "start_trigger": "acceptance", "months": 36, "labour_months": 36, "onsite_months": 36,
    "service_level": "onsite_nbd", "response_hours": 4, "advance_replacement": True, "return_days": 15,
    "doa_days": 30, "doa_from_delivery": False, "replacement_new": True, "burn_in_permitted": True,
    "continuous_use_permitted": True, "new_parts_only": True, "media_kept": True, "customer_swap": True,
    "covered_items": "整机、加速卡、电源、风扇", "diagnosis": "dcgmi diag -r 3",
    "remedy": "更换新件，由买方选择", "freight": "卖方承担", "spare_part_years": 5,
}  # fmt: skip
SHORT: dict[str, Any] = {
    "warrantor": "maker", "start_trigger": "shipment", "months": 36, "service_level": "rtb",
    "advance_replacement": False, "doa_days": 14, "doa_from_delivery": True, "replacement_new": None,
    "burn_in_permitted": True, "new_parts_only": True, "remedy": "Repair or replace, at the maker's choice",
    "exclusions": "Crypto mining; operation above 30 °C inlet.", "freight": "Buyer pays to Taipei",
    "extension": "12 months: 6 % of the unit price",
}  # fmt: skip
TRAPS: dict[str, Any] = {
    "warrantor": "reseller", "start_trigger": "shipment", "months": 12, "service_level": "rtb",
    "advance_replacement": False, "doa_days": 7, "doa_from_delivery": True, "replacement_new": False,
    "burn_in_permitted": False, "continuous_use_permitted": False, "new_parts_only": False,
    "remedy": "维修为主，替换件可为翻新件", "exclusions": "长时间满载运行造成的故障不在质保范围",
    "no_fault_fee": "每次 3,000 元",
}  # fmt: skip


def card_line(
    name: str, quantity: int, price: Decimal, *, tax: str = "0.13", maker: str = "NVIDIA"
) -> dict[str, Any]:
    """Cards by the piece, with serial numbers."""
    return {
        "description": name, "kind": "accelerator", "manufacturer": maker, "quantity": str(quantity),
        "unit_price": str(price), "tax_rate": tax, "serialised": True, "accelerators_per_item": 1, "rfq_line": 1,
    }  # fmt: skip
