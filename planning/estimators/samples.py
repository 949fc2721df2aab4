"""Encoders, vision, speech and diffusion: throughput and latency from FLOP per sample.

One sample is an image, a sentence pair, 30 seconds of sound, or a whole generated picture with all its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import InputError, require_at_least
from core.messages import msg
from planning.estimators.architecture import attention_flops_per_token, count_parameters
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_tables import GENERATIONS, generation_index
from planning.estimators.precision import compute_rate, weight_format
from planning.estimators.types import Accelerator, Architecture

# How busy a network keeps the matrix units, by what it mostly computes. Fitted on MLPerf inference (closed division).
NETWORKS = ("transformer", "convolution", "detection", "diffusion")


@dataclass(frozen=True, slots=True)
class SampleWorkload:
    """Work on one sample.

    Parameters
    ----------
    flops : float
        Forward FLOP of one sample, every diffusion step included. [FLOP]
    params : float
        Weights read once per batch. [parameters]
    dtype : str
        Weights' data type.
    network : str
        One of NETWORKS.
    batch : float
        Samples in one pass. [1]
    """

    flops: float
    params: float
    dtype: str = "fp16"
    network: str = "transformer"
    batch: float = 64.0


def encoder_flops(architecture: Architecture, tokens: float) -> float:
    """Forward FLOP of an encoder over `tokens` tokens, where each sees all. [FLOP]"""
    require_at_least("tokens", tokens, 1.0)
    count = count_parameters(architecture)
    per_token = 2 * (count.active - count.embedding - count.head)  # tables are looked up
    return tokens * (per_token + attention_flops_per_token(architecture, tokens))


def sample_time(workload: SampleWorkload, accelerator: Accelerator, constants: Constants) -> float:
    """Time of one pass over a batch on one accelerator. [s]

    max(FLOP / (rate x efficiency), weight bytes / bandwidth) + launch overhead.

    Raises
    ------
    InputError
        If FLOP, parameters or batch are not positive, or the network or data type is unknown.
    """
    require_at_least("flops", workload.flops, 1.0)
    require_at_least("params", workload.params, 1.0)
    require_at_least("batch", workload.batch, 1.0)
    if workload.network not in NETWORKS:
        text = msg(
            "network is %(value)s; it must be one of %(known)s",
            value=workload.network,
            known=", ".join(NETWORKS),
        )
        raise InputError("network", text, value=workload.network, limit=NETWORKS)
    _, rate = compute_rate(accelerator, workload.dtype)
    generation = GENERATIONS[generation_index(accelerator)]
    efficiency = constants[f"sample.{workload.network}"]
    efficiency *= constants.values.get(f"sample.generation.{generation}", 1.0)
    compute = workload.flops * workload.batch / (rate * efficiency)
    size = workload.params * weight_format(workload.dtype).bytes
    memory = size / (accelerator.hbm_bandwidth * constants["bandwidth"])
    return max(compute, memory) + constants["sample.overhead"]


def samples_per_second(
    workload: SampleWorkload, accelerator: Accelerator, constants: Constants
) -> float:
    """Samples per second of one accelerator, batches back to back. [1/s]"""
    return workload.batch / sample_time(workload, accelerator, constants)
