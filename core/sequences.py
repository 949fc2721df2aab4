"""Gap-free document numbers."""

from django.db import transaction

from core.models import Sequence


def next_number(name: str) -> int:
    """The next number of `name`. Must run inside the transaction that uses it: a rollback gives the number back."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("next_number needs a transaction")
    Sequence.objects.get_or_create(name=name)
    row = Sequence.objects.select_for_update().get(name=name)
    row.value += 1
    row.save(update_fields=["value"])
    return row.value
