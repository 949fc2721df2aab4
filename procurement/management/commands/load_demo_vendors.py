"""Three vendors for the demo organisation, one of each channel that a buyer meets first."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from core.models import User
from planning.management.commands.load_demo import PEOPLE
from procurement.models import Vendor
from procurement.services.vendors import create_vendor

BUYER = "wu@demo.example"
VENDORS: tuple[dict[str, Any], ...] = (
    {"name": "Xinghe Systems 星河系统集成", "channel": "integrator", "currency": "CNY",
     "time_zone": "Asia/Shanghai", "payment_terms": "30 % / 60 % / 10 %"},
    {"name": "Borealis Servers 北辰服务器", "channel": "maker", "currency": "USD", "time_zone": "Asia/Taipei",
     "payment_terms": "Net 30"},
    {"name": "Strait Cloud 海峡云", "channel": "cloud", "currency": "SGD", "time_zone": "Asia/Singapore",
     "payment_terms": "Monthly"},
)  # fmt: skip


class Command(BaseCommand):
    help = "Register three vendors in the demo organisation; does nothing where vendors or the demo's buyer differ."

    def handle(self, *args: Any, **options: Any) -> None:
        buyer = User.objects.filter(email=BUYER).first()
        if buyer is None or BUYER not in {row[0] for row in PEOPLE} or Vendor.objects.exists():
            return
        for vendor in VENDORS:
            create_vendor(by=buyer, **vendor)
