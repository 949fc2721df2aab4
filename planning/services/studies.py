"""Running a study: inputs pinned, one job per hash of them, the result stored once and never changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from core import jobs, transitions
from core.audit import record
from core.errors import DomainError, InvalidTransition
from core.jobs import JobCancelled, Progress
from core.messages import Message, msg
from core.models import Job, User
from core.money import CURRENCIES
from core.organisation import organisation, quarter_at, today
from planning import policies
from planning.economics import defaults
from planning.estimators.inference_constants import published_constants
from planning.estimators.training_constants import training_constants
from planning.estimators.types import (
    Architecture,
    LatentAttention,
    MixtureOfExperts,
    StateSpace,
)
from planning.models.budgets import Budget
from planning.models.requests import RequestRevision
from planning.models.studies import ANSWERS, MarketSnapshot, Study
from planning.places import country_of_zone
from planning.selectors.budgets import balances
from planning.selectors.portfolio import demand_of_others
from planning.services.calibration import calibrated_market
from planning.services.estimates import catalogue
from planning.services.purchase_tax import purchase_tax
from planning.services.snapshots import snapshot
from planning.states import StudyStatus
from planning.stock import owned_utilisation
from planning.study.estimates import model_for
from planning.study.model import KnownModel
from planning.study.request import StudyRequest, parse_request, request_json
from planning.study.search.compare import compare
from planning.study.search.pooled import pooled_from_json, pooled_json
from planning.study.search.purchase_tax import tax_from_json
from planning.study.search.run import Setting, run_study
from planning.study.search.snapshot import Snapshot, content_hash, snapshot_from_json
from planning.study.search.what_if import Changes, part_of
from planning.study.search.what_if import what_if as search_what_if
from planning.study.workloads import INFERENCE, Kind, whole

TASK = "planning.tasks.run_study"
# Of a revision's terms, those that a study reads under the same name.
_TERMS = (
    "need_by", "start", "duration_days", "data_residence", "latency_class", "accuracy_loss_limit", "region",
    "interruptible", "checkpoint_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything a study is computed from."""

    request: StudyRequest
    known: KnownModel | None
    snapshot: Snapshot
    setting: Setting


def study_request(revision: RequestRevision, **changes: Any) -> StudyRequest:
    """What `revision` asks, as the search takes it; `changes` replace fields. Raises InputError or WorkloadErrors."""
    kind = Kind(revision.request.kind)
    content = revision.content()
    data: dict[str, Any] = {"kind": str(kind), **whole(revision.workload)}
    if kind == Kind.GPU_HOURS and not data.get("accelerator"):
        data.pop("accelerator", None)
    data |= {name: content[name] for name in _TERMS if content[name] not in (None, "", False)}
    return parse_request(data | changes)


def prepare(request: StudyRequest, market: Snapshot, setting: Setting) -> Inputs:
    """The request with names resolved against the catalogue. Raises InputError for a name that is not known."""
    found = catalogue()
    slugs = tuple(card.slug for card in found.find_accelerators(request.accelerators))
    known = model_for(request, found.find_model)
    return Inputs(replace(request, accelerators=slugs), known, market, setting)


@transaction.atomic
def request_study(*, revision_id: int, by: User | None) -> Study:
    """Start the study of a revision with today's prices, or return the one of the same inputs. A failed one runs again.

    Raises NotPermitted, InputError (the workload cannot be studied) or InvalidTransition.
    """
    revision = RequestRevision.objects.select_related("request__team").get(pk=revision_id)
    policies.require_study(by, revision.request)
    if revision.request.revision_number != revision.number:
        raise InvalidTransition(
            msg("%(revision)s is not the current revision", revision=str(revision))
        )
    asked = study_request(revision)
    here, learned = calibrated_market(snapshot(today()), asked.kind)
    inputs = prepare(asked, here, setting_for(revision))
    market = _store(inputs.snapshot)
    pinned = _pinned(inputs, market)
    study, created = Study.objects.get_or_create(
        revision=revision,
        inputs_hash=content_hash(pinned),
        status__in=ANSWERS,  # what is out of date or superseded stays that, and a new study stands beside it
        defaults={
            "inputs": pinned,
            "snapshot": market,
            "catalogue_date": market.as_of,
            "constants_version": _constants(inputs.request.kind) + learned,
            "seed": inputs.setting.seed,
            "created_by": by,
        },
    )
    if created:
        record("study.requested", on=study, by=by, team=revision.request.team, revision=revision.number,
               inputs_hash=study.inputs_hash)  # fmt: skip
    _settle(study)
    if study.status in (StudyStatus.DRAFT, StudyStatus.FAILED):
        _start(study, by)
    return study


def _start(study: Study, by: User | None) -> None:
    transitions.advance(study, StudyStatus.RUNNING, by=by, action="study.started",
                        team=study.revision.request.team)  # fmt: skip
    job = jobs.submit(TASK, study.pk, key=f"study:{study.pk}", owner=by)
    if job.status in (Job.Status.FAILED, Job.Status.CANCELLED):
        job = jobs.retry(job, owner=by)
    study.job, study.error = job, {}
    study.save(update_fields=["job", "error"])


def _settle(study: Study) -> None:
    """A study whose job ended without it (cancelled in the queue, given up by the sweeper) has failed."""
    job = study.job
    if study.status != StudyStatus.RUNNING or job is None:
        return
    if job.status in (Job.Status.CANCELLED, Job.Status.FAILED):
        reason = Message.from_json(job.error) if job.error else CANCELLED
        fail_study(study_id=study.pk, reason=reason)
        study.refresh_from_db()


CANCELLED = msg("It was cancelled")


def setting_for(revision: RequestRevision) -> Setting:
    """Currency, country and seed for studies of a revision: the same content draws the same scenarios."""
    org = organisation()
    return Setting(
        currency=org.currency if org.currency in CURRENCIES else "USD",
        seed=int(revision.content_hash[:7], 16),
        country=country_of_zone(org.time_zone),
        owned_utilisation=owned_utilisation(today()),
        budgets=_left(revision.request.team_id, org.currency),
        stage=org.stage or None,
        tax=purchase_tax(),
        pooled=demand_of_others(revision.request),
    )


def _left(team_id: int, currency: str) -> dict[str, Decimal]:
    """What the team's open budgets of this quarter have left, by kind of spend; one that is not there is left out."""
    quarter = quarter_at()
    rows = Budget.objects.filter(
        team=team_id, fiscal_year=quarter.year, quarter=quarter.q, closed_at=None, currency=currency
    )
    found = {row.pk: row.kind for row in rows}
    return {found[pk]: sums.available for pk, sums in balances(rows).items()}


def _store(market: Snapshot) -> MarketSnapshot:
    content = market.to_json()
    row, _created = MarketSnapshot.objects.get_or_create(
        hash=content_hash(content),
        defaults={"on": market.on, "as_of": market.as_of, "content": content},
    )
    return row


def _constants(kind: str) -> str:
    return (published_constants() if kind in INFERENCE else training_constants()).version


def _pinned(inputs: Inputs, market: MarketSnapshot) -> dict[str, Any]:
    known = inputs.known
    return {
        "request": request_json(inputs.request),
        "model": None
        if known is None
        else {
            "architecture": asdict(known.architecture)
            | {"assumed": [note.to_json() for note in known.architecture.assumed]},
            "forward_flops": known.forward_flops,
            "on_tokens": known.on_tokens,
            "network": known.network,
            "usual_passes": known.usual_passes,
            "equal_passes": known.equal_passes,
        },
        "snapshot": market.hash,
        "currency": inputs.setting.currency,
        "country": inputs.setting.country,
        "seed": inputs.setting.seed,
        "owned_utilisation": inputs.setting.owned_utilisation,
        "budgets": {kind: str(left) for kind, left in sorted(inputs.setting.budgets.items())},
        "stage": inputs.setting.stage,
        "pooled": pooled_json(inputs.setting.pooled),
        "purchase_tax": None if inputs.setting.tax is None else inputs.setting.tax.to_json(),
        "constants": {"estimator": _constants(inputs.request.kind), "economics": defaults.stamp()},
    }


def inputs_of(study: Study) -> Inputs:
    """The inputs that `study` pinned."""
    if study.snapshot is None:
        raise ValueError(f"study {study.pk} has no pinned snapshot")
    pinned = study.inputs
    return Inputs(
        parse_request(pinned["request"]),
        _known(pinned["model"]),
        snapshot_from_json(study.snapshot.content),
        _setting(pinned),
    )


def _setting(pinned: dict[str, Any]) -> Setting:
    """The setting that a study pinned; older ones knew of no budget, no stage and no tax."""
    return Setting(
        pinned["currency"],
        pinned["seed"],
        pinned["country"],
        pinned["owned_utilisation"],
        {kind: Decimal(left) for kind, left in pinned.get("budgets", {}).items()},
        pinned.get("stage"),
        tax_from_json(pinned.get("purchase_tax")),
        pooled_from_json(pinned.get("pooled", {})),
    )


def _known(data: dict[str, Any] | None) -> KnownModel | None:
    if data is None:
        return None
    shape = dict(data["architecture"])
    parts = {"moe": MixtureOfExperts, "mla": LatentAttention, "state_space": StateSpace}
    for name, cls in parts.items():
        shape[name] = None if shape[name] is None else cls(**shape[name])
    shape["assumed"] = tuple(Message.from_json(note) for note in shape["assumed"])
    told = {name: value for name, value in data.items() if name != "architecture"}
    return KnownModel(Architecture(**shape), **told)


def compute(*, study_id: int, progress: Progress) -> None:
    """Run the search and store its result; nothing is done where the study is no longer running. Any failure is kept
    on the study before it goes on to the job."""
    study = Study.objects.select_related("snapshot").get(pk=study_id)
    if study.status != StudyStatus.RUNNING:
        return
    try:
        inputs = inputs_of(study)
        result = run_study(
            inputs.request,
            inputs.known,
            inputs.snapshot,
            inputs.setting,
            progress,
            snapshot_hash=study.inputs["snapshot"],
            first=lambda found: show_first(study_id=study_id, preview=found),
        )
        progress(95, msg("Storing the result"))
    except JobCancelled:
        fail_study(study_id=study_id, reason=CANCELLED)
        raise
    except DomainError as error:
        fail_study(study_id=study_id, reason=error.message)
        raise
    finish_study(study_id=study_id, result=result)


def show_first(*, study_id: int, preview: dict[str, Any]) -> None:
    """Keep the first ranked plans for who waits; nothing is decided on them and the result replaces them."""
    Study.objects.filter(pk=study_id, status=StudyStatus.RUNNING).update(preview=preview)


@transaction.atomic
def finish_study(*, study_id: int, result: dict[str, Any]) -> Study:
    """Store the result, once: a second delivery finds it there and changes nothing. Earlier studies of the same
    revision are superseded."""
    study = transitions.lock(Study.objects.select_related("revision__request__team"), study_id)
    if study.result is not None or study.status != StudyStatus.RUNNING:
        return study
    study.result, study.result_hash = result, content_hash(result)
    study.finished_at, study.preview = timezone.now(), None
    study.save(update_fields=["result", "result_hash", "finished_at", "preview"])
    team = study.revision.request.team
    transitions.advance(study, StudyStatus.READY, by=None, action="study.finished", team=team,
                        result_hash=study.result_hash, plans=len(result["plans"]))  # fmt: skip
    if request_changed(study):
        transitions.advance(
            study, StudyStatus.STALE, by=None, action="study.outdated", team=team, cause="request"
        )
    older = Study.objects.filter(
        revision=study.revision_id,
        status__in=[StudyStatus.READY, StudyStatus.PUBLISHED, StudyStatus.STALE],
        pk__lt=study.pk,
    ).exclude(pk=study.pk)
    for one in older.light():
        transitions.advance(
            one, StudyStatus.SUPERSEDED, by=None, action="study.superseded", team=team
        )
    return study


def request_changed(study: Study) -> bool:
    """Whether the request says something else now than when `study` was made."""
    try:
        return bool(request_json(study_request(study.revision)) != study.inputs["request"])
    except DomainError:
        return True


@transaction.atomic
def fail_study(*, study_id: int, reason: Message) -> Study:
    """Keep why a running study ended without a result."""
    study = transitions.lock(Study.objects.select_related("revision__request__team"), study_id)
    if study.status != StudyStatus.RUNNING:
        return study
    study.error = reason.to_json()
    study.save(update_fields=["error"])
    transitions.advance(study, StudyStatus.FAILED, by=None, action="study.failed", reason=str(reason),
                        team=study.revision.request.team)  # fmt: skip
    return study


@transaction.atomic
def cancel_study(*, study_id: int, by: User) -> Study:
    """Stop a running study at its next stage, at once while it waits."""
    study = transitions.lock(
        Study.objects.select_related("revision__request__team", "job"), study_id
    )
    policies.require_study(by, study.revision.request)
    if study.status != StudyStatus.RUNNING or study.job is None:
        raise InvalidTransition(
            msg("The study is in state %(state)s: nothing can be cancelled", state=study.status)
        )
    jobs.cancel(study.job, by=by)
    study.job.refresh_from_db()
    record("study.cancel_requested", on=study, by=by, team=study.revision.request.team)
    _settle(study)
    return study


def difference(before: Study, after: Study) -> dict[str, Any]:
    """What differs between two finished studies of one request, in answer, inputs and prices."""
    if before.result is None or after.result is None:
        raise InvalidTransition(msg("The study has no result yet"))
    return compare(before.result, after.result, _content(before), _content(after))


def _content(study: Study) -> dict[str, Any]:
    if study.snapshot is None:
        return {"offers": [], "rates": []}
    content: dict[str, Any] = study.snapshot.content
    return content


def what_if(study: Study, changes: Changes) -> dict[str, Any]:
    """The study's question with other numbers, on the prices that it pinned, over the accelerators of its plans.

    Raises InputError where a number leaves its range.
    """
    if study.result is None or study.snapshot is None:
        raise InvalidTransition(msg("The study has no result yet"))
    shown = [*study.result["plans"], *study.result["nearest"]]
    compared = [row for row in study.result["comparison"] if row["key"]]
    slugs = frozenset(
        [plan["accelerator_slug"] for plan in shown]
        + [row["key"].split(":", 1)[0] for row in compared]
    )
    pinned = study.inputs
    return search_what_if(
        parse_request(pinned["request"]),
        _known(pinned["model"]),
        part_of(study.snapshot.content, slugs),
        _setting(pinned),
        changes,
    )
