"""A proposal that waits was made against the values in force: until now any change in force ended it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import migrations


def same(kept: Any, text: str) -> bool:
    if isinstance(kept, Decimal | int) and not isinstance(kept, bool):
        return Decimal(kept) == Decimal(text)
    return str(kept) == text


def fill(apps: Any, _schema: Any) -> None:
    for policy in apps.get_model("procurement", "PurchasingPolicy").objects.exclude(proposed={}):
        policy.proposed = {
            name: value
            for name, value in policy.proposed.items()
            if not same(getattr(policy, name), value)
        }
        policy.proposed_from = {name: str(getattr(policy, name)) for name in policy.proposed}
        policy.save(update_fields=["proposed", "proposed_from"])


class Migration(migrations.Migration):
    dependencies = [("procurement", "0015_policy_proposed_from")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
