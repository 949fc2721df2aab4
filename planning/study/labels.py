"""Words for the names that estimates use: parts of memory, figures, steps of the trace, layout."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from core.messages import Message, Parameter, msg
from planning.study import options
from planning.study.fields import Field

PARTS = {
    "weights": msg("Weights"),
    "gradients": msg("Gradients"),
    "optimizer": msg("Optimiser states"),
    "activations": msg("Activations"),
    "logits": msg("Logits"),
    "communication": msg("Communication buffers"),
    "overhead": msg("Framework and driver"),
    "fragmentation": msg("Fragmentation"),
    "kv_cache": msg("KV cache"),
    "needed": msg("Needed"),
}
FIGURES = {
    "step_time": msg("Time of one step"),
    "throughput": msg("Throughput"),
    "throughput_per_accelerator": msg("Throughput per accelerator"),
    "mfu": msg("MFU"),
    "training_flops": msg("Compute of the whole run"),
    "training_time": msg("Time to train"),
    "accelerator_hours": msg("Accelerator-hours"),
    "wall_time": msg("Wall time"),
    "energy": msg("Energy of the accelerators"),
    "ttft": msg("Time to first token"),
    "tpot": msg("Time per output token"),
    "end_to_end": msg("Whole answer"),
    "ttft_p50": msg("Time to first token, p50 of the fleet"),
    "ttft_p95": msg("Time to first token, p95 of the fleet"),
    "ttft_p99": msg("Time to first token, p99 of the fleet"),
    "end_to_end_p50": msg("Whole answer, p50 of the fleet"),
    "end_to_end_p95": msg("Whole answer, p95 of the fleet"),
    "end_to_end_p99": msg("Whole answer, p99 of the fleet"),
    "ttft_average": msg("Time to first token, average load"),
    "tpot_average": msg("Time per output token, average load"),
    "end_to_end_average": msg("Whole answer, average load"),
    "ttft_full": msg("Time to first token, full capacity"),
    "tpot_full": msg("Time per output token, full capacity"),
    "end_to_end_full": msg("Whole answer, full capacity"),
    "in_flight_average": msg("Requests in flight per replica, average load"),
    "in_flight": msg("Requests in flight per replica, peak load"),
    "load": msg("Load of the fleet at the peak"),
    "wait": msg("Wait"),
    "batch_time": msg("Time of one batch"),
    "batch": msg("Samples at a time"),
    "run_time": msg("Time of one run"),
    "requests_per_second": msg("Requests per second"),
    "concurrency": msg("Requests in flight per replica"),
    "max_concurrency": msg("Most requests in flight per replica"),
}
STEPS = {
    "local_parameters": msg("Parameters on one accelerator"),
    "memory": msg("Memory of one accelerator"),
    "micro_steps": msg("Micro-steps of a step"),
    "matrix": msg("Matrix products"),
    "attention": msg("Attention"),
    "elementwise": msg("Element-wise work"),
    "tensor_communication": msg("Tensor-parallel communication"),
    "expert_communication": msg("Expert communication"),
    "context_communication": msg("Context-parallel communication"),
    "bubble": msg("Pipeline bubble"),
    "data_communication": msg("Data-parallel communication"),
    "update": msg("Optimiser update"),
    "other": msg("Other"),
    "cluster_efficiency": msg("Efficiency of the cluster"),
    "cache elements per token": msg("Cache elements per token"),
    "cache of one sequence": msg("Cache of one sequence"),
    "usable memory": msg("Usable memory"),
    "reserve": msg("Activations and engine"),
    "sequences that fit": msg("Sequences that fit"),
    "effective bandwidth": msg("Effective bandwidth"),
    "effective rate": msg("Effective rate"),
    "dense part of a decode step": msg("Dense part of a decode step"),
    "experts that a step touches": msg("Experts that a step touches"),
    "reading the cache": msg("Reading the cache"),
    "step with prefill": msg("Step with prefill"),
    "TTFT": msg("Time to first token"),
    "TPOT": msg("Time per output token"),
    "parameters": msg("Parameters"),
    "active parameters": msg("Active parameters"),
    "sequences in flight": msg("Sequences in flight"),
    "of them decoding": msg("Of them decoding"),
    "experts": msg("Experts"),
    "decode step": msg("Decode step"),
    "share of steps with prefill": msg("Share of steps with prefill"),
    "throughput of a replica": msg("Throughput of a replica"),
    "requests of a replica": msg("Requests per second of a replica"),
    "service time": msg("Time of one request in its slot"),
    "computing a batch": msg("Computing a batch"),
    "reading weights and activations": msg("Reading weights and activations"),
    "load of the slots": msg("Load of the slots"),
    "replicas by division": msg("Replicas by plain division"),
    "slots": msg("Slots of the fleet"),
    "probability of waiting": msg("Probability of waiting"),
    "end to end": msg("Whole answer"),
    "peak rate": msg("Peak rate"),
    "replicas by headroom": msg("Replicas by headroom"),
    "replicas by latency": msg("Replicas by latency"),
    "in flight at average load": msg("Requests in flight per replica, average load"),
    "in flight at peak load": msg("Requests in flight per replica, peak load"),
    "TTFT at average load": msg("Time to first token, average load"),
    "TTFT at peak load": msg("Time to first token, peak load"),
    "TPOT at average load": msg("Time per output token, average load"),
    "TPOT at peak load": msg("Time per output token, peak load"),
    "mean step": msg("Mean step"),
    "wait at the percentile": msg("Wait at the percentile"),
}
LAYOUT = {
    "tensor": msg("Tensor parallel"),
    "pipeline": msg("Pipeline parallel"),
    "data": msg("Data parallel"),
    "context": msg("Context parallel"),
    "expert": msg("Expert parallel"),
    "virtual_stages": msg("Model chunks per pipeline stage"),
    "micro_batch": msg("Micro batch"),
    "global_batch": msg("Global batch"),
    "recompute": msg("Activation recomputation"),
    "sharding": msg("Sharding"),
    "replicas": msg("Replicas"),
    "accelerators_per_replica": msg("Accelerators per replica"),
    "tensor_parallel": msg("Tensor parallel"),
    "pipeline_parallel": msg("Pipeline parallel"),
    "attention_data_parallel": msg("Data-parallel attention ranks"),
    "expert_parallel": msg("Expert parallel"),
    "weights_dtype": msg("Precision of the weights"),
    "kv_dtype": msg("Precision of the KV cache"),
    "engine": msg("Engine"),
    "batching": msg("Batching"),
}
FITS = {
    "fits": msg("Fits"),
    "tight": msg("Tight"),
    "out_of_memory": msg("Does not fit"),
}
GRADES = {
    "measured": msg("Measured here"),
    "published": msg("Near published measurements"),
    "extrapolated": msg("Extrapolated"),
}
SATURATIONS = {
    "compute": msg("Compute"),
    "memory": msg("Memory"),
    "bandwidth": msg("Bandwidth"),
}
ORIGINS = {
    "database": msg("the organisation's catalogue"),
    "shipped": msg("the shipped reference catalogue"),
}
_ALL = {**LAYOUT, **STEPS, **PARTS, **FIGURES}


# What a service's figures are of, where beside them stand those of other loads.
_OF_A_SERVICE = {
    "ttft": msg("Time to first token, peak load"),
    "tpot": msg("Time per output token, peak load"),
    "end_to_end": msg("Whole answer, peak load"),
    "throughput": msg("Throughput at full capacity"),
    "throughput_per_accelerator": msg("Throughput per accelerator at full capacity"),
    "requests_per_second": msg("Requests per second at full capacity"),
    "concurrency": msg("Requests in flight per replica, full capacity"),
}


def figure_label(name: str, figures: Collection[str]) -> Message:
    """The name of a figure in words, with the load that it is of where `figures` hold several."""
    at_a_load = _OF_A_SERVICE.get(name) if "ttft_full" in figures else None
    return at_a_load or label(name)


def label(name: str) -> Message:
    """The name of a part, a figure, a step or a layout entry in words; the name itself when it has none."""
    return _ALL.get(name) or Message(name.replace("_", " ").replace("%", "%%"))


def count_text(replicas: int, per_replica: int) -> Message:
    """How many accelerators, spelled out."""
    total = replicas * per_replica
    if total == 1:
        return msg("1 accelerator")
    if per_replica == 1:
        return msg("%(total)s accelerators, one to a replica", total=total)
    if replicas == 1:
        return msg("%(total)s accelerators in one replica", total=total)
    return msg(
        "%(total)s accelerators = %(replicas)s replicas × %(per_replica)s",
        total=total,
        replicas=replicas,
        per_replica=per_replica,
    )


def in_words(message: Message) -> Message:
    """`message` with the name and values of a field (`flash_attention`, `True`) as a person reads them."""
    field = _fields().get(str(message.params.get("field", "")))
    if field is None:
        return message
    params = {name: _value(field, value) for name, value in message.params.items()}
    return Message(message.template, {**params, "field": field.label})


@cache
def _fields() -> dict[str, Field]:
    groups = (options.RECIPE, options.ADAPTERS, options.TRAINING_LAYOUT, options.SERVING)
    return {field.name: field for group in groups for field in group}


def _value(field: Field, value: Parameter) -> Parameter:
    if field.type == "flag" and value in ("True", "False"):
        return msg("Yes") if value == "True" else msg("No")
    return next((words for code, words in field.choices if code == value), value)
