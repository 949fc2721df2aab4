"""What the estimators take and give: frozen dataclasses in SI units (bytes, seconds, FLOP/s, watts), no framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import DomainError
from core.messages import Message


class InfeasibleError(DomainError, ValueError):
    """The workload does not fit. Says what is missing, by how much, and what would make it fit."""

    status = 422
    code = "infeasible"

    def __init__(
        self, message: Message, *, shortfall_bytes: float = 0.0, remedies: tuple[Message, ...] = ()
    ) -> None:
        super().__init__(message)
        self.shortfall_bytes = shortfall_bytes
        self.remedies = remedies


class Grade(StrEnum):
    """How near the evidence behind a figure is."""

    MEASURED = "measured"  # calibrated on this organisation's own runs
    PUBLISHED = "published"  # near published measurements of the same class and hardware
    EXTRAPOLATED = "extrapolated"  # outside what was measured


# Shown by the driver ÷ the label in GiB, read in logs of nvidia-smi: H100 80 GB 81,559 MiB, H200 143,771, B200 183,359,
# RTX 4090 24,564; with in-line error correction L40S, L20 and A40 46,068 MiB.
VISIBLE_SHARE = {"hbm": 0.995, "gddr": 0.9995, "gddr-ecc": 0.937}


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator as software sees it (one CUDA device; a dual-die module counts once). Dense rates only."""

    slug: str
    name: str
    generation: str  # architecture, lower case: "ampere", "hopper", "blackwell", "cdna3", ...
    hbm_bytes: float  # as the label prints it, 1 GB = 1e9 B [B]
    hbm_bandwidth: float  # [B/s]
    peak_flops: Mapping[str, float]  # dense FLOP/s by dtype: fp32 tf32 fp16 bf16 fp8 int8 int4 fp4
    tdp: float | None = None  # [W]
    link_bandwidth: float | None = (
        None  # [B/s] both directions summed, as vendors print it; None: PCIe only
    )
    link_kind: str = ""  # "nvlink", "infinity-fabric", "hccs", ""
    pcie_bandwidth: float = 32e9  # [B/s] one direction
    form_factor: str = ""
    vendor: str = ""
    year: int | None = None
    sparsity_factor: float = 1.0  # marketing rate ÷ dense rate
    memory_kind: str = "hbm"  # a key of VISIBLE_SHARE
    measured_share: float = (
        1.0  # calibration: by how much the rates above are multiplied from the published ones
    )

    @property
    def published_flops(self) -> Mapping[str, float]:
        """Dense FLOP/s by dtype as data sheets print them, without what calibration multiplied them by."""
        return {name: rate / self.measured_share for name, rate in self.peak_flops.items()}

    @property
    def visible_bytes(self) -> float:
        """What the driver shows and a program may allocate. [B]

        A label's GB is a GiB, of which the driver keeps a little and in-line error correction of GDDR a sixteenth:
        an "80 GB" H100 shows 81,559 MiB, which are 85.5 GB of 1e9 B; a "48 GB" L40S shows 46,068 MiB.
        """
        return self.hbm_bytes / 1e9 * 2.0**30 * VISIBLE_SHARE[self.memory_kind]


@dataclass(frozen=True, slots=True)
class MixtureOfExperts:
    """Experts of one sparse layer."""

    experts: int
    top_k: int
    expert_ffn: int  # hidden width of one expert's MLP
    shared_experts: int = 0
    shared_ffn: int = 0  # width of all shared experts together; 0: shared_experts x expert_ffn
    dense_layers: int = 0  # leading layers with a dense MLP of width Architecture.ffn
    every: int = 1  # one sparse layer in `every`
    latent: int = (
        0  # width that routed experts work in when it is not the hidden size; 0: the hidden size
    )


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads of one kind of attention layer."""

    heads: int
    kv_heads: int
    head_dim: int  # of queries and keys
    value_dim: int = 0  # of values; 0: head_dim
    values_are_keys: bool = False  # one projection gives both; both are kept in the cache


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA): the cache holds one latent and the rotary part per token and layer."""

    kv_latent: int
    rope_dim: int
    q_latent: int = 0
    nope_dim: int = 128
    v_dim: int = 128
    index_topk: int = (
        0  # sparse attention (DSA): tokens that an indexer picks; 0: all are attended to
    )
    index_heads: int = 0
    index_dim: int = 0  # of the indexer's keys, kept in FP8 beside the latent


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A layer whose state does not grow with the context: Mamba, gated delta rule, lightning attention."""

    kind: str  # "mamba", "mamba2", "gated-delta", "linear", "convolution"
    params: float  # weights of one layer's mixer
    state_elements: (
        float  # elements kept per sequence and layer (recurrent state and convolution tail)
    )


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a transformer. Counts are computed from it (see ``architecture.py``)."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    tied_embeddings: bool = False
    moe: MixtureOfExperts | None = None
    mla: LatentAttention | None = None
    sliding_window: int | None = None  # tokens
    sliding_layers: int = 0  # how many layers use the window
    linear_layers: int = (
        0  # layers with constant-size state (Mamba, linear attention) instead of a cache
    )
    state_space: StateSpace | None = None  # what the linear layers are
    attention_layers: int | None = None  # None: layers - linear_layers
    mlp_layers: int | None = None  # None: every layer has a feed-forward part
    cross_attention_layers: int = 0  # decoder layers that also attend to an encoder
    position_embeddings: int = 0  # learned positions
    attention_gate: bool = False  # a second query-wide projection gates the attention's output
    value_dim: int | None = None  # of values where it is not head_dim
    values_are_keys: bool = False  # one projection gives both in the layers that see everything
    windowed: AttentionShape | None = (
        None  # heads of the windowed layers where they are not those above
    )
    kv_shared_layers: int = 0  # attention layers that read another layer's cache and keep none
    kv_shared_windowed: int = 0  # how many of them are windowed
    embedding_dim: int | None = (
        None  # of the tables where it is not the hidden size, with a projection to it
    )
    per_layer_embedding: int = 0  # width of a further table in every layer, looked up and projected
    causal: bool = True  # False: encoder, every token sees all
    max_context: int | None = None
    params_total: float | None = None  # published; None: computed from the shape
    params_active: float | None = None
    assumed: tuple[Message, ...] = ()  # what was assumed because it was not given


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a trace: how a figure came about."""

    name: str
    formula: str  # symbols as in docs/estimators.md
    inputs: Mapping[str, float | str]
    result: float
    unit: str


@dataclass(frozen=True, slots=True)
class Band:
    """A figure with its spread: P10, P50, P90 of the residuals of its class."""

    p10: float
    p50: float
    p90: float
    unit: str
    grade: Grade = Grade.EXTRAPOLATED


@dataclass(frozen=True, slots=True)
class Saturation:
    """Share of each resource in use at the planned load, 0 to 1."""

    compute: float
    memory: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Part:
    """One slice of the memory bar."""

    name: str  # weights, gradients, optimizer, activations, logits, kv_cache, communication, overhead, ...
    value: float  # [B] per accelerator
    note: Message | None = None


@dataclass(frozen=True, slots=True)
class Latencies:
    """Waiting and answers of a whole fleet at one load, by percentile; inf where the queue grows without end. [s]"""

    load: float  # share of the slots in use [1]
    wait: Mapping[str, float]  # "p50", "p95", "p99"
    ttft: Mapping[str, float]  # empty where an answer comes as a whole
    end_to_end: Mapping[str, float]
    tpot: float | None = (
        None  # mean; None: an answer of one token, or one that comes as a whole [s]
    )
    in_flight: float | None = None  # requests in one replica, mean [1]


@dataclass(frozen=True, slots=True)
class FleetAnswers:
    """How a fleet answers at the planned load, which is the peak, and at load x (1 + model error).

    Of language models also at the mean load over the day, and with every slot in use.
    """

    planned: Latencies
    with_model_error: Latencies
    model_error: float  # share
    average: Latencies | None = None
    full: Latencies | None = None  # without waiting, which has no end there
    compute: float | None = None  # share of peak FLOP/s in use at the planned load [1]
    bandwidth: float | None = None  # the same of bandwidth [1]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What every estimator returns; `figures` are named after the glossary (ttft, tpot, step_time, ...)."""

    kind: str
    accelerator: str
    accelerators: int  # total
    memory: tuple[Part, ...]
    memory_bytes: Band  # per accelerator
    capacity_bytes: float  # per accelerator
    fits: str  # "fits", "tight", "out_of_memory"
    figures: Mapping[str, Band]
    saturation: Saturation
    layout: Mapping[str, int | str] = field(default_factory=dict)
    warnings: tuple[Message, ...] = ()
    assumptions: tuple[Message, ...] = ()
    remedies: tuple[Message, ...] = ()
    trace: tuple[Step, ...] = ()
    constants_version: str = ""
    fleet: FleetAnswers | None = None  # of a service with a request rate
