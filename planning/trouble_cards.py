"""Rows of the trouble table: what the fleet and its bill show: cost, idle cards, queues. Pure data."""

from __future__ import annotations

from core.messages import msg
from planning.trouble import (
    DAY,
    DMON,
    LOW_USE,
    Cause,
    Check,
    Question,
    Remedy,
    Symptom,
    above,
    below,
    free,
    when,
)

SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "cloud-bill",
        msg("The cloud bill is too high"),
        (
            Question("night", msg("Do instances run at night and on weekends without work?")),
            Question(
                "egress", msg("Is much data read over the object store or out of the region?")
            ),
            Question("restartable", msg("Could the work be interrupted and resumed?")),
            Question("steady", msg("Is the load steady for months?")),
        ),
        (
            Cause(
                "idle",
                msg("Instances idle"),
                2.0,
                (
                    Check(
                        msg("List running instances with their utilisation over a week"),
                        "aws ec2 describe-instances --filters Name=instance-state-name,Values=running",
                    ),
                ),
                (free(msg("Stop them by schedule; budget alarm; clean up")),),
                {"night": 2.0},
                when(lambda s: below(s.utilization, LOW_USE) or s.idle > 0),
                msg("Cards of your team do little or nothing."),
            ),
            Cause(
                "reads",
                msg("Data reads, egress and snapshots"),
                1.5,
                (
                    Check(
                        msg("Group the bill's lines by kind of use"),
                        "aws ce get-cost-and-usage --time-period Start=FIRST,End=LAST --granularity MONTHLY"
                        " --metrics UnblendedCost --group-by Type=DIMENSION,Key=USAGE_TYPE",
                    ),
                ),
                (
                    Remedy(
                        msg("Local cache and fewer snapshots"),
                        msg("data lines fell by four fifths in a known case"),
                    ),
                ),
                {"egress": 2.5},
            ),
            Cause(
                "on-demand",
                msg("The wrong way of paying"),
                1.5,
                (
                    Check(
                        msg("Compare hours on demand with a reservation of the base load"),
                        "aws ce get-reservation-coverage --time-period Start=FIRST,End=LAST",
                    ),
                ),
                (
                    Remedy(
                        msg("Spot for what may be interrupted, with checkpoints"),
                        msg("about a third of on demand"),
                    ),
                    Remedy(
                        msg("Reserve the base load"),
                        msg("two thirds of on demand for a year"),
                        "request",
                    ),
                ),
                {"restartable": 1.5, "steady": 1.5},
            ),
        ),
    ),
    Symptom(
        "idle-cards",
        msg("Cards are bought and little used"),
        (
            Question("waiting", msg("Do jobs wait although cards are free?")),
            Question("held", msg("Do people hold cards in open sessions?")),
            Question("done", msg("Has the work for which they were bought ended or not begun?")),
        ),
        (
            Cause(
                "oversized",
                msg("There are more cards than work"),
                1.5,
                (
                    Check(
                        msg("Compare cards in use at the busiest hour with cards owned"),
                        "max_over_time(count(DCGM_FI_DEV_GPU_UTIL > 5)[7d:1h])",
                    ),
                ),
                (
                    Remedy(
                        msg("Lend them to another team, or shrink"),
                        msg("each card not bought next time"),
                    ),
                ),
                {"done": 2.0, "waiting": -2.0},
                when(lambda s: below(s.utilization, LOW_USE) and not above(s.queue, DAY)),
                msg("Your cards are less than a third busy and nobody waits for long."),
            ),
            Cause(
                "scheduling",
                msg("Free cards cannot be used: fragments, quotas, wrong partitions"),
                1.0,
                (
                    Check(
                        msg("List what waits and why"),
                        "squeue -o '%i %P %t %r %b' --start; sinfo -o '%P %G %t %D'",
                    ),
                    Check(
                        msg("On Kubernetes, read why pods are pending"),
                        "kubectl get events --field-selector reason=FailedScheduling -A",
                    ),
                ),
                (
                    free(
                        msg(
                            "Backfill, gang scheduling, one pool in place of many, shorter time limits"
                        )
                    ),
                ),
                {"waiting": 2.5},
                when(lambda s: below(s.utilization, LOW_USE) and above(s.queue, DAY), 3.0),
                msg("Your cards are less than a third busy while jobs wait over a day."),
            ),
            Cause(
                "held",
                msg("Cards are reserved but idle"),
                1.0,
                (Check(msg("List processes that hold cards without work"), DMON),),
                (free(msg("Release idle sessions after an hour; partition cards for notebooks")),),
                {"held": 2.5},
                when(lambda s: s.idle > 0),
                msg("Some of your cards did next to nothing."),
            ),
            Cause(
                "slow-software",
                msg("The work does not fill the cards"),
                1.0,
                (Check(msg("Go through the page on training that will not speed up")),),
                (
                    free(
                        msg("Mixed precision, batching, data loading: utilisation before hardware")
                    ),
                ),
                {"done": -1.0},
            ),
        ),
    ),
    Symptom(
        "long-queue",
        msg("Jobs wait too long"),
        (
            Question("free_cards", msg("Are cards free while jobs wait?")),
            Question("one_team", msg("Does one team hold most of the cards?")),
            Question("peaks", msg("Is it long only at certain times?")),
        ),
        (
            Cause(
                "capacity",
                msg("There are too few cards"),
                1.5,
                (
                    Check(
                        msg("Is utilisation above four fifths while jobs wait?"),
                        "avg(avg_over_time(DCGM_FI_DEV_GPU_UTIL[7d])); squeue -t PENDING -o '%i %r %S'",
                    ),
                ),
                (
                    Remedy(
                        msg("Grow the pool"),
                        msg("the price of the cards; see the review's recommendation"),
                        "request",
                    ),
                    Remedy(
                        msg("Send peaks to the cloud"),
                        msg("on demand is two to three times reserved"),
                        "request",
                    ),
                ),
                {"free_cards": -2.0},
                when(lambda s: above(s.utilization, 0.7) and above(s.queue, DAY), 3.0),
                msg("Your cards are busy and jobs wait over a day."),
            ),
            Cause(
                "scheduling",
                msg("Free cards cannot be used: fragments, quotas, wrong partitions"),
                1.0,
                (
                    Check(
                        msg("List what waits and why"),
                        "squeue -o '%i %P %t %r %b' --start; sinfo -o '%P %G %t %D'",
                    ),
                ),
                (
                    free(
                        msg(
                            "Backfill, gang scheduling, one pool in place of many, shorter time limits"
                        )
                    ),
                ),
                {"free_cards": 2.5},
                when(lambda s: below(s.utilization, LOW_USE) and above(s.queue, DAY), 3.0),
                msg("Your cards are less than a third busy while jobs wait over a day."),
            ),
            Cause(
                "sharing",
                msg("Cards are shared out unfairly"),
                1.0,
                (
                    Check(
                        msg("Compare each team's share with its use"),
                        "sshare -a; sreport cluster AccountUtilizationByUser",
                    ),
                ),
                (free(msg("Fair share with borrowing, limits on long jobs")),),
                {"one_team": 2.5},
            ),
            Cause(
                "peaks",
                msg("Demand comes in peaks"),
                0.5,
                (
                    Check(
                        msg("Draw waiting jobs by hour of the week"),
                        "sacct -X -a -P -S now-28days -o JobID,Submit,Eligible,Start,State,AllocTRES",
                    ),
                ),
                (
                    Remedy(
                        msg("Move what can wait to nights; send peaks to spot"),
                        msg("about a third of on demand"),
                        "request",
                    ),
                ),
                {"peaks": 2.5},
            ),
        ),
    ),
)
