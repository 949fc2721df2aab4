"""Write a capacity review's pack as PDF: the running quarter's newest snapshot, or the demo organisation's."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from core.errors import DomainError
from core.models import Organisation
from core.organisation import today
from planning.demo_telemetry import load_telemetry
from planning.management.commands.load_demo import load
from planning.models import CapacityReview, TelemetrySource
from planning.models.reviews import BOTH, LANGUAGES, ReviewReport
from planning.review_report import render_report
from planning.services import calibration, reviews
from procurement.services.reviews import freeze_review


class Command(BaseCommand):
    help = "Write a review's pack as PDF."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--out", required=True, help="file to write")
        parser.add_argument("--language", default="en", choices=[*LANGUAGES, BOTH])
        parser.add_argument("--quarter", help="2027Q1; the running quarter when left out")
        parser.add_argument(
            "--demo", action="store_true",
            help="the demo organisation with made-up telemetry; nothing of it is kept in the database",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            content = self._demo(options) if options["demo"] else self._kept(options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        Path(options["out"]).write_bytes(content)
        self.stdout.write(f"{options['out']}: {len(content)} bytes")

    def _kept(self, options: dict[str, Any]) -> bytes:
        found = CapacityReview.objects.all()
        if options["quarter"]:
            year, _q, quarter = options["quarter"].upper().partition("Q")
            if not (year.isdigit() and quarter.isdigit()):
                raise CommandError(f"{options['quarter']} is not a quarter like 2027Q1")
            found = found.filter(fiscal_year=int(year), quarter=int(quarter))
        review = found.filter(snapshots__isnull=False).first()
        if review is None:
            raise CommandError("No review has frozen figures. Freeze them, or use --demo.")
        return self._render(review, options["language"])

    def _demo(self, options: dict[str, Any]) -> bytes:
        """Everything happens in a transaction that is rolled back."""
        with transaction.atomic():
            if not Organisation.objects.exists():
                load()
            if not TelemetrySource.objects.exists():
                org = Organisation.objects.get()
                load_telemetry(org, today(org))
                calibration.learn()
            reviews.ensure_reviews()
            review = CapacityReview.objects.first()
            assert review is not None  # noqa: S101 - made in the line before
            freeze_review(review_id=review.pk, by=None)
            content = self._render(review, options["language"])
            transaction.set_rollback(True)
        return content

    def _render(self, review: CapacityReview, language: str) -> bytes:
        snapshot = review.snapshots.order_by("-number")[0]
        report = ReviewReport(
            snapshot=snapshot, language=language, template_version=reviews.TEMPLATE_VERSION
        )
        return render_report(report)
