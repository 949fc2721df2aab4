"""Work on the clock: the ledger's proof, reservations that nobody decided on. Safe to repeat."""

from celery import shared_task
from django.db import OperationalError

from planning.services.budgets import expire_reservation, expiring_requests
from planning.services.ledger_proof import prove_and_alarm


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def prove_ledger() -> int:
    """Prove that the ledger adds up; tell finance and administrators what does not."""
    return prove_and_alarm()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def expire_reservations() -> int:
    """Release soft reservations past the policy's age. Does nothing before a policy is in force."""
    return sum(expire_reservation(request_id=pk) for pk in expiring_requests())
