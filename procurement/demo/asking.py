"""What teams asked for and the CTO has to do with: waiting for a decision, sent back, refused, still a draft."""

from __future__ import annotations

from planning.management.commands.load_demo import write_draft
from planning.services.briefs import publish_study
from planning.workloads import Kind
from procurement.demo.buying import RENTED
from procurement.demo.stage import Stage, Story, bought, decide, file_request, plan_and_submit


def waiting(s: Stage) -> Story:
    """In the CTO's inbox: plan chosen, study published with its decision brief in both languages."""
    yield s.office(4, 10)
    request = file_request(
        s, by=s.lin, team="foundation", kind=Kind.ONLINE_INFERENCE,
        title="Assistant serving, public beta 智能助手公测推理",
        workload={"model": "llama-3.1-70b", "requests_per_day": 600_000, "input_tokens": 900, "output_tokens": 250},
        justification="Public beta with 200 k invited users. No user data is kept; the peak is known from the closed "
        "beta (9 requests a second). 公测两个季度后按实测再定是否自购。",
        need_in=45, duration_days=365, latency_class="chat", accuracy_loss_limit=0.01,
    )  # fmt: skip
    study = plan_and_submit(request, by=s.lin)
    yield s.office(2, 11)
    publish_study(study_id=study.pk, by=s.wu)


def returned(s: Stage) -> Story:
    """Sent back: the request does not say what the load rests on."""
    yield s.office(12, 15)
    request = file_request(
        s, by=s.ming, team="search", kind=Kind.LORA, title="商品标题改写 LoRA Product title rewriting",
        workload={"model": "qwen2.5-72b", "tokens": "1.5B"},
        justification="运营需要自动改写标题。", need_in=40, duration_days=30,
    )  # fmt: skip
    plan_and_submit(request, by=s.ming, use_reason=RENTED)
    yield s.office(7, 17)
    decide(
        request, s.chen, "return",
        "15 亿 token 从哪里来？请附样本统计，并说明改写后点击率的评测办法。7B 模型是否够用也请比较。",
    )  # fmt: skip


def refused(s: Stage) -> Story:
    """Refused: more than the team's budget, for what another team does already."""
    yield s.office(75, 10)
    request = file_request(
        s, by=s.ming, team="search", kind=Kind.GPU_HOURS, title="Search foundation model 搜索自研基座",
        workload={"gpu_hours": "90000", "accelerators": "16", "accelerator": "nvidia-h100-sxm5-80gb"},
        justification="A base model of our own would know queries better than the shared one.",
        need_in=10, duration_days=1095,
    )  # fmt: skip
    plan_and_submit(request, by=s.ming, choose=bought)
    yield s.office(72, 16)
    decide(
        request, s.chen, "reject",
        "与基础模型组的路线重复，且超出本季度预算。先用共享基座做对照实验，有数据再提。",
    )  # fmt: skip


def drafted(s: Stage) -> Story:
    """A draft that its author has not finished."""
    yield s.office(1, 17)
    write_draft()
