"""Many serving candidates at once: model x accelerator x layout x precision x load, as arrays of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planning.estimators.inference_tables import AcceleratorTable, Floats, Ints, ShapeTable
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.estimators.precision import (
    ENGINES,
    KV_BYTES,
    KV_DTYPES,
    WEIGHT_DTYPES,
    WEIGHT_FORMATS,
)
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

    def take(self, index: Ints) -> Candidates:
        """Rows by position."""
        columns: dict[str, Any] = {
            name: getattr(self, name)[index]
            for name in self.__dataclass_fields__
            if name not in ("shape", "card")
        }
        return Candidates(shape=self.shape.take(index), card=self.card.take(index), **columns)

    def row(self, i: int) -> Candidates:
        """One row as a batch of one."""
        return self.take(np.array([i]))

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


def one_candidate(
    workload: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    layout: InferenceLayout,
) -> Candidates:
    """The workload on this layout as a batch of one."""
    return candidates(
        [architecture],
        [accelerator],
        model=np.zeros(1, dtype=np.int64),
        accelerator=np.zeros(1, dtype=np.int64),
        weights=np.array([weights_index(workload.weights_dtype)]),
        kv=np.array([kv_index(workload.cache_dtype)]),
        engine=np.array([engine_index(workload.engine)]),
        tensor_parallel=np.array([float(layout.tensor_parallel)]),
        pipeline_parallel=float(layout.pipeline_parallel),
        attention_data_parallel=float(layout.attention_data_parallel),
        expert_parallel=float(layout.expert_parallel),
        input_tokens=np.array([workload.input_tokens]),
        output_tokens=np.array([workload.output_tokens]),
        concurrency=np.inf if workload.concurrency is None else float(workload.concurrency),
    )


def layout_columns(layouts: Sequence[InferenceLayout]) -> dict[str, Floats]:
    """The layouts as columns of shape (layouts,)."""
    names = ("tensor_parallel", "pipeline_parallel", "attention_data_parallel", "expert_parallel")
    return {name: np.array([float(getattr(x, name)) for x in layouts]) for name in names}


def stacked(one: Candidates, concurrency: Floats, **columns: Floats) -> Candidates:
    """A batch of one repeated with other concurrencies, shape (n,), and other columns of that length."""
    index = np.zeros(concurrency.shape[0], dtype=np.int64)
    changed: dict[str, Any] = {"concurrency": concurrency, **columns}
    return replace(one.take(index), **changed)
