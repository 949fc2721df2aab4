"""Who may do what with the kernel's rows."""

from core.errors import NotPermitted
from core.models import Job, User
from core.roles import Role, has_role


def require(allowed: bool) -> None:
    """Raise NotPermitted unless `allowed`."""
    if not allowed:
        raise NotPermitted()


def can_see_job(user: User, job: Job) -> bool:
    """The one who started it, and operators."""
    return job.owner_id == user.pk or has_role(user, Role.OPERATIONS, Role.ADMINISTRATOR)


def can_cancel_job(user: User, job: Job) -> bool:
    """The same people, while it is open."""
    return job.is_open and can_see_job(user, job)


def can_retry_job(user: User, job: Job) -> bool:
    """The same people, after it failed or was cancelled."""
    return job.status in {Job.Status.FAILED, Job.Status.CANCELLED} and can_see_job(user, job)
