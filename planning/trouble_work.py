"""Rows of the trouble table: what the work shows: memory, throughput, training, scaling. Pure data."""

from __future__ import annotations

from core.messages import msg
from planning.trouble import (
    LOW_USE,
    MEMORY,
    Cause,
    Check,
    Question,
    Remedy,
    Symptom,
    above,
    below,
    free,
    when,
)

SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "out-of-memory",
        msg("Out of memory in training"),
        (
            Question("at_start", msg("Does it fail before the first step is done?")),
            Question("grows", msg("Does memory grow from step to step?")),
            Question("full_precision", msg("Is everything kept in 32 bit?")),
            Question("long_sequences", msg("Does it fail on the longest sequences only?")),
        ),
        (
            Cause(
                "batch",
                msg("The batch is too large for the card"),
                2.0,
                (Check(msg("Watch memory while the batch is halved"), MEMORY),),
                (
                    free(msg("Smaller batch, gradient accumulation to the same global batch")),
                    free(msg("Recompute activations: less memory for about a third more compute")),
                ),
                {"long_sequences": 1.5, "at_start": -0.5},
                when(lambda s: above(s.memory, 0.9)),
                msg("Your cards' memory is over nine tenths full."),
            ),
            Cause(
                "states",
                msg(
                    "Weights, gradients and optimiser states do not fit: 16 bytes a parameter with AdamW"
                ),
                1.5,
                (
                    Check(
                        msg(
                            "Compare 16 bytes × parameters with the memory of the cards that share them"
                        )
                    ),
                ),
                (
                    free(
                        msg(
                            "Mixed precision, 8-bit optimiser states, sharding over the cards, or LoRA"
                        )
                    ),
                    Remedy(
                        msg("Cards with more memory"), msg("dearer cards, fewer of them"), "request"
                    ),
                ),
                {"at_start": 1.5, "full_precision": 1.0},
            ),
            Cause(
                "leak",
                msg("Something keeps tensors alive"),
                0.5,
                (
                    Check(
                        msg("Print allocated memory each step; it must not rise"),
                        "torch.cuda.memory_summary()",
                    ),
                ),
                (
                    free(
                        msg(
                            "Detach losses that are summed, free caches between evaluation and training"
                        )
                    ),
                ),
                {"grows": 3.0},
            ),
        ),
    ),
    Symptom(
        "low-throughput",
        msg("Low inference throughput"),
        (
            Question("few_at_once", msg("Are few requests worked on at once?")),
            Question("long_context", msg("Are contexts long?")),
            Question("quantised", msg("Are the weights quantised already?")),
            Question(
                "one_slower", msg("Is one replica slower than the others, or all of a sudden?")
            ),
            Question("rises", msg("Does throughput rise when more requests are sent?")),
        ),
        (
            Cause(
                "concurrency",
                msg("Too little is batched: the concurrency settings hold it back"),
                2.0,
                (
                    Check(
                        msg(
                            "Draw throughput over concurrency; it should rise until memory is full"
                        ),
                        "vllm bench serve --max-concurrency 1 … 256",
                    ),
                ),
                (free(msg("Continuous batching, more sequences at once, chunked prefill")),),
                {"few_at_once": 1.5, "rises": 2.0},
                when(lambda s: below(s.utilization, LOW_USE)),
                msg("Your cards are less than a third busy."),
            ),
            Cause(
                "bandwidth",
                msg("Memory bandwidth bounds decoding: each token reads the whole model"),
                1.5,
                (
                    Check(
                        msg("Measure the card's real bandwidth"), "nvbandwidth -t device_local_copy"
                    ),
                ),
                (
                    Remedy(
                        msg("Quantise the weights to 8 or 4 bit"),
                        msg("half to a quarter of the memory traffic, for some accuracy"),
                    ),
                    Remedy(
                        msg("Cards with more bandwidth"),
                        msg("dearer cards, fewer of them"),
                        "request",
                    ),
                ),
                {"quantised": -1.0, "rises": -1.0},
                when(lambda s: above(s.utilization, 0.8) and below(s.sm, 0.5)),
                msg(
                    "Your cards are busy while their multiprocessors are not: they wait for memory."
                ),
            ),
            Cause(
                "cache",
                msg("The KV cache leaves room for few sequences"),
                1.0,
                (
                    Check(
                        msg("Read how many sequences fit in the engine's log"),
                        "grep -iE 'maximum concurrency|KV cache size|preempt' engine.log",
                    ),
                ),
                (free(msg("8-bit KV cache, shorter context limits, prefix caching")),),
                {"long_context": 2.0},
                when(lambda s: above(s.memory, 0.9), 1.0),
                msg("Your cards' memory is over nine tenths full."),
            ),
            Cause(
                "slow-card",
                msg("A card is throttled or broken"),
                0.3,
                (
                    Check(
                        msg("Read clocks, temperatures and the reasons for lower clocks"),
                        "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE",
                    ),
                    Check(msg("Test the card"), "dcgmi diag -r 3"),
                ),
                (Remedy(msg("Return the card"), msg("nothing within the warranty"), "rma"),),
                {"one_slower": 3.0},
                when(lambda s: s.interrupted > 0, 1.0),
                msg("Jobs were interrupted in your team."),
            ),
        ),
    ),
    Symptom(
        "slow-training",
        msg("Training will not speed up"),
        (
            Question("mixed_precision", msg("Is mixed precision on?")),
            Question("cpu_busy", msg("Are the processors of the server at their limit?")),
            Question("remote_data", msg("Is data read over the network in each epoch?")),
            Question("small_batch", msg("Is the batch per card small?")),
        ),
        (
            Cause(
                "precision",
                msg("The matrix units are not used: everything runs in 32 bit"),
                1.5,
                (Check(msg("Read the activity of the tensor units"), "dcgmi dmon -e 1004,1002"),),
                (free(msg("Switch mixed precision on")),),
                {"mixed_precision": -2.5},
            ),
            Cause(
                "data",
                msg("Cards wait for data"),
                1.5,
                (
                    Check(msg("Compare with synthetic data: if that is faster, data is the limit")),
                    Check(msg("Watch the disks and the network"), "iostat -x 5; sar -n DEV 5"),
                ),
                (
                    Remedy(
                        msg("More loader processes, local cache, larger files"),
                        msg("a disk of a server; remote reads end"),
                    ),
                ),
                {"cpu_busy": 1.5, "remote_data": 2.0},
                when(lambda s: below(s.utilization, LOW_USE)),
                msg("Your cards are less than a third busy."),
            ),
            Cause(
                "batch",
                msg("The batch is too small to fill the card"),
                1.0,
                (Check(msg("Double the batch: the time of a step should not double")),),
                (free(msg("Larger batch, fused kernels, compile the model")),),
                {"small_batch": 2.0},
                when(lambda s: below(s.memory, 0.4), 1.0),
                msg("More than half of your cards' memory is empty."),
            ),
            Cause(
                "links",
                msg("Communication takes the time"),
                1.0,
                (
                    Check(
                        msg("Read the state of the links and their errors"),
                        "nvidia-smi nvlink -s; nvidia-smi topo -m",
                    ),
                    Check(
                        msg("Measure all-reduce between the servers"),
                        "all_reduce_perf -b 8 -e 8G -f 2 -g 8",
                    ),
                ),
                (
                    free(msg("Overlap communication with compute, another split of the model")),
                    Remedy(
                        msg("Whole servers with faster links"),
                        msg("dearer servers, fewer of them"),
                        "request",
                    ),
                ),
                {},
            ),
        ),
    ),
    Symptom(
        "poor-scaling",
        msg("Poor scaling over many cards"),
        (
            Question("across_servers", msg("Is it slow only across servers?")),
            Question("tensor_across", msg("Does tensor parallelism cross servers?")),
            Question("uneven", msg("Are some cards slower than the others?")),
        ),
        (
            Cause(
                "network",
                msg("The network between servers is the limit"),
                2.0,
                (
                    Check(
                        msg("Measure all-reduce over one, two and four servers"),
                        "all_reduce_perf -b 8 -e 8G -f 2 -g 8",
                    ),
                    Check(msg("Read the state of the ports"), "ibstat; ibdiagnet; ethtool -S eth0"),
                ),
                (
                    free(msg("Check RDMA, GPUDirect and the placement of ranks")),
                    Remedy(
                        msg("Servers on a faster network"),
                        msg("a fabric costs a tenth or more of the servers"),
                        "request",
                    ),
                ),
                {"across_servers": 2.0},
            ),
            Cause(
                "layout",
                msg("The split of the model does not suit the links"),
                1.5,
                (
                    Check(
                        msg("Profile the share of communication"),
                        "nsys profile -t cuda,nvtx python train.py",
                    ),
                ),
                (free(msg("Tensor parallel within a server, pipeline or data parallel across")),),
                {"tensor_across": 2.5},
            ),
            Cause(
                "straggler",
                msg("One slow card or link holds up all"),
                1.0,
                (
                    Check(
                        msg("Read the links of each server"),
                        "nvidia-smi nvlink -s; nvidia-smi nvlink -e",
                    ),
                    Check(msg("Test the cards"), "dcgmi diag -r 3"),
                ),
                (
                    Remedy(
                        msg("Take the server out and return the part"),
                        msg("nothing within the warranty"),
                        "rma",
                    ),
                ),
                {"uneven": 3.0},
                when(lambda s: s.interrupted > 0, 1.0),
                msg("Jobs were interrupted in your team."),
            ),
        ),
    ),
)
