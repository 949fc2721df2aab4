import pytest

from planning.telemetry_formats.slurm import SacctFacts, SreportFacts, duration_s, sacct, sreport
from tests.procurement.evidence.samples import content, read

MONTH = content("22_sacct_parsable2_month.psv").decode()
NAME = "22_sacct_parsable2_month.psv"


def jobs(text):
    facts = SacctFacts()
    return list(sacct(enumerate(text.splitlines(), 1), facts)), facts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("02:00:00", 7200),
        ("1-02:00:00", 93600),
        ("05:30", 330),
        ("00:00:45.123", 45),
        ("Unknown", None),
        ("", None),
        (None, None),
    ],
)
def test_durations(text, seconds):
    assert duration_s(text) == seconds


def test_cards_are_counted_once_and_steps_known():
    found, facts = jobs(MONTH)
    assert (len(found), sum(job.step for job in found)) == (26, 12)
    assert found[0].gpus == 8
    assert facts.typed_and_untyped


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(line + "|" for line in MONTH.splitlines()),
        MONTH.replace("Planned", "Reserved"),
        MONTH.replace("train-03", "tr|ain\n-03|x"),
        MONTH.replace("|", "|#"),
    ],
    ids=["trailing bar", "old column", "bar and line feed in a name", "other separator"],
)
def test_layouts_give_the_same_month(text):
    assert read(NAME, text.encode()).metrics == read(NAME).metrics


def test_a_list_of_resources_that_is_cut_off_is_unknown_not_zero():
    text = (
        "JobID           JobName  AllocTRES      State  ElapsedRaw \n"
        "------------ ---------- ---------- ---------- ----------- \n"
        "4100           train-00 billing=1+  COMPLETED        7200 \n"
    )
    (job,), _ = jobs(text)
    assert job.gpus is None
    assert read(NAME, text.encode()).review_verdict == "inconclusive"


def test_array_and_het_jobs_and_bad_rows():
    text = (
        "JobID|State|AllocTRES\n12_[5-9]|PENDING|\n12+0|RUNNING|gres/gpu=2\nx|y|z\n"
        "13|CANCELLED by 7|gres/gpu:a=1,gres/gpu:b=2\n"
    )
    found, facts = jobs(text)
    assert [(job.job_id, job.gpus) for job in found] == [("12_[5-9]", None), ("12+0", 2), ("13", 3)]
    assert facts.bad_rows == [4]


def test_short_queues_are_ok_and_long_ones_insufficient():
    short = "\n".join(MONTH.splitlines()[:6]) + "\n"
    assert read(NAME, short.encode()).review_verdict == "ok"
    assert read(NAME).review_verdict == "insufficient"


@pytest.mark.parametrize("bars", [False, True])
def test_sreport_in_both_layouts_with_percentages(bars):
    if bars:
        text = (
            "Usage reported in TRES Hours\nCluster|TRES Name|Allocated|Reported\n"
            "c|cpu|5|6\nc|gres/gpu|11290(52.50%)|21504(100.00%)\n"
        )
    else:
        text = (
            content("23_sreport_cluster_utilization.txt")
            .decode()
            .replace("       11290", "11290(52.50%)")
        )
    rows = [
        row
        for row in sreport(enumerate(text.splitlines(), 1), SreportFacts())
        if row.tres == "gres/gpu"
    ]
    assert rows[0].values["Allocated"] == 11290
    assert rows[0].percents["Allocated"] == 52.5


def test_minutes_become_hours():
    text = (
        content("23_sreport_cluster_utilization.txt").decode().replace("TRES Hours", "TRES Minutes")
    )
    assert read("23_sreport_cluster_utilization.txt", text.encode()).metrics[
        "gpu_allocated_h"
    ] == pytest.approx(188.17)
