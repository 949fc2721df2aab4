"""Who may do what with the kernel's rows."""

from django.core import signing

from core.errors import NotPermitted
from core.models import Job, User
from core.roles import Role, has_role

WATCH = "core.job.watch"
WATCH_SECONDS = 86_400


def require(allowed: bool) -> None:
    """Raise NotPermitted unless `allowed`."""
    if not allowed:
        raise NotPermitted()


def can_agree_as_second(user: User, proposer_id: int | None) -> bool:
    """A second administrator, not the one who proposed."""
    return has_role(user, Role.ADMINISTRATOR) and proposer_id != user.pk


def can_see_job(user: User, job: Job) -> bool:
    """The one who started it, and operators."""
    return job.owner_id == user.pk or has_role(user, Role.OPERATIONS, Role.ADMINISTRATOR)


def watch_token(job: Job) -> str:
    """What a page that may show `job` hands to its readers, so that they may follow it too. Valid for a day."""
    return signing.dumps(str(job.pk), salt=WATCH)


def can_watch_job(user: User, job: Job, token: str) -> bool:
    """Whoever sees the job itself, or a page (of a study, a report) that shows its progress."""
    if can_see_job(user, job):
        return True
    try:
        return bool(signing.loads(token, salt=WATCH, max_age=WATCH_SECONDS) == str(job.pk))
    except signing.BadSignature:
        return False


def can_cancel_job(user: User, job: Job) -> bool:
    """The same people, while it is open."""
    return job.is_open and can_see_job(user, job)


def can_retry_job(user: User, job: Job) -> bool:
    """The same people, after it failed or was cancelled."""
    return job.status in {Job.Status.FAILED, Job.Status.CANCELLED} and can_see_job(user, job)
