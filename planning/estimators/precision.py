"""What a data type costs in bytes and which compute rate it can use.

Weight-only formats (INT4, and FP8 or FP4 on hardware without that unit) are read small and multiplied in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.types import Accelerator


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Bytes of one weight, scales included, and where the format stops.

    In formats of 8 bits and fewer the embedding tables stay in 16 bits; in 4-bit sparse models so does attention.
    """

    dtype: str
    bytes: float  # [B/parameter]
    compute: tuple[str, ...]  # rates to try, best first
    quantized: bool = False
    published_only: bool = False  # models come in it; others are not turned into it
    experts_only: bool = False  # in a sparse model only the experts are stored small
    accuracy_loss: tuple[float, float] = (0.0, 0.0)  # MMLU points lost, low and high [%]


# Scale overheads: FP8 one FP32 scale per 128 x 128 block; INT4 (AWQ, GPTQ) one FP16 scale and a 4-bit zero per 128
# weights; NVFP4 ("fp4") one FP8 scale per 16 weights and an FP32 one per tensor; MXFP4 one 8-bit exponent (E8M0) per
# 32 weights (OCP Microscaling Formats 1.0). Accuracy: published MMLU changes of FP8, INT8 SmoothQuant, INT4-AWQ.
WEIGHT_FORMATS: dict[str, WeightFormat] = {
    "fp32": WeightFormat("fp32", 4.0, ("tf32", "fp32")),
    "fp16": WeightFormat("fp16", 2.0, ("fp16", "bf16", "fp32")),
    "bf16": WeightFormat("bf16", 2.0, ("bf16", "fp16", "fp32")),
    "fp8": WeightFormat(
        "fp8", 1.0 + 4 / 128**2, ("fp8", "fp16", "bf16", "fp32"), True, accuracy_loss=(0.1, 0.9)
    ),
    "int8": WeightFormat(
        "int8", 1.0 + 2 / 4096, ("int8", "fp16", "bf16", "fp32"), True, accuracy_loss=(1.5, 2.75)
    ),
    "int4": WeightFormat(
        "int4",
        0.5 + 2.5 / 128,
        ("fp16", "bf16", "fp32"),
        True,
        experts_only=True,
        accuracy_loss=(0.85, 2.1),
    ),
    "fp4": WeightFormat(
        "fp4",
        0.5 + 1 / 16,
        ("fp4", "fp16", "bf16", "fp32"),
        True,
        experts_only=True,
        accuracy_loss=(0.5, 2.0),
    ),
    "mxfp4": WeightFormat(
        "mxfp4",
        0.5 + 1 / 32,
        ("fp4", "fp16", "bf16", "fp32"),
        True,
        published_only=True,
        experts_only=True,
        accuracy_loss=(0.5, 2.0),
    ),
}
KV_BYTES: dict[str, float] = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625}
WEIGHT_DTYPES = tuple(WEIGHT_FORMATS)
KV_DTYPES = tuple(KV_BYTES)

# Engine families differ in how they schedule, not in the arithmetic.
ENGINES = ("tensorrt-llm", "tensorrt-llm-torch", "vllm", "sglang", "other")


_SPELLINGS = (
    ("nvfp4", "fp4"), ("mxfp4", "mxfp4"), ("w4a4", "fp4"), ("fp4", "fp4"), ("w4a16", "int4"), ("awq", "int4"),
    ("gptq", "int4"), ("nf4", "int4"), ("q4", "int4"), ("int4", "int4"), ("4bit", "int4"), ("w8a8int8", "int8"),
    ("smoothquant", "int8"), ("int8", "int8"), ("q8", "int8"), ("mxfp8", "fp8"), ("e4m3", "fp8"), ("e5m2", "fp8"),
    ("w8a8", "fp8"), ("fp8", "fp8"), ("bfloat16", "bf16"), ("bf16", "bf16"), ("float16", "fp16"), ("half", "fp16"),
    ("fp16", "fp16"), ("tf32", "fp32"), ("float32", "fp32"), ("fp32", "fp32"),
)  # fmt: skip


def usual_dtype(name: str) -> str | None:
    """Our name of a data type as engines and benchmarks write it ("NVFP4", "fp8_e4m3", "int4-awq"); None: unknown."""
    plain = "".join(ch for ch in name.lower() if ch.isalnum())
    return next((ours for written, ours in _SPELLINGS if written in plain), None)


def weight_format(dtype: str) -> WeightFormat:
    """The format of `dtype`, or :class:`InputError` naming those that exist."""
    if dtype not in WEIGHT_FORMATS:
        raise _unknown("weights_dtype", dtype, WEIGHT_DTYPES)
    return WEIGHT_FORMATS[dtype]


def kv_bytes(dtype: str) -> float:
    """Bytes of one cache element. [B]"""
    if dtype not in KV_BYTES:
        raise _unknown("kv_dtype", dtype, KV_DTYPES)
    return KV_BYTES[dtype]


def check_engine(engine: str) -> str:
    """The same name when it is a known engine family, else :class:`InputError`."""
    if engine not in ENGINES:
        raise _unknown("engine", engine, ENGINES)
    return engine


def _unknown(field: str, value: str, known: tuple[str, ...]) -> InputError:
    text = msg(
        "%(field)s is %(value)s; it must be one of %(known)s",
        field=field,
        value=value,
        known=", ".join(known),
    )
    return InputError(field, text, value=value, limit=known)


def default_kv_dtype(weights_dtype: str, engine: str) -> str:
    """The cache type an engine takes when not told.

    Checkpoints quantised to FP8 or FP4 for TensorRT-LLM carry an FP8 cache, and so do FP4 checkpoints elsewhere;
    vLLM and SGLang otherwise keep the model's 16 bits, and all do with MXFP4 checkpoints, which state no cache.
    """
    if weights_dtype == "fp4" or (weights_dtype == "fp8" and engine.startswith("tensorrt")):
        return "fp8"
    return "fp16"


def compute_rate(accelerator: Accelerator, weights_dtype: str) -> tuple[str, float]:
    """(data type of the matrix products, dense FLOP/s) that `accelerator` offers to weights of this type.

    Raises
    ------
    InputError
        If no rate is known for the card in any usable type.
    """
    for dtype in weight_format(weights_dtype).compute:
        rate = accelerator.peak_flops.get(dtype)
        if rate:
            return dtype, rate
    text = msg("No dense compute rate is known for %(name)s", name=accelerator.name)
    raise InputError("accelerator", text, value=accelerator.slug)


def sparse_rate_warnings(accelerator: Accelerator, weights_dtype: str) -> list[Message]:
    """The trap of data sheets that print the rate with structured sparsity: both rates, and which one is used."""
    if accelerator.sparsity_factor <= 1.0:
        return []
    dtype, used = compute_rate(accelerator, weights_dtype)
    rate = used / accelerator.measured_share  # a data sheet knows nothing of what was measured here
    return [
        msg(
            "Data sheets may print %(sparse)s TFLOPS for %(dtype)s with structured sparsity; "
            "%(dense)s is the dense rate, and the one used.",
            sparse=round(rate * accelerator.sparsity_factor / 1e12),
            dtype=dtype,
            dense=round(rate / 1e12),
        )
    ]
