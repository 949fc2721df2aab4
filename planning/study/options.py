"""What may be told beside the workload: hardware, layout, recipe, serving, and what the answer must respect.

All optional. What is left out is searched, or taken from the framework's or engine's defaults and said.
"""

from __future__ import annotations

from core.messages import msg
from core.money import CURRENCIES
from planning.study.fields import Field
from planning.study.workloads import (
    ASKS_ACCURACY,
    ASKS_INTERRUPTIBLE,
    ASKS_LATENCY,
    FIELDS,
    FRAMEWORK,
    OPTIMIZER,
    RECOMPUTATION,
    SAMPLE_INFERENCE,
    TOKEN_INFERENCE,
    TRAINING,
    Kind,
)

SHARDING = (
    ("none", msg("Replicas (none)")),
    ("zero1", msg("ZeRO-1")),
    ("zero2", msg("ZeRO-2")),
    ("zero3", msg("ZeRO-3, FSDP")),
)
OFFLOAD = (
    ("none", msg("None")),
    ("optimizer", msg("Optimiser states in host memory")),
    ("all", msg("Weights and states in host memory")),
)
LORA_TARGETS = (
    ("qv", msg("Query and value projections")),
    ("attention", msg("All attention projections")),
    ("all", msg("All linear layers")),
)
KV_PRECISIONS = (
    ("fp16", msg("FP16")),
    ("bf16", msg("BF16")),
    ("fp8", msg("FP8")),
    ("int8", msg("INT8")),
    ("fp4", msg("FP4")),
)
ENGINES = (
    ("vllm", msg("vLLM")),
    ("sglang", msg("SGLang")),
    ("tensorrt-llm-torch", msg("TensorRT-LLM (PyTorch runtime)")),
    ("tensorrt-llm", msg("TensorRT-LLM (C++ runtime)")),
    ("other", msg("Another engine")),
)
RESIDENCES = (
    ("anywhere", msg("Anywhere")),
    ("country", msg("In the country only")),
    ("organisation", msg("Inside the organisation only (no public cloud)")),
)
LATENCY_CLASSES = (
    ("voice", msg("Live voice, under 100 ms")),
    ("image", msg("Image inspection, under 200 ms")),
    ("video", msg("Video, under 300 ms a frame")),
    ("chat", msg("Chat service, under 500 ms")),
    ("offline", msg("Offline, under 5 s")),
)
LATENCY_SECONDS = {"voice": 0.1, "image": 0.2, "video": 0.3, "chat": 0.5, "offline": 5.0}
LATENCY_METRICS = (
    ("ttft", msg("Time to first token")),
    ("end_to_end", msg("Whole answer")),
)
PERCENTILES = (("p50", msg("p50")), ("p95", msg("p95")), ("p99", msg("p99")))
STAGES = (
    ("student", msg("Student or single researcher")),
    ("startup", msg("Start-up, 3 to 10 people")),
    ("midsize", msg("Mid-size firm")),
    ("large", msg("Large firm")),
)

ACCELERATOR = Field(
    "accelerator", msg("Accelerators to compare"), "texts",
    help=msg("Short names or usual names: H100, A100-80GB, RTX 4090. Empty: the whole catalogue is compared."),
)  # fmt: skip
COUNT = Field(
    "accelerators", msg("Number of accelerators"), "count", minimum=1, maximum=200_000,
    help=msg("Empty: the smallest number that does the work."),
)  # fmt: skip
HARDWARE = (
    ACCELERATOR,
    COUNT,
    Field("accelerators_per_node", msg("Accelerators per server"), "count", minimum=1, maximum=1024),
    Field("network_bandwidth", msg("Network per accelerator"), "number", "B/s", minimum=1e6, maximum=1e13,
          help=msg("One direction, between servers: 50e9 is 400 Gbit/s. Empty: what such servers usually have.")),
)  # fmt: skip

_PARALLEL = {
    "tensor_parallel": msg("Tensor parallel"),
    "pipeline_parallel": msg("Pipeline parallel"),
    "data_parallel": msg("Data parallel"),
    "context_parallel": msg("Context parallel"),
    "expert_parallel": msg("Expert parallel"),
    "virtual_stages": msg("Model chunks per pipeline stage"),
    "attention_data_parallel": msg("Data-parallel attention ranks"),
}


def _parallel(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, _PARALLEL[name], "count", minimum=1, maximum=65_536) for name in names)


TRAINING_LAYOUT = _parallel(
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "context_parallel",
    "expert_parallel",
    "virtual_stages",
)
SERVING_LAYOUT = _parallel(
    "tensor_parallel", "pipeline_parallel", "attention_data_parallel", "expert_parallel"
)
COMMODITY = Field(
    "commodity", msg("No fast link between accelerators"), "flag",
    help=msg("Small clusters over PCIe and Ethernet: 1, 2, 4, 8, 16 accelerators reach 100, 90, 80, 70, 53 %."),
)  # fmt: skip
RECIPE = (
    Field("micro_batch", msg("Micro batch"), "count", "sequences", minimum=1, maximum=65_536),
    Field("sharding", msg("Sharding"), "choice", choices=SHARDING),
    Field("offload", msg("Offload"), "choice", choices=OFFLOAD),
    Field("pure_16bit", msg("Pure 16-bit training"), "flag",
          help=msg("Weights, gradients and optimiser states all in BF16.")),
    Field("gradient_bytes", msg("Bytes of one gradient"), "number", "B", minimum=1, maximum=4),
    Field("chunked_loss", msg("Fused or chunked loss"), "flag"),
    Field("flash_attention", msg("Flash attention"), "flag"),
    Field("sequence_parallel", msg("Sequence parallel"), "flag"),
    Field("fused_kernels", msg("Compiled or fused kernels"), "flag"),
    Field("packing", msg("Tokens that are not padding"), "share", minimum=0.01, maximum=1.0),
    Field("mfu", msg("MFU to assume"), "share", minimum=0.01, maximum=0.65,
          help=msg("Instead of the computed one. Large published runs reach 35 to 55 %.")),
    Field("data_bandwidth", msg("Storage bandwidth"), "number", "B/s", minimum=1e3, maximum=1e15),
    Field("bytes_per_sample", msg("Bytes read per sample"), "number", "B", minimum=1, maximum=1e13),
    Field("storage_bandwidth", msg("Checkpoint bandwidth"), "number", "B/s", minimum=1e3, maximum=1e15),
    COMMODITY,
)  # fmt: skip
ADAPTERS = (
    OPTIMIZER,
    RECOMPUTATION,
    Field("lora_targets", msg("Adapted layers"), "choice", choices=LORA_TARGETS),
    Field("double_quantization", msg("Double quantisation"), "flag"),
)
HEADROOM = Field(
    "headroom", msg("Headroom over the peak"), "share", minimum=0, maximum=10,
    help=msg("Empty: 20 %, the floor of the rule."),
)  # fmt: skip
SERVING = (
    Field("kv_precision", msg("Precision of the KV cache"), "choice", choices=KV_PRECISIONS,
          help=msg("Moves throughput by up to 55 %. Empty: what the engine would do.")),
    Field("engine", msg("Engine"), "choice", choices=ENGINES),
    Field("concurrency", msg("Requests in flight per replica"), "count", minimum=1, maximum=1_000_000,
          help=msg("Empty: as many as memory and the latency target allow.")),
    Field("output_tokens_p99", msg("Long output, 99th percentile"), "count", "tokens", minimum=1, maximum=10_000_000,
          help=msg("Empty: twice the mean.")),
    HEADROOM,
)  # fmt: skip
SAMPLE_SERVING = (
    Field("largest_batch", msg("Samples in one batch, at most"), "count", "samples", minimum=1, maximum=65_536,
          help=msg("Empty: 64, or what memory and the latency target allow.")),
    HEADROOM,
)  # fmt: skip

CONSTRAINTS = (
    Field("need_by", msg("Needed by"), "date"),
    Field("start", msg("Start"), "date"),
    Field("duration_days", msg("Duration"), "count", "d", minimum=1, maximum=36_525),
    Field("data_residence", msg("Where the data may be"), "choice", default="anywhere", choices=RESIDENCES),
    Field("region", msg("Region"), "text"),
    Field("budget", msg("Budget"), "amount"),
    Field("currency", msg("Currency"), "choice", choices=tuple((c, msg(c)) for c in CURRENCIES)),
    Field("vendors", msg("Allowed makers"), "texts"),
    Field("stage", msg("Who asks"), "choice", choices=STAGES),
)  # fmt: skip
SAMPLE_LATENCY = (  # of an answer that comes as a whole
    Field("latency_class", msg("Latency class"), "choice", choices=LATENCY_CLASSES),
    Field("latency_seconds", msg("Latency target"), "number", "s", minimum=0.001, maximum=86_400),
    Field("latency_percentile", msg("Percentile"), "choice", default="p95", choices=PERCENTILES),
)  # fmt: skip
LATENCY = (
    *SAMPLE_LATENCY,
    Field("latency_metric", msg("The target is for"), "choice", default="ttft", choices=LATENCY_METRICS),
    Field("tpot_seconds", msg("Time per output token, at most"), "number", "s", minimum=1e-5, maximum=60),
)  # fmt: skip
ACCURACY = (
    Field("accuracy_loss_limit", msg("Accuracy-loss limit"), "share", minimum=0, maximum=1),
)  # fmt: skip
INTERRUPTIBLE = (
    Field("interruptible", msg("May be interrupted"), "flag", default=False),
    Field("checkpoint_seconds", msg("Checkpoint interval"), "number", "s", minimum=1, maximum=2_592_000),
)  # fmt: skip


def option_fields(kind: str) -> tuple[Field, ...]:
    """What may be told of hardware, layout, recipe and serving for a workload of `kind`."""
    if kind in TRAINING:
        adapters = ADAPTERS if kind == Kind.LORA else ()
        framework = (
            (FRAMEWORK,) if kind == Kind.SAMPLES else ()
        )  # the others tell it with the workload
        return (*HARDWARE, *TRAINING_LAYOUT, *framework, *RECIPE, *adapters)
    if kind in TOKEN_INFERENCE:
        return (*HARDWARE, *SERVING_LAYOUT, *SERVING)
    if kind in SAMPLE_INFERENCE:
        return (ACCELERATOR, COUNT, *SAMPLE_SERVING)
    return (ACCELERATOR,)  # GPU hours: the count belongs to the workload


def constraint_fields(kind: str) -> tuple[Field, ...]:
    """What the answer must respect for a workload of `kind`."""
    latency = SAMPLE_LATENCY if kind in SAMPLE_INFERENCE else LATENCY
    return (
        *CONSTRAINTS,
        *(latency if kind in ASKS_LATENCY else ()),
        *(ACCURACY if kind in ASKS_ACCURACY else ()),
        *(INTERRUPTIBLE if kind in ASKS_INTERRUPTIBLE else ()),
    )


def request_fields(kind: str) -> dict[str, Field]:
    """Every field of a request of `kind` by name."""
    declared = (*option_fields(kind), *constraint_fields(kind))
    fields = {field.name: field for field in FIELDS[kind]}
    return fields | {field.name: field for field in declared}


def all_field_names() -> frozenset[str]:
    """Names that any kind of request knows."""
    return frozenset(name for kind in Kind for name in request_fields(kind))
