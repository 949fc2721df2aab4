"""XID codes of the NVIDIA driver and what each means for a card under acceptance.

Codes and actions: NVIDIA's XID catalogue of 2025-10-29. Which end an acceptance is practice.
"""

from __future__ import annotations

import re

from core.messages import Message, msg
from procurement.evidence.types import Verdict

APPLICATION = frozenset({13, 31, 32, 43, 45, 69})
INFORMATIVE = 154  # about another XID; never a fault of its own

_FAIL: dict[int, Message] = {
    46: msg("GPU stopped processing"),
    48: msg("Uncorrectable (double-bit) ECC error"),
    62: msg("Internal micro-controller halt"),
    64: msg("Row remapping failed"),
    74: msg("NVLink error"),
    79: msg("GPU has fallen off the bus"),
    94: msg("Contained uncorrectable memory error"),
    95: msg("Uncontained uncorrectable memory error"),
    109: msg("Context switch time-out"),
    110: msg("Security fault"),
    119: msg("GSP RPC time-out: one retest with a current driver before a return"),
    120: msg("GSP error: one retest with a current driver before a return"),
    136: msg("Link training failed"),
    140: msg("Unrecovered ECC error"),
    143: msg("GPU initialisation failed"),
    157: msg("Retirement of a resource failed"),
    158: msg("Fatal GPU time-out"),
    167: msg("Fatal PCIe time-out"),
    168: msg("Memory capacity reduced"),
    171: msg("Uncorrectable DRAM error"),
    172: msg("Uncorrectable SRAM error"),
}
_WARN: dict[int, Message] = {
    13: msg("Graphics engine exception, application class: run again to confirm"),
    31: msg("Memory page fault, application class: run again to confirm"),
    32: msg("Invalid push buffer, application class: run again to confirm"),
    43: msg("Processing stopped, application class: run again to confirm"),
    45: msg("Preemptive clean-up, application class: run again to confirm"),
    69: msg("Graphics engine class error, application class: run again to confirm"),
    63: msg("A memory row was recorded for remapping"),
    92: msg("High rate of corrected single-bit errors: contact support"),
    93: msg("Too many writes to the InfoROM, odd on a new card"),
    121: msg("Chip-to-chip link corrected errors"),
    156: msg("A resource was retired"),
}


def judge_xid(code: int, text: str) -> tuple[Verdict, Message]:
    """The verdict for the card that an XID names, and why. `text` is the rest of its line."""
    if code in _FAIL:
        return Verdict.FAIL, _FAIL[code]
    if code in _WARN:
        return Verdict.WARN, _WARN[code]
    if 144 <= code <= 150:
        if re.search(r"\bnon-?fatal\b", text, re.IGNORECASE):
            return Verdict.WARN, msg("NVLink 5 error, not fatal")
        return Verdict.FAIL, msg("NVLink 5 error, fatal or of unknown weight")
    if code == INFORMATIVE:
        return Verdict.WARN, msg("The driver asks for a recovery action because of another error")
    return Verdict.WARN, msg("Unknown XID code")
