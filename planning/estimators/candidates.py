"""Many serving candidates at once: model x accelerator x layout x precision x load, as arrays of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planning.estimators.precision import (
    ENGINES,
    KV_BYTES,
    KV_DTYPES,
    WEIGHT_DTYPES,
    WEIGHT_FORMATS,
)
from planning.estimators.tables import AcceleratorTable, Floats, Ints, ShapeTable
from planning.estimators.types import Accelerator, Architecture

_WEIGHT_BYTES = np.array([f.bytes for f in WEIGHT_FORMATS.values()])
_QUANTIZED = np.array([f.quantized for f in WEIGHT_FORMATS.values()])
_EXPERTS_ONLY = np.array([f.experts_only for f in WEIGHT_FORMATS.values()])
_KV_BYTES = np.array(list(KV_BYTES.values()))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of shape (n,). Build with :func:`candidates`; `shape` and `card` are gathered rows.

    A replica holds tensor_parallel x pipeline_parallel x attention_data_parallel accelerators. Experts are split over
    all of a pipeline stage's accelerators; `expert_parallel` says over how many as whole experts.
    """

    shape: ShapeTable
    card: AcceleratorTable
    weights: Ints  # index into WEIGHT_DTYPES
    kv: Ints  # index into KV_DTYPES
    engine: Ints  # index into ENGINES
    tensor_parallel: Floats
    pipeline_parallel: Floats
    attention_data_parallel: Floats
    expert_parallel: Floats
    input_tokens: Floats
    output_tokens: Floats
    concurrency: Floats  # requests in flight per replica; inf: as many as fit
    requests: Floats  # length of an offline run; inf: steady state

    @property
    def accelerators(self) -> Floats:
        """Accelerators of one replica. [1]"""
        return self.tensor_parallel * self.pipeline_parallel * self.attention_data_parallel

    @property
    def kv_element_bytes(self) -> Floats:
        return _KV_BYTES[self.kv]

    @property
    def weight_bytes_per_parameter(self) -> Floats:
        return _WEIGHT_BYTES[self.weights]

    @property
    def mixer_bytes_per_parameter(self) -> Floats:
        """Attention and dense parts: 16-bit where only the experts of a sparse model are stored in 4 bits."""
        sparse = self.shape.routed > 0
        return np.where(sparse & _EXPERTS_ONLY[self.weights], 2.0, _WEIGHT_BYTES[self.weights])

    @property
    def table_bytes_per_parameter(self) -> Floats:
        """Embedding tables stay in 16 bits in quantised formats."""
        return np.where(_QUANTIZED[self.weights], 2.0, _WEIGHT_BYTES[self.weights])


def candidates(
    architectures: Sequence[Architecture],
    accelerators: Sequence[Accelerator],
    *,
    model: Ints,
    accelerator: Ints,
    weights: Ints,
    kv: Ints,
    engine: Ints,
    tensor_parallel: Floats,
    input_tokens: Floats,
    output_tokens: Floats,
    pipeline_parallel: Floats | float = 1.0,
    attention_data_parallel: Floats | float = 1.0,
    expert_parallel: Floats | float = 1.0,
    concurrency: Floats | float = np.inf,
    requests: Floats | float = np.inf,
) -> Candidates:
    """Candidates from tables and index columns of shape (n,); scalars are repeated."""
    model = np.asarray(model, dtype=np.int64)
    n = model.shape[0]

    def column(value: Floats | float) -> Floats:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), (n,))

    return Candidates(
        shape=ShapeTable.of(architectures).take(model),
        card=AcceleratorTable.of(accelerators).take(np.asarray(accelerator, dtype=np.int64)),
        weights=np.asarray(weights, dtype=np.int64),
        kv=np.asarray(kv, dtype=np.int64),
        engine=np.asarray(engine, dtype=np.int64),
        tensor_parallel=column(tensor_parallel),
        pipeline_parallel=column(pipeline_parallel),
        attention_data_parallel=column(attention_data_parallel),
        expert_parallel=column(expert_parallel),
        input_tokens=column(input_tokens),
        output_tokens=column(output_tokens),
        concurrency=column(concurrency),
        requests=column(requests),
    )


def weights_index(dtype: str) -> int:
    return WEIGHT_DTYPES.index(dtype)


def kv_index(dtype: str) -> int:
    return KV_DTYPES.index(dtype)


def engine_index(engine: str) -> int:
    return ENGINES.index(engine)
