"""Published measurements of encoders, vision and diffusion, read into sample workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import DomainError
from planning.estimators.inference_truth import (
    SERVER_SHARE,
    UnreadableRow,
    number,
    part_of,
    weights_of,
    whole,
)
from planning.estimators.samples import SampleWorkload
from planning.estimators.types import Accelerator

# Forward FLOP of one sample of the MLPerf networks. ResNet-50: 4.1 GMAC at 224 x 224 (He 2016). RetinaNet with
# ResNeXt-50 at 800 x 800: about 300 GFLOP (torchvision: 151 GMAC). SDXL: 20 steps with and without guidance of a
# 2.6 B UNet at 1024 x 1024, about 6 TFLOP a pass (Podell 2023), and the decoder.
_SAMPLE_FLOPS = {"resnet50": 8.2e9, "retinanet": 3.0e11, "stablediffusionxl": 2.5e14}
_NETWORK = {
    "resnet50": "convolution",
    "retinanet": "detection",
    "stablediffusionxl": "diffusion",
}


# Mean tokens where a row tells only the longest: SQuAD v1.1 in MLPerf's BERT, whose submissions leave padding out.
_MEAN_TOKENS = {"bertlarge": 178.0}
_STEPS = {"stablediffusionxl": 40.0}  # 20 steps, each with and without guidance


@dataclass(frozen=True, slots=True)
class SampleCase:
    workload: SampleWorkload
    accelerator: Accelerator
    accelerators: float  # with the share that a latency bound leaves


def read_sample_case(
    row: Mapping[str, Any], resolve_accelerator: Callable[[str], Accelerator]
) -> SampleCase:
    """The row as a sample workload. Raises :class:`UnreadableRow` with the reason."""
    hardware, arch = part_of(row, "hardware"), part_of(row, "arch")
    workload, precision = part_of(row, "workload"), part_of(row, "precision")
    try:
        accelerator = resolve_accelerator(str(hardware.get("gpu") or ""))
    except DomainError as error:
        raise UnreadableRow("unknown accelerator") from error
    name = "".join(ch for ch in str(row.get("model")).lower() if ch.isalnum())
    flops = number(arch.get("flops_per_sample")) or _SAMPLE_FLOPS.get(name)
    tokens = number(workload.get("input_len")) or 384.0
    flops = flops or _encoder_flops(arch, min(_MEAN_TOKENS.get(name, tokens), tokens))
    if flops is None:
        raise UnreadableRow("no FLOP per sample")
    dtype = weights_of(precision)
    share = SERVER_SHARE if str(workload.get("scenario")).lower() == "server" else 1.0
    return SampleCase(
        workload=SampleWorkload(
            flops=flops,
            params=number(arch.get("params_total")) or 1e8,
            dtype=dtype,
            network=_NETWORK.get(name, "transformer"),
            passes=_STEPS.get(name, 1.0),
        ),
        accelerator=accelerator,
        accelerators=whole(hardware.get("count"), 1) * share,
    )


def _encoder_flops(arch: Mapping[str, Any], tokens: float) -> float | None:
    layers, hidden = number(arch.get("layers")), number(arch.get("hidden"))
    if layers is None or hidden is None:
        size = number(arch.get("params_total"))
        return None if size is None else 2.0 * size * tokens
    ffn = number(arch.get("ffn")) or 4 * hidden
    matrices = layers * (4 * hidden**2 + 2 * hidden * ffn)
    return tokens * (2 * matrices + 4 * layers * hidden * tokens)
