"""Figures that readers of evidence take from a card, in words."""

from __future__ import annotations

from core.messages import Message, msg

FIGURES = {
    "compute_errors": msg("Wrong results"),
    "covered_h": msg("Hours covered"),
    "gst_gflops": msg("Speed of the GST test [Gflop/s]"),
    "h2d_gbs": msg("Host to card [GB/s]"),
    "iterations_failed": msg("Failed iterations"),
    "local_copy_gbs": msg("Copies within the card [GB/s]"),
    "max_memory_temp_c": msg("Highest temperature of the memory [°C]"),
    "max_temp_c": msg("Highest temperature [°C]"),
    "mean_gflops": msg("Mean speed [Gflop/s]"),
    "min_gflops": msg("Lowest speed [Gflop/s]"),
    "mean_power_w": msg("Mean power [W]"),
    "power_w": msg("Power [W]"),
    "samples": msg("Samples"),
}


def figure_words(name: str) -> Message:
    """The figure in words; its name with spaces when it is not a common one."""
    return FIGURES.get(name) or Message("%(name)s", {"name": name.replace("_", " ")})
