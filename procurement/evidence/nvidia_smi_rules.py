"""Identity and health of cards from `nvidia-smi -q`, text or XML: what was ordered, what is worn, what is broken."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import msg
from procurement.evidence.nvidia_smi_identity import judge_batch, judge_identity, note
from procurement.evidence.nvidia_smi_state import State, index_of
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Severity, Verdict

_NEEDED = ("name", "uuid", "bus")


def judge_states(report: Report, states: Sequence[State], attached: int | None) -> None:
    """Every card on its own, then the cards beside each other."""
    logs: list[tuple[State, DeviceLog]] = []
    for position, state in enumerate(states):
        uuid = state.text("uuid")
        log = report.device(
            (uuid or "", position), index=index_of(state, position), uuid=uuid, serial=_serial(state),
            bus=state.text("bus"), model=state.text("name"),
        )  # fmt: skip
        logs.append((state, log))
        for key in ("vbios", "part"):
            value = state.text(key)
            if value:
                log.figures[key] = value
        device_id = state.hex_id("device_id")
        if device_id:
            log.figures["device_id"] = f"0x{device_id}"
        judge_identity(report, state, log)
        _wear(report, state, log)
        _health(report, state, log)
        _performance(report, state, log)
        _present(state, log)
    judge_batch(report, logs)
    report.counts |= {"gpus": len(states), "attached_gpus": attached}
    if not states:
        report.incomplete("no_devices", msg("The file describes no card."))
    if attached is None:
        report.incomplete("no_attached_count", msg("The number of attached cards is missing."))
    elif attached != len(states):
        report.incomplete(
            "devices_not_listed",
            msg(
                "%(attached)s cards are attached, %(shown)s are described.",
                attached=attached,
                shown=len(states),
            ),
        )
        if states and attached > len(states) and all(state.closed for state in states):
            report.finding(
                "gpu_missing",
                Severity.BLOCKING,
                msg(
                    "%(attached)s cards are attached, %(shown)s are described.",
                    attached=attached,
                    shown=len(states),
                ),
                value=len(states),
                threshold=attached,
            )
    if any(not state.closed for state in states):
        report.incomplete("block_cut", msg("The description of a card is cut off."))


def _serial(state: State) -> str | None:
    serial = state.text("serial")
    return serial if serial and serial.strip("0") else None


def _wear(report: Report, state: State, log: DeviceLog) -> None:
    """Signs of use on a card sold as new."""
    rows = (state.number("remap_correctable") or 0) + (state.number("remap_uncorrectable") or 0)
    lifetime = state.ecc("aggregate", "uncorrectable") or 0
    retired = state.number("retired_double") or 0
    verdict = Verdict.WARN
    if report.context.sold_as_new and (rows or lifetime or retired):
        note(
            log,
            state,
            verdict,
            "used_history",
            msg(
                "%(rows)s remapped rows, %(errors)s lifetime errors, %(pages)s retired pages on a card sold as new",
                rows=int(rows),
                errors=int(lifetime),
                pages=int(retired),
            ),
            "remap_uncorrectable",
            int(rows + lifetime + retired),
            0,
        )
    replays = state.number("replays")
    if replays:
        note(
            log,
            state,
            verdict,
            "pcie_replay",
            msg("%(count)s PCIe replays", count=int(replays)),
            "replays",
            int(replays),
            0,
        )


def _health(report: Report, state: State, log: DeviceLog) -> None:
    for path, text, where in state.faults():
        log.note(
            Verdict.FAIL,
            "nvml_error",
            msg("The driver got no answer for %(column)s: %(text)s", column=path, text=text),
            value=text,
            where=where,
        )
    fresh = state.ecc("volatile", "uncorrectable")
    if fresh:
        log.note(
            Verdict.FAIL,
            "ecc_uncorrected",
            msg("%(count)s uncorrectable memory errors", count=int(fresh)),
            value=int(fresh),
            threshold=0,
            where=state.where,
        )
    mended = state.ecc("volatile", "correctable")
    if mended:
        log.note(
            Verdict.WARN,
            "ecc_corrected",
            msg("%(count)s corrected memory errors: watch it", count=int(mended)),
            value=int(mended),
            threshold=0,
            where=state.where,
        )
    pending = Verdict.FAIL if report.context.sold_as_new else Verdict.WARN
    for key, verdict, message in (
        ("remap_failure", Verdict.FAIL, msg("Remapping a memory row failed.")),
        ("remap_pending", pending, msg("A memory row waits to be remapped.")),
        ("retired_pending", pending, msg("A memory page waits to be retired.")),
        ("sram_threshold", Verdict.FAIL, msg("The SRAM error threshold was exceeded.")),
        ("channel_repair", Verdict.FAIL, msg("A memory channel waits for repair.")),
        ("tpc_repair", Verdict.FAIL, msg("A processing cluster waits for repair.")),
        ("unrepairable", Verdict.FAIL, msg("Memory cannot be repaired.")),
        ("reset_required", Verdict.FAIL, msg("The card needs a reset.")),
    ):
        if (state.text(key) or "").lower() == "yes":
            note(log, state, verdict, key, message, key, "Yes", "No")
    action = state.values.get("gpu recovery action", ("None", ""))[0].strip()
    if (
        action.lower() not in ("none", "n/a", "")
        and "deprecated" not in action.lower()
        and "not supported" not in action.lower()
    ):
        note(
            log,
            state,
            Verdict.FAIL,
            "recovery_action",
            msg("The driver asks for: %(action)s", action=action),
            "recovery_action",
            action,
            "None",
        )
    if (state.text("ecc_current") or "").lower() == "disabled":
        note(
            log,
            state,
            Verdict.WARN,
            "ecc_disabled",
            msg("ECC is off."),
            "ecc_current",
            "Disabled",
            "Enabled",
        )
    current, later = state.text("ecc_current"), state.text("ecc_pending")
    if current and later and current != later:
        note(
            log,
            state,
            Verdict.WARN,
            "ecc_change_pending",
            msg(
                "ECC changes from %(now)s to %(later)s at the next reset.", now=current, later=later
            ),
            "ecc_pending",
            later,
            current,
        )
    fabric, status = state.text("fabric_state"), state.text("fabric_status")
    if fabric and fabric.lower() != "completed":
        note(
            log,
            state,
            Verdict.WARN,
            "fabric_state",
            msg("NVLink fabric: %(state)s", state=fabric),
            "fabric_state",
            fabric,
            "Completed",
        )
    if status and status.lower() != "success":
        note(
            log,
            state,
            Verdict.FAIL,
            "fabric_status",
            msg("NVLink fabric: %(state)s", state=status),
            "fabric_status",
            status,
            "Success",
        )


def _performance(report: Report, state: State, log: DeviceLog) -> None:
    current, default = state.number("power_current"), state.number("power_default")
    if current is not None and default is not None and current < default:
        note(
            log,
            state,
            Verdict.FAIL,
            "power_limit_below_default",
            msg(
                "The power limit is %(value)s W of %(limit)s W: tests of speed are void.",
                value=current,
                limit=default,
            ),
            "power_current",
            current,
            default,
        )
    if current is not None and default is not None and current > default:
        note(
            log,
            state,
            Verdict.WARN,
            "power_limit_above_default",
            msg(
                "The power limit is %(value)s W, above the default %(limit)s W.",
                value=current,
                limit=default,
            ),
            "power_current",
            current,
            default,
        )
    for reason, where in state.active_reasons():
        hardware = reason.startswith(("hw slowdown", "hw thermal", "hw power brake"))
        if hardware or reason.startswith("sw thermal"):
            log.note(
                Verdict.FAIL if hardware else Verdict.WARN,
                "throttle",
                msg("The clocks are held down: %(reason)s", reason=reason),
                value=reason,
                where=where,
            )
    now, most = state.number("width_current"), state.number("width_max")
    if now is not None and most is not None and now < most:
        note(
            log,
            state,
            Verdict.WARN,
            "pcie_width",
            msg("PCIe runs x%(value)s of x%(limit)s.", value=int(now), limit=int(most)),
            "width_current",
            now,
            most,
        )
    policy = report.context.policy
    for key, limit_key, code in (
        ("temp", "max_temp_c", "temp_max"),
        ("memory_temp", "max_memory_temp_c", "memory_temp_max"),
    ):
        value, limit = state.number(key), policy.require(limit_key, log.model)
        if value is not None and value > limit:
            known = code == "temp_max" and policy.model(log.model) is not None
            note(
                log,
                state,
                Verdict.FAIL if known else Verdict.WARN,
                code,
                msg("It reached %(value)s C; %(limit)s C is allowed.", value=value, limit=limit),
                key,
                value,
                limit,
            )


def _present(state: State, log: DeviceLog) -> None:
    """What must be there for a pass: who the card is, and that its memory reports no fault."""
    for key in _NEEDED:
        if state.text(key) is None:
            note(
                log,
                state,
                Verdict.INCONCLUSIVE,
                f"no_{key}",
                msg("%(what)s is missing.", what=key),
                key,
            )
    if state.ecc("volatile", "uncorrectable") is None:
        log.note(
            Verdict.INCONCLUSIVE,
            "no_ecc",
            msg("No ECC counters are shown: memory errors would not be seen."),
            where=state.where,
        )
    if state.text("remap_failure") is None and state.text("retired_pending") is None:
        mig = (state.text("mig") or "").lower() == "enabled"
        message = (
            msg("With MIG on, row remapping is not shown.")
            if mig
            else msg("Neither row remapping nor page retirement is shown.")
        )
        log.note(Verdict.INCONCLUSIVE, "no_remap", message, where=state.where)
