"""What owned and rented cards do: sources, hourly rollups, daily sums, jobs, and lines of cloud bills."""

from __future__ import annotations

import hashlib
from zoneinfo import ZoneInfo

from django.core.validators import URLValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from catalog.reference import accelerator_label
from core.models import (
    CURRENCY_CHOICES,
    Job,
    StoredFile,
    Team,
    User,
    validate_zone,
)


class SourceKind(models.TextChoices):
    """What a source delivers."""

    PROMETHEUS = "prometheus", _("Prometheus (pulled by range query)")
    PUSH = "push", _("Samples pushed to the API")
    NVIDIA_SMI = "nvidia_smi", _("nvidia-smi CSV files")
    SACCT = "sacct", _("Slurm jobs (sacct)")
    SREPORT = "sreport", _("Slurm utilisation (sreport)")
    KUBERNETES = "kubernetes", _("Kubernetes or Volcano jobs (JSON)")
    JOB_TABLE = "job_table", _("Jobs as a table (Run:ai and others)")
    BILL = "bill", _("Cloud bill (AWS report or any table)")


class Ownership(models.TextChoices):
    """Whose cards they are."""

    OWNED = "owned", pgettext_lazy("cards", "Owned")
    RESERVED = "reserved", pgettext_lazy("cards", "Reserved")
    CLOUD = "cloud", pgettext_lazy("cards", "On demand or spot")


class TelemetrySource(models.Model):
    """One place from which figures come, with what is needed to read them the same way every time."""

    name = models.CharField(_("name"), max_length=120, unique=True)
    kind = models.CharField(_("kind"), max_length=12, choices=SourceKind.choices)
    time_zone = models.CharField(
        _("time zone of its times"), max_length=64, validators=[validate_zone], default="UTC"
    )
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+",
        verbose_name=_("team"), help_text=_("Whose cards, jobs or costs these are when nothing else says so."),
    )  # fmt: skip
    accelerator_slug = models.CharField(_("accelerator"), max_length=80, blank=True)
    ownership = models.CharField(
        _("ownership"), max_length=10, choices=Ownership.choices, default=Ownership.OWNED
    )
    host = models.CharField(
        _("host"), max_length=120, blank=True, help_text=_("Of files that name none.")
    )
    step_seconds = models.PositiveIntegerField(_("seconds between samples"), default=60)
    raw_days = models.PositiveSmallIntegerField(
        _("days that single samples are kept"), default=14,
        help_text=_("Late samples are merged exactly while the hour's samples are kept."),
    )  # fmt: skip
    currency = models.CharField(
        _("currency"), max_length=3, choices=CURRENCY_CHOICES, blank=True
    )  # of bills that name none
    # teams: pattern of host, account or tag → team's short name; accelerators: model name → slug;
    # columns: our name → the file's column.
    mapping = models.JSONField(_("mapping"), default=dict, blank=True)
    url = models.CharField(
        _("address"), max_length=300, blank=True, validators=[URLValidator(["http", "https"])]
    )
    token_name = models.SlugField(
        _("name of the token"), max_length=60, blank=True,
        help_text=_("The token itself is read from the environment: TELEMETRY_TOKEN_ and this name in capitals."),
    )  # fmt: skip
    ca_file = models.CharField(
        _("file of the trusted certificate authority"), max_length=200, blank=True
    )
    verify_tls = models.BooleanField(_("check the server's certificate"), default=True)
    matchers = models.CharField(
        _("label matchers"), max_length=300, blank=True, help_text=_('For example cluster="train"')
    )
    push_token_hash = models.CharField(max_length=64, blank=True, editable=False)
    pulled_until = models.DateTimeField(null=True, blank=True, editable=False)
    active = models.BooleanField(_("active"), default=True)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("telemetry source")
        verbose_name_plural = _("telemetry sources")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("telemetry-source", args=[self.pk])

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)

    @staticmethod
    def hash_of(token: str) -> str:
        """What is kept of a push token."""
        return hashlib.sha256(token.encode()).hexdigest()


class Ingestion(models.Model):
    """One load of a file, a push or a pull: what was in it and what it changed."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")

    source = models.ForeignKey(TelemetrySource, on_delete=models.PROTECT, related_name="ingestions")
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.QUEUED)
    file = models.ForeignKey(
        StoredFile, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    # Of a file: its hash, and the version of the source by whose rules it is read.
    sha256 = models.CharField(max_length=64, blank=True, editable=False)
    source_version = models.PositiveIntegerField(default=0, editable=False)
    read = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    changed = models.PositiveBigIntegerField(
        default=0
    )  # rows of ours that are new or different now
    unchanged = models.PositiveBigIntegerField(default=0)
    too_late = models.PositiveBigIntegerField(default=0)  # hours whose samples are no longer kept
    first_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    problems = models.JSONField(default=list, blank=True)  # core.messages.Message
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("telemetry load")
        verbose_name_plural = _("telemetry loads")
        ordering = ["-id"]
        indexes = [models.Index(fields=["source", "sha256"], name="load_by_hash")]

    def __str__(self) -> str:
        return f"{self.source} #{self.pk}"


class TelemetryCard(models.Model):
    """One card of a source."""

    source = models.ForeignKey(TelemetrySource, on_delete=models.PROTECT, related_name="cards")
    name = models.CharField(max_length=120)  # UUID, or host:index
    host = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=120, blank=True)  # as the tool names it
    accelerator_slug = models.CharField(max_length=80, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    ownership = models.CharField(max_length=10, choices=Ownership.choices)

    class Meta:
        verbose_name = _("card with telemetry")
        verbose_name_plural = _("cards with telemetry")
        constraints = [
            models.UniqueConstraint(fields=["source", "name"], name="card_once_a_source")
        ]

    def __str__(self) -> str:
        return self.name


class CardSeries(models.Model):
    """A card while it works for one job; job empty: not told. Its id is what hourly rows carry."""

    card = models.ForeignKey(TelemetryCard, on_delete=models.PROTECT, related_name="series")
    job = models.CharField(max_length=120, blank=True)

    class Meta:
        verbose_name = _("series of a card")
        verbose_name_plural = _("series of cards")
        constraints = [models.UniqueConstraint(fields=["card", "job"], name="series_once")]

    def __str__(self) -> str:
        return f"{self.card} {self.job}".strip()


class CardHour(models.Model):
    """One hour of one series. Monthly partitions on PostgreSQL; shares 0–1, power in W. Null: no sample said so."""

    pk = models.CompositePrimaryKey("hour", "series_id")
    hour = models.DateTimeField()
    series = models.ForeignKey(
        CardSeries,
        on_delete=models.DO_NOTHING,
        db_index=False,
        db_constraint=False,
        related_name="+",
    )
    samples = models.PositiveIntegerField()
    covered = models.PositiveIntegerField()  # seconds that the samples speak for
    utilization_mean = models.FloatField(null=True)
    utilization_max = models.FloatField(null=True)
    utilization_p95 = models.FloatField(null=True)
    sm_mean = models.FloatField(null=True)
    tensor_mean = models.FloatField(null=True)
    memory_mean = models.FloatField(null=True)
    memory_max = models.FloatField(null=True)
    memory_p95 = models.FloatField(null=True)
    power_mean = models.FloatField(null=True)
    power_max = models.FloatField(null=True)
    power_p95 = models.FloatField(null=True)

    class Meta:
        verbose_name = _("hour of a card")
        verbose_name_plural = _("hours of cards")

    def __str__(self) -> str:
        return f"{self.series_id} {self.hour:%Y-%m-%dT%H}"


class HourSamples(models.Model):
    """The single samples of an hour, packed; kept for the source's window so that late ones merge exactly."""

    series = models.ForeignKey(CardSeries, on_delete=models.CASCADE, related_name="+")
    hour = models.DateTimeField()
    data = models.BinaryField()
    touched_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        verbose_name = _("samples of an hour")
        verbose_name_plural = _("samples of hours")
        constraints = [models.UniqueConstraint(fields=["series", "hour"], name="samples_once")]

    def __str__(self) -> str:
        return f"{self.series_id} {self.hour:%Y-%m-%dT%H}"


class SumsBase(models.Model):
    """Sums over hours, so that means of any grouping are exact: figure-hours and the hours they cover."""

    hours = models.FloatField()  # covered by samples
    utilization_hours = models.FloatField()
    utilization_sum = models.FloatField()
    sm_hours = models.FloatField()
    sm_sum = models.FloatField()
    tensor_hours = models.FloatField()
    tensor_sum = models.FloatField()
    memory_hours = models.FloatField()
    memory_sum = models.FloatField()
    power_hours = models.FloatField()
    energy_kwh = models.FloatField()

    class Meta:
        abstract = True


class CardDay(SumsBase):
    """One card on one local day."""

    card = models.ForeignKey(TelemetryCard, on_delete=models.PROTECT, related_name="+")
    day = models.DateField()

    class Meta:
        verbose_name = _("day of a card")
        verbose_name_plural = _("days of cards")
        constraints = [models.UniqueConstraint(fields=["day", "card"], name="card_day_once")]

    def __str__(self) -> str:
        return f"{self.card_id} {self.day}"


class CardMonth(SumsBase):
    """One card in one local month, named by its first day."""

    card = models.ForeignKey(TelemetryCard, on_delete=models.PROTECT, related_name="+")
    day = models.DateField()

    class Meta:
        verbose_name = _("month of a card")
        verbose_name_plural = _("months of cards")
        constraints = [models.UniqueConstraint(fields=["day", "card"], name="card_month_once")]

    def __str__(self) -> str:
        return f"{self.card_id} {self.day:%Y-%m}"


class PoolDay(SumsBase):
    """Cards of one team, accelerator and ownership on one local day."""

    day = models.DateField()
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    accelerator_slug = models.CharField(max_length=80, blank=True)
    ownership = models.CharField(max_length=10, choices=Ownership.choices)
    cards = models.PositiveIntegerField()

    class Meta:
        verbose_name = _("day of a pool")
        verbose_name_plural = _("days of pools")
        constraints = [
            models.UniqueConstraint(
                fields=["day", "team", "accelerator_slug", "ownership"],
                name="pool_day_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{accelerator_label(self.accelerator_slug)} {self.day}"


class JobRun(models.Model):
    """A job as the scheduler tells it. Loading it again keeps what is newest."""

    source = models.ForeignKey(TelemetrySource, on_delete=models.PROTECT, related_name="runs")
    job = models.CharField(max_length=120)
    name = models.CharField(max_length=200, blank=True)
    account = models.CharField(max_length=120, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=40, blank=True)
    submitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    waited_seconds = models.FloatField(null=True, blank=True)
    cards = models.PositiveIntegerField(null=True, blank=True)
    interrupted = models.BooleanField(default=False)
    tokens = models.FloatField(null=True, blank=True)
    model_slug = models.CharField(max_length=80, blank=True)

    class Meta:
        verbose_name = _("job run")
        verbose_name_plural = _("job runs")
        constraints = [models.UniqueConstraint(fields=["source", "job"], name="job_once_a_source")]
        indexes = [models.Index(fields=["started_at", "team"], name="jobrun_started")]

    def __str__(self) -> str:
        return self.job


class ClusterUse(models.Model):
    """What Slurm says of a period of a cluster, by resource, in hours. Never mixed with samples."""

    source = models.ForeignKey(TelemetrySource, on_delete=models.PROTECT, related_name="+")
    cluster = models.CharField(max_length=80)
    resource = models.CharField(max_length=40)
    first = models.CharField(max_length=25)
    last = models.CharField(max_length=25)
    hours = models.JSONField(default=dict)  # column of the report → hours

    class Meta:
        verbose_name = _("use of a cluster")
        verbose_name_plural = _("use of clusters")
        constraints = [
            models.UniqueConstraint(
                fields=["source", "cluster", "resource", "first", "last"], name="cluster_use_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.resource} {self.first}"


class BillLine(models.Model):
    """One line of a cloud bill. The ledger holds its money once it is posted."""

    source = models.ForeignKey(TelemetrySource, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=48)
    day = models.DateField()
    amount = models.DecimalField(max_digits=18, decimal_places=6)
    currency = models.CharField(max_length=3, choices=CURRENCY_CHOICES)
    service = models.CharField(max_length=120, blank=True)
    usage = models.CharField(max_length=200, blank=True)
    quantity = models.DecimalField(max_digits=20, decimal_places=6, null=True, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    request_number = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        verbose_name = _("line of a bill")
        verbose_name_plural = _("lines of bills")
        constraints = [
            models.UniqueConstraint(fields=["source", "key"], name="bill_line_once"),
            models.CheckConstraint(condition=~Q(amount=0), name="bill_line_not_zero"),
        ]
        indexes = [models.Index(fields=["day", "team"], name="bill_line_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.service} {self.amount} {self.currency}"


SUMS: tuple[str, ...] = tuple(field.name for field in SumsBase._meta.local_fields)
