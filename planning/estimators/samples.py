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
# FLOP of one sample for each byte of its activations at their peak: a rule to start from, right within a factor of 3.
# ResNet-50: about 8 MB at 8.2 GFLOP; BERT-large over 384 tokens: about 25 MB at 250 GFLOP; SDXL: about 1.5 GB at the
# 6 TFLOP of a step.
FLOP_PER_BYTE = {"transformer": 1e4, "convolution": 1e3, "detection": 1e3, "diffusion": 4e3}


@dataclass(frozen=True, slots=True)
class SampleWorkload:
    """Work on one sample.

    Parameters
    ----------
    flops : float
        Forward FLOP of one sample, every diffusion step included. [FLOP]
    params : float
        Weights read once per pass. [parameters]
    dtype : str
        Weights' data type.
    network : str
        One of NETWORKS.
    batch : float
        Samples that run together. [1]
    passes : float
        Passes through the weights that follow each other for one sample: diffusion steps, tokens of a transcript. [1]
    equal_passes : bool
        Whether each pass does the same work; False: the first does nearly all, as an encoder before its decoder.
    activation_bytes : float or None
        Activations and caches of one sample at their peak; None: a rule by FLOP. [B]
    """

    flops: float
    params: float
    dtype: str = "fp16"
    network: str = "transformer"
    batch: float = 64.0
    passes: float = 1.0
    equal_passes: bool = True
    activation_bytes: float | None = None

    @property
    def activations(self) -> float:
        """Activations of one sample, as told or by the rule. [B]"""
        if self.activation_bytes is not None:
            return self.activation_bytes
        largest = self.flops / self.passes if self.equal_passes else self.flops
        return largest / FLOP_PER_BYTE[self.network]

    @property
    def weights(self) -> float:
        """The weights as stored. [B]"""
        return self.params * weight_format(self.dtype).bytes


@dataclass(frozen=True, slots=True)
class SampleTime:
    """Where the time of one batch goes. Computing and reading overlap where each pass does both. [s]"""

    compute: float
    reading: float
    launches: float
    rate: float  # effective [FLOP/s]
    overlap: bool = True

    @property
    def total(self) -> float:
        both = (self.compute, self.reading)
        return (max(both) if self.overlap else sum(both)) + self.launches


def encoder_flops(architecture: Architecture, tokens: float) -> float:
    """Forward FLOP of an encoder over `tokens` tokens, where each sees all. [FLOP]"""
    require_at_least("tokens", tokens, 1.0)
    count = count_parameters(architecture)
    per_token = 2 * (count.active - count.embedding - count.head)  # tables are looked up
    return tokens * (per_token + attention_flops_per_token(architecture, tokens))


def sample_time(
    workload: SampleWorkload, accelerator: Accelerator, constants: Constants
) -> SampleTime:
    """Time of one batch on one accelerator. [s]

    max(FLOP / (rate x efficiency), passes x (weights + activations of the batch) / bandwidth) + passes x launch; where
    an encoder computes first and a decoder reads after it, the sum of both instead.

    Raises
    ------
    InputError
        If FLOP, parameters, batch or passes are not positive, or the network or data type is unknown.
    """
    require_at_least("flops", workload.flops, 1.0)
    require_at_least("params", workload.params, 1.0)
    require_at_least("batch", workload.batch, 1.0)
    require_at_least("passes", workload.passes, 1.0)
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
    read = workload.weights + workload.batch * workload.activations
    return SampleTime(
        compute=workload.flops * workload.batch / (rate * efficiency),
        reading=workload.passes * read / (accelerator.hbm_bandwidth * constants["bandwidth"]),
        launches=workload.passes * constants["sample.overhead"],
        rate=rate * efficiency,
        overlap=workload.equal_passes,
    )


def samples_per_second(
    workload: SampleWorkload, accelerator: Accelerator, constants: Constants
) -> float:
    """Samples per second of one accelerator, batches back to back. [1/s]"""
    return workload.batch / sample_time(workload, accelerator, constants).total
