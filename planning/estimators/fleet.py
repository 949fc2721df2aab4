"""How many replicas a service needs: queueing in front of slots, a headroom that is never below the floor.

Three needs are computed and the largest decides: throughput alone, throughput with headroom, and the latency bound
at its percentile. What a straight division would have said is shown beside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from core.errors import InputError
from core.messages import Message, msg, plural
from planning.estimators.inference import ReplicaPlan, replica_plans
from planning.estimators.inference_bands import grade_of, measured_over_estimated
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.inference_workload import (
    InferenceLayout,
    InferenceWorkload,
    checked,
    replicas_message,
)
from planning.estimators.operating_point import ServiceCurve, service_curve
from planning.estimators.queueing import Queue, highest_load
from planning.estimators.service_options import HEADROOM
from planning.estimators.types import (
    Accelerator,
    Architecture,
    FleetAnswers,
    Grade,
    InfeasibleError,
    Latencies,
    Step,
)

LARGEST_FLEET = 1_000_000  # replicas
FEW_SLOTS = (
    32  # below this a flat 20 % headroom is not enough for a p99 wait of half a service time
)
PERCENTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """A fleet: replicas x accelerators per replica, why so many, and how it answers."""

    workload: InferenceWorkload
    layout: InferenceLayout
    replicas: int
    accelerators_per_replica: int
    concurrency: float  # slots of one replica [1]
    slots: int
    peak_rate: float  # requests [1/s]
    service_time: float  # mean time in a slot at full batch [s]
    replicas_by_division: int  # throughput alone, nothing to spare
    replicas_by_headroom: int
    replicas_by_latency: int | None  # None: no bound was given
    binding: str  # "headroom" or "latency"
    headroom: float  # the fleet's reserve over the peak [1]
    model_error: float  # by how much the load may be higher than computed, share
    ttft: float  # of one replica with full batches, without waiting [s]
    tpot: float  # with full batches [s]
    grade: Grade
    plan: ReplicaPlan = field(compare=False, repr=False)
    constants: Constants = field(compare=False, repr=False)
    messages: tuple[Message, ...] = ()
    trace: tuple[Step, ...] = ()
    constants_version: str = ""
    others: tuple[FleetPlan, ...] = ()  # other layouts, fewest accelerators first

    @property
    def accelerators(self) -> int:
        """Accelerators in all: replicas x accelerators per replica."""
        return self.replicas * self.accelerators_per_replica

    @property
    def answers(self) -> FleetAnswers:
        """At the mean load, at the planned one, with the model's error, and full."""
        return self.answers_with(self.replicas)

    @property
    def planned(self) -> Latencies:
        """At the planned load."""
        return self.answers.planned

    @property
    def with_model_error(self) -> Latencies:
        """At load x (1 + model error)."""
        return self.answers.with_model_error

    def queue(self, replicas: int, rate: float) -> Queue:
        """The queue before `replicas` of these at `rate` [1/s]; a request waits where every batch is full."""
        w = self.workload
        return Queue(
            replicas * int(self.concurrency),
            self.service_time,
            rate,
            w.arrival_variation,
            w.service_variation,
        )

    def answers_with(self, replicas: int) -> FleetAnswers:
        """How the same replicas would answer if there were `replicas` of them."""
        curve, peak = self._curve(), self.peak_rate
        point = curve.settle(peak / replicas)
        capacity = replicas * self.concurrency / self.service_time
        return FleetAnswers(
            self._latencies(curve, replicas, peak),
            self._latencies(curve, replicas, peak * (1.0 + self.model_error)),
            self.model_error,
            average=self._latencies(curve, replicas, peak / self.workload.peak_factor),
            full=self._latencies(curve, replicas, capacity, wait=False),
            compute=curve.at(curve.compute, point.batch) * point.busy,
            bandwidth=curve.at(curve.bandwidth, point.batch) * point.busy,
        )

    def _curve(self) -> ServiceCurve:
        static = self.workload.batching == "static"
        return service_curve(
            self.plan.candidate,
            self.constants,
            most=self.concurrency,
            fixed=self.plan.serving if static else None,
        )

    def _latencies(
        self, curve: ServiceCurve, replicas: int, rate: float, *, wait: bool = True
    ) -> Latencies:
        """Waits by Allen-Cunneen, then the time in a replica at the batch that this rate leads to.

        The end-to-end tail is led by long outputs, whose token times add to the wait.
        """
        w, queue = self.workload, self.queue(replicas, rate)
        point = curve.settle(rate / replicas)
        names = {f"p{round(100 * p)}": p for p in PERCENTILES}
        waits = {name: queue.wait(p) if wait else 0.0 for name, p in names.items()}
        tpot = curve.at(curve.tpot, point.batch)
        first = {
            name: waits[name] + curve.at(curve.ttft, curve.batch_at(point, p))
            for name, p in names.items()
        }
        output = {name: _output_at(w, p) for name, p in names.items()}
        return Latencies(
            load=queue.load,
            wait=waits if wait else {},
            ttft=first,
            end_to_end={name: first[name] + (output[name] - 1.0) * tpot for name in names},
            tpot=tpot if w.output_tokens > 1.0 else None,
            in_flight=point.in_flight,
        )


def _output_at(w: InferenceWorkload, percentile: float) -> float:
    """Output length at a percentile: log-normal, p99 lies 2.326 deviations above the median. [tokens]"""
    deviations = {0.5: 0.0, 0.95: 1.645, 0.99: 2.326}[percentile]
    return float(w.output_tokens * (w.long_output / w.output_tokens) ** (deviations / 2.326))


def plan_fleet(
    request: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    *,
    layout: InferenceLayout | None = None,
    constants: Constants | None = None,
) -> FleetPlan:
    """The smallest fleet for a request rate with a peak factor and latency bounds at a percentile.

    Every layout that fits is sized; the one with the fewest accelerators is returned, the others in `others`.

    Raises
    ------
    InputError
        If a field is out of range, or no request rate is given.
    InfeasibleError
        If the model fits on no layout, or no load, however low, meets the latency bounds.
    """
    k = constants or published_constants()
    workload = checked(request, accelerator, architecture)
    if workload.request_rate is None:
        raise InputError("request_rate", msg("A fleet is sized for a request rate; none is given"))
    plans = replica_plans(workload, accelerator, architecture, k, layout=layout)
    fitting = [plan for plan in plans if plan.fits]
    if not fitting:
        text = msg(
            "%(model)s does not fit on any layout of %(name)s",
            model=architecture.name,
            name=accelerator.name,
        )
        raise InfeasibleError(text)
    meeting = [plan for plan in fitting if plan.meets]
    if not meeting:
        nearest = min(fitting, key=lambda plan: plan.strain)
        raise InfeasibleError(
            msg(
                "No layout of %(name)s meets the latency bounds, even idle: "
                "the nearest misses by a factor of %(factor)s",
                name=accelerator.name,
                factor=round(nearest.strain, 2),
            ),
            remedies=_faster(workload, nearest),
        )
    sized = [_size(plan, accelerator, architecture, k) for plan in meeting]
    fleets = sorted(
        (f for f in sized if f is not None),
        key=lambda f: (f.accelerators, f.accelerators_per_replica),
    )
    if not fleets:
        text = msg("More than %(limit)s replicas would be needed", limit=LARGEST_FLEET)
        raise InfeasibleError(text)
    best, *others = fleets
    return replace(best, others=tuple(others))


def _faster(workload: InferenceWorkload, plan: ReplicaPlan) -> tuple[Message, ...]:
    out = []
    several = workload.output_tokens > 1.0
    if (
        workload.tpot_slo is not None
        and several
        and float(plan.serving.tpot[0]) > workload.tpot_slo
    ):
        out.append(
            msg(
                "Tokens come every %(ms)s ms at best: take more bandwidth per replica, or smaller weights.",
                ms=round(1e3 * float(plan.serving.tpot[0]), 1),
            )
        )
    if workload.ttft_slo is not None and float(plan.serving.ttft[0]) > workload.ttft_slo:
        out.append(
            msg(
                "The first token takes %(ms)s ms at best: take more compute per replica, or a shorter input.",
                ms=round(1e3 * float(plan.serving.ttft[0])),
            )
        )
    if workload.latency_slo is not None:
        out.append(
            msg(
                "A whole answer of %(tokens)s tokens takes longer than the bound: "
                "allow shorter answers, or bound the first token instead.",
                tokens=round(workload.bounded_output),
            )
        )
    return tuple(out)


def _size(
    plan: ReplicaPlan, accelerator: Accelerator, architecture: Architecture, k: Constants
) -> FleetPlan | None:
    w = plan.workload
    assert w.request_rate is not None  # noqa: S101 - checked by the caller
    sparse = architecture.moe is not None
    grade = grade_of(
        k,
        architecture,
        accelerator,
        weights=w.weights_dtype,
        engine=w.engine,
        context=w.input_tokens + w.output_tokens,
    )
    low, _ = measured_over_estimated(
        k, "concurrency" if w.concurrency else "throughput", sparse=sparse, grade=grade
    )
    error = max(1.0 / low - 1.0, 0.0)
    concurrency = max(int(plan.concurrency), 1)
    rate = w.request_rate * w.peak_factor
    per_replica = float(plan.serving.throughput[0]) / w.output_tokens  # requests [1/s]
    service = concurrency / per_replica  # time in a slot at full batch, by Little
    division = max(math.ceil(round(rate / per_replica, 9)), 1)
    reserve = max(w.headroom, 0.0)
    by_headroom = max(math.ceil(round(rate * (1.0 + reserve) / per_replica, 9)), 1)
    if by_headroom > LARGEST_FLEET:
        return None
    by_latency = _replicas_for_latency(plan, concurrency, service, rate, division)
    replicas = max(by_headroom, by_latency or 1)
    slots = replicas * concurrency
    queue = Queue(slots, service, rate, w.arrival_variation, w.service_variation)
    ttft, tpot = float(plan.serving.ttft[0]), float(plan.serving.tpot[0])
    headroom = replicas * per_replica / rate - 1.0
    fleet = FleetPlan(
        workload=w,
        layout=plan.layout,
        replicas=replicas,
        accelerators_per_replica=plan.layout.accelerators,
        concurrency=float(concurrency),
        slots=slots,
        peak_rate=rate,
        service_time=service,
        replicas_by_division=division,
        replicas_by_headroom=by_headroom,
        replicas_by_latency=by_latency,
        binding="latency" if by_latency is not None and by_latency > by_headroom else "headroom",
        headroom=headroom,
        model_error=error,
        ttft=ttft,
        tpot=tpot,
        grade=grade,
        plan=plan,
        constants=k,
        trace=_trace(plan, queue, division, by_headroom, by_latency, replicas),
        constants_version=k.version,
    )
    return replace(fleet, messages=_messages(fleet))


def _wait_budget(plan: ReplicaPlan) -> float | None:
    """What the latency bounds leave for waiting; None without a bound on first token or whole answer. [s]"""
    w, s = plan.workload, plan.serving
    budgets = []
    if w.ttft_slo is not None:
        budgets.append(w.ttft_slo - float(s.ttft[0]))
    if w.latency_slo is not None:
        whole = float(s.ttft[0]) + (w.bounded_output - 1.0) * float(s.tpot[0])
        budgets.append(w.latency_slo - whole)
    return min(budgets) if budgets else None


def _replicas_for_latency(
    plan: ReplicaPlan, concurrency: int, service: float, rate: float, least: int
) -> int | None:
    """Fewest replicas whose wait stays within what the bounds leave. [1]"""
    w = plan.workload
    budget = _wait_budget(plan)
    if budget is None:
        return None
    return replicas_for_wait(
        concurrency,
        service,
        rate,
        budget=budget,
        percentile=w.percentile,
        least=least,
        arrival_variation=w.arrival_variation,
        service_variation=w.service_variation,
    )


def replicas_for_wait(
    concurrency: int,
    service: float,
    rate: float,
    *,
    budget: float,
    percentile: float,
    least: int = 1,
    arrival_variation: float = 1.0,
    service_variation: float = 1.0,
) -> int:
    """Fewest replicas of `concurrency` slots whose wait at `percentile` stays within `budget`, by bisection. [1]

    `service`: mean time in a slot [s]; `rate`: arrivals [1/s]; a budget below 0 counts as 0; at most LARGEST_FLEET.
    """

    def waits(replicas: int) -> bool:
        queue = Queue(replicas * concurrency, service, rate, arrival_variation, service_variation)
        return queue.wait(percentile) > max(budget, 0.0)

    high = max(least, 1)
    while waits(high):
        high *= 2
        if high > LARGEST_FLEET:
            return LARGEST_FLEET
    low = max(high // 2, least - 1, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits(middle) else (low, middle)
    return high


def latency_decides(needed: float, rule: float, slots: int) -> Message:
    """That the latency bound takes more headroom than the rule, and why."""
    return plural(
        slots,
        msg(
            "The latency bound decides: %(needed)s %% of headroom where the rule asks for %(rule)s %%, "
            "because one slot bears the load alone.",
            needed=round(100 * needed),
            rule=round(100 * rule),
        ),
        msg(
            "The latency bound decides: %(needed)s %% of headroom where the rule asks for %(rule)s %%, "
            "because only %(slots)s slots share the load.",
            needed=round(100 * needed),
            rule=round(100 * rule),
            slots=slots,
        ),
    )


def few_slots(slots: int) -> Message:
    """Up to which load so few slots keep the wait short."""
    load = round(100 * highest_load(slots, wait=0.5, percentile=0.99))
    return plural(
        slots,
        msg(
            "With one slot the p99 wait stays below half a service time only up to %(load)s %% load.",
            load=load,
        ),
        msg(
            "With %(slots)s slots the p99 wait stays below half a service time only up to %(load)s %% load.",
            slots=slots,
            load=load,
        ),
    )


def overloaded_if_wrong(error: float) -> Message:
    """That the fleet does not stand the model's own error."""
    return msg(
        "If the model is off by its P90 error, %(error)s %%, the fleet is overloaded at the peak: "
        "measure before buying.",
        error=round(100 * error),
    )


def overloaded(load: float) -> Message:
    """That the fleet cannot do what is asked at the peak."""
    return msg(
        "The fleet is overloaded at the peak: %(load)s %% of what it can do.",
        load=round(100 * load),
    )


def _messages(fleet: FleetPlan) -> tuple[Message, ...]:
    w = fleet.workload
    out = [replicas_message(fleet.replicas, fleet.accelerators_per_replica)]
    if fleet.replicas > fleet.replicas_by_division:
        out.append(
            plural(
                fleet.replicas_by_division,
                msg(
                    "A straight division says one replica: no reserve, "
                    "and a queue that grows at the first fluctuation."
                ),
                msg(
                    "A straight division says %(division)s replicas: no reserve, "
                    "and a queue that grows at the first fluctuation.",
                    division=fleet.replicas_by_division,
                ),
            )
        )
    if w.headroom < HEADROOM:
        out.append(
            msg(
                "The headroom asked for, %(asked)s %%, is below the floor of %(floor)s %%.",
                asked=round(100 * w.headroom),
                floor=round(100 * HEADROOM),
            )
        )
    if fleet.binding == "latency":
        out.append(latency_decides(fleet.headroom, w.headroom, fleet.slots))
    if fleet.slots < FEW_SLOTS:
        out.append(few_slots(fleet.slots))
    if fleet.queue(fleet.replicas, fleet.peak_rate).load * (1.0 + fleet.model_error) >= 1.0:
        out.append(overloaded_if_wrong(fleet.model_error))
    if w.peak_factor == 1.0:
        out.append(
            msg(
                "No peak factor is given: the mean rate is taken as the peak. Offices see 3 to 5, consumers 2 to 3."
            )
        )
    return tuple(out)


def operating_trace(answers: FleetAnswers) -> tuple[Step, ...]:
    """Where a replica settles at the mean and at the peak load."""
    peak, mean = answers.planned, answers.average
    lines = []
    for at, name in ((mean, "average load"), (peak, "peak load")):
        if at is None or at.in_flight is None:
            continue
        formula = "n = r S(1 + n), r of one replica"
        lines += [
            Step(f"in flight at {name}", formula, {"load": at.load}, at.in_flight, "1"),
            Step(f"TTFT at {name}", "TTFT(1 + n) + wait", {"n": at.in_flight}, at.ttft["p50"], "s"),
        ]
        if at.tpot is not None:
            lines.append(Step(f"TPOT at {name}", "TPOT(1 + n)", {"n": at.in_flight}, at.tpot, "s"))
    return tuple(lines)


def _trace(
    plan: ReplicaPlan,
    queue: Queue,
    division: int,
    by_headroom: int,
    by_latency: int | None,
    replicas: int,
) -> tuple[Step, ...]:
    w = plan.workload
    per_replica = queue.slots / replicas / queue.service
    lines = [
        Step(
            "peak rate",
            "rate x peak factor",
            {"rate": w.request_rate or 0.0, "factor": w.peak_factor},
            queue.rate,
            "1/s",
        ),
        Step("requests of a replica", "throughput / O", {"O": w.output_tokens}, per_replica, "1/s"),
        Step("service time", "B / requests", {"B": queue.slots / replicas}, queue.service, "s"),
        Step("replicas by division", "ceil(peak / requests)", {}, division, "1"),
        Step(
            "replicas by headroom",
            "ceil(peak (1 + h) / requests)",
            {"h": w.headroom},
            by_headroom,
            "1",
        ),
    ]
    if by_latency is not None:
        lines.append(
            Step(
                "replicas by latency",
                "fewest with wait(p) <= bound - TTFT",
                {"p": w.percentile},
                by_latency,
                "1",
            )
        )
    lines += [
        Step("slots", "c = replicas x B", {"replicas": replicas}, queue.slots, "1"),
        Step("load", "rho = peak S / c", {"S": queue.service}, queue.load, "1"),
        Step("probability of waiting", "Erlang C(c, c rho)", {}, queue.waiting_probability, "1"),
        Step(
            "wait at the percentile",
            "S ln(C / (1 - p)) / (c (1 - rho)) x (ca^2 + cs^2) / 2",
            {"p": w.percentile, "ca": w.arrival_variation, "cs": w.service_variation},
            queue.wait(w.percentile),
            "s",
        ),
    ]
    return tuple(lines)
