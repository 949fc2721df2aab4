"""Who acts, on whose behalf, and what was done: the rows that every app needs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.money import CURRENCIES
from core.roles import Role

CURRENCY_CHOICES = [(code, code) for code in CURRENCIES]
LANGUAGE_CHOICES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]


def validate_zone(value: str) -> None:
    """Refuse what is not an IANA time zone."""
    if value not in available_timezones():
        raise ValidationError(_("%(value)s is not an IANA time zone."), params={"value": value})


class UserManager(BaseUserManager["User"]):
    """Users are found by e-mail, folded to lower case."""

    use_in_migrations = True

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email).lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A person. Logs in by e-mail; what they may do follows from their memberships."""

    email = models.EmailField(_("e-mail"), unique=True)
    name = models.CharField(_("name"), max_length=120)
    language = models.CharField(_("language"), max_length=10, choices=LANGUAGE_CHOICES, blank=True)
    time_zone = models.CharField(
        _("time zone"), max_length=64, blank=True, validators=[validate_zone]
    )
    is_active = models.BooleanField(_("active"), default=True)
    is_staff = models.BooleanField(_("may open the support pages"), default=False)
    date_joined = models.DateTimeField(_("joined"), default=timezone.now)

    objects = UserManager()
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = ["name"]

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        return self.name

    def get_short_name(self) -> str:
        return self.name


class Stage(models.TextChoices):
    """What kind of asker the organisation is; advice in studies follows it."""

    STUDENT = "student", _("Student or single researcher")
    STARTUP = "startup", _("Start-up, 3 to 10 people")
    MIDSIZE = "midsize", _("Mid-size firm")
    LARGE = "large", _("Large firm")


class Organisation(models.Model):
    """The one organisation this installation serves, and its calendar, currency and letterhead."""

    name = models.CharField(_("name"), max_length=160)
    legal_name = models.CharField(_("legal name"), max_length=240, blank=True)
    address = models.TextField(_("address"), blank=True)
    currency = models.CharField(
        _("base currency"), max_length=3, choices=CURRENCY_CHOICES, default="CNY"
    )
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="Asia/Shanghai", validators=[validate_zone]
    )
    fiscal_start_month = models.PositiveSmallIntegerField(
        _("first month of the fiscal year"),
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(12)],
    )
    language = models.CharField(
        _("language of documents"), max_length=10, choices=LANGUAGE_CHOICES, default="zh-hans"
    )
    stage = models.CharField(_("stage"), max_length=10, choices=Stage.choices, blank=True)
    purchase_tax_rate = models.DecimalField(  # share; None: the usual one of the country, if known
        _("tax on purchases"), max_digits=5, decimal_places=4, null=True, blank=True
    )
    rent_tax_rate = models.DecimalField(  # on a cloud's services; None: as on purchases, the usual where none is stated
        _("tax on rents"), max_digits=5, decimal_places=4, null=True, blank=True
    )
    purchase_tax_reclaimed = models.BooleanField(_("tax is reclaimed"), default=True)
    singleton = models.BooleanField(default=True, unique=True, editable=False)

    class Meta:
        verbose_name = _("organisation")
        verbose_name_plural = _("organisations")
        constraints = [
            models.CheckConstraint(condition=models.Q(singleton=True), name="one_organisation"),
            models.CheckConstraint(
                condition=models.Q(fiscal_start_month__range=(1, 12)),
                name="organisation_fiscal_month",
            ),
            models.CheckConstraint(
                condition=models.Q(purchase_tax_rate__isnull=True)
                | models.Q(purchase_tax_rate__gte=0, purchase_tax_rate__lt=1),
                name="organisation_purchase_tax",
            ),
            models.CheckConstraint(
                condition=models.Q(rent_tax_rate__isnull=True)
                | models.Q(rent_tax_rate__gte=0, rent_tax_rate__lt=1),
                name="organisation_rent_tax",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)


class Team(models.Model):
    """A group that asks for compute and has a budget."""

    name = models.CharField(_("name"), max_length=120, unique=True)
    slug = models.SlugField(_("short name"), max_length=60, unique=True)
    cost_center = models.CharField(_("cost center"), max_length=40, blank=True)
    active = models.BooleanField(_("active"), default=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One role of one person, in one team or (team empty) in the whole organisation."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(
        Team,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memberships",
        help_text=_("Empty: the role holds for every team."),
    )
    role = models.CharField(_("role"), max_length=20, choices=Role.choices)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "team", "role"],
                condition=models.Q(team__isnull=False),
                name="membership_once_per_team",
            ),
            models.UniqueConstraint(
                fields=["user", "role"],
                condition=models.Q(team__isnull=True),
                name="membership_once_for_all",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.team or '*'} · {self.get_role_display()}"


class ExchangeRate(models.Model):
    """What one `base` cost in `quote` on a day. Dated rows, never overwritten."""

    base = models.CharField(_("one unit of"), max_length=3, choices=CURRENCY_CHOICES)
    quote = models.CharField(_("costs in"), max_length=3, choices=CURRENCY_CHOICES)
    rate = models.DecimalField(_("rate"), max_digits=18, decimal_places=8)
    as_of = models.DateField(_("as of"))
    source = models.CharField(_("source"), max_length=200)

    class Meta:
        verbose_name = _("exchange rate")
        verbose_name_plural = _("exchange rates")
        ordering = ["-as_of", "base", "quote"]
        constraints = [
            models.UniqueConstraint(
                fields=["base", "quote", "as_of"], name="exchange_rate_once_a_day"
            ),
            models.CheckConstraint(condition=models.Q(rate__gt=0), name="exchange_rate_positive"),
            models.CheckConstraint(
                condition=~models.Q(base=models.F("quote")), name="exchange_rate_two_currencies"
            ),
        ]

    def __str__(self) -> str:
        return f"1 {self.base} = {self.rate.normalize():f} {self.quote} ({self.as_of})"


class AppendOnlyError(TypeError):
    """Someone tried to change or delete a row that is only ever added to."""


class AppendOnlyQuerySet(models.QuerySet[Any]):
    """Rows are added and read, nothing else. The database holds it too, by trigger (see the migration)."""

    def update(self, **kwargs: Any) -> int:
        raise AppendOnlyError(f"{self.model.__name__} rows are never changed")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError(f"{self.model.__name__} rows are never deleted")

    def bulk_update(
        self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None
    ) -> int:
        raise AppendOnlyError(f"{self.model.__name__} rows are never changed")


class AuditEntry(models.Model):
    """Who did what to which object, when, from where to where, and why. Append-only."""

    at = models.DateTimeField(_("at"), default=timezone.now, db_index=True)
    actor = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("who"),
    )
    on_behalf_of = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    action = models.CharField(
        _("action"), max_length=80, db_index=True
    )  # noun.past, e.g. rfq.awarded
    object_type = models.CharField(max_length=60)  # app_label.model
    object_id = models.CharField(max_length=40)
    # The row's version after this; None: the row has none, or the entry is older than the column.
    object_version = models.PositiveIntegerField(null=True)
    object_label = models.CharField(max_length=200, blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    from_state = models.CharField(max_length=40, blank=True)
    to_state = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    data = models.JSONField(default=dict, blank=True)
    context = models.CharField(
        max_length=64, blank=True
    )  # request or task id: ties entries of one act together
    batch = models.UUIDField(null=True, blank=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")
        ordering = ["-id"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["object_type", "object_id", "-id"], name="audit_object")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.action} {self.object_label}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise AppendOnlyError("Audit entries are never changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError("Audit entries are never deleted")


class Job(models.Model):
    """Work in the background: one row per unique key, with progress a page can poll. The row is the truth."""

    class Status(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        CANCELLED = "cancelled", _("Cancelled")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key = models.CharField(max_length=200, unique=True)  # the same work twice is one row
    task = models.CharField(max_length=120)  # dotted path of the Celery task
    args = models.JSONField(default=list)
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.QUEUED)
    stage = models.JSONField(default=dict, blank=True)  # a core.messages.Message
    percent = models.PositiveSmallIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    error = models.JSONField(default=dict, blank=True)  # a core.messages.Message
    cancel_requested = models.BooleanField(default=False)
    owner = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs"
    )
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    beat_at = models.DateTimeField(null=True, blank=True)  # last sign of life
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("background job")
        verbose_name_plural = _("background jobs")
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["status", "beat_at"], name="job_status")]
        constraints = [
            models.CheckConstraint(condition=models.Q(percent__range=(0, 100)), name="job_percent")
        ]

    def __str__(self) -> str:
        return self.key

    @property
    def is_open(self) -> bool:
        return self.status in {self.Status.QUEUED, self.Status.RUNNING}

    @property
    def elapsed_seconds(self) -> float:
        """Wall time since the start [s]; 0 before it."""
        if self.started_at is None:
            return 0.0
        return ((self.finished_at or timezone.now()) - self.started_at).total_seconds()


class Notice(models.Model):
    """Something to tell one person: shown in the page and mailed in a digest. Doubles as the outbox."""

    recipient = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    event = models.CharField(max_length=80)  # noun.past
    object_type = models.CharField(max_length=60)
    object_id = models.CharField(max_length=40)
    revision = models.CharField(max_length=40, blank=True)
    message = (
        models.JSONField()
    )  # a core.messages.Message, put into the recipient's language when read
    url = models.CharField(max_length=300, blank=True)
    attachment = models.ForeignKey(
        "StoredFile", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )  # mailed along when small enough
    created_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)
    mail_at = models.DateTimeField(null=True, blank=True)  # not before; null: page only
    mailed_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "object_type", "object_id", "revision", "recipient"],
                name="notice_once",
            )
        ]
        indexes = [models.Index(fields=["mailed_at", "mail_at"], name="notice_outbox")]

    def __str__(self) -> str:
        return f"{self.event} → {self.recipient_id}"


class OutsideMail(models.Model):
    """A mail to somebody who has no account here, kept as it is sent. One for each matter and recipient."""

    event = models.CharField(max_length=80)  # noun.past
    object_type = models.CharField(max_length=60)
    object_id = models.CharField(max_length=40)
    recipient = models.CharField(max_length=60)  # who it is for, whatever the address: "vendor:7"
    address = models.EmailField()
    reply_to = models.EmailField(blank=True)
    subject = models.CharField(max_length=200)
    body = models.TextField()
    attachment = models.ForeignKey(
        "StoredFile", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)
    mail_at = models.DateTimeField(default=timezone.now)  # not before
    mailed_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True)

    class Meta:
        verbose_name = _("mail to the outside")
        verbose_name_plural = _("mails to the outside")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["event", "object_type", "object_id", "recipient"], name="outside_mail_once"
            )
        ]
        indexes = [models.Index(fields=["mailed_at", "mail_at"], name="outside_mail_outbox")]

    def __str__(self) -> str:
        return f"{self.event} → {self.recipient}"


class StoredFile(models.Model):
    """A file someone uploaded or the product made. Private; reached only through its owner's page."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(
        _("file name"), max_length=255
    )  # as the user knows it; never used as a path
    file = models.FileField(upload_to="%Y/%m/")
    content_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    uploaded_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    uploaded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("file")
        verbose_name_plural = _("files")
        ordering = ["-uploaded_at"]

    def __str__(self) -> str:
        return self.name


class IdempotencyKey(models.Model):
    """The first answer to a keyed POST; a replay gets the same answer, another body is refused."""

    # null: sent by no person; the key then names who sent it
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    key = models.CharField(max_length=100)
    path = models.CharField(max_length=300)
    body_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(
        null=True, blank=True
    )  # null: the first call is still running
    response = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("idempotency key")
        verbose_name_plural = _("idempotency keys")
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once"),
            models.UniqueConstraint(
                fields=["key"],
                condition=models.Q(user=None),
                name="idempotency_key_of_no_person_once",
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Heartbeat(models.Model):
    """Last sign of life of a background process."""

    name = models.CharField(max_length=60, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("heartbeat")
        verbose_name_plural = _("heartbeats")

    def __str__(self) -> str:
        return f"{self.name} {self.at:%H:%M:%S}"


class Sequence(models.Model):
    """A gap-free counter per name (document numbers). Taken under a row lock, inside the caller's transaction."""

    name = models.CharField(max_length=80, primary_key=True)
    value = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = _("number sequence")
        verbose_name_plural = _("number sequences")

    def __str__(self) -> str:
        return f"{self.name}={self.value}"
