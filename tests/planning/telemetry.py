"""Sources and samples for tests of telemetry."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.files.base import File

from planning.models import Ingestion, TelemetrySource
from planning.models.telemetry import CardHour, SourceKind
from planning.services.telemetry_load import finish, load_file, store_samples
from planning.services.telemetry_sources import receive_file
from planning.telemetry_formats.samples import Reading, Sample

T0 = datetime(2026, 11, 2, 8, tzinfo=UTC)


def source(kind: str = SourceKind.PUSH, **fields: Any) -> TelemetrySource:
    return TelemetrySource.objects.create(
        **{
            "name": f"source {TelemetrySource.objects.count()}",
            "kind": kind,
            "accelerator_slug": "h100-sxm-80gb",
            **fields,
        }
    )


def samples(
    *,
    card: str = "GPU-1",
    start: datetime = T0,
    minutes: int = 60,
    utilization: float = 0.5,
    **values: float,
) -> list[Sample]:
    return [
        Sample(card, start + timedelta(minutes=n), "node-a1", "NVIDIA H100", "", {"utilization": utilization, **values})
        for n in range(minutes)
    ]  # fmt: skip


def feed(of: TelemetrySource, found: list[Sample]) -> Ingestion:
    row = Ingestion.objects.create(source=of)
    reading = Reading(read=len(found))
    store_samples(row, found)
    return finish(row, reading)


def load(
    of: TelemetrySource, text: str | bytes, name: str = "file.txt", by: Any = None
) -> Ingestion:
    content = text.encode() if isinstance(text, str) else text
    row, is_new = receive_file(source_id=of.pk, upload=File(io.BytesIO(content), name=name), by=by)
    if not is_new:  # reading alone must change nothing either, whether its hash is known or not
        row = Ingestion.objects.create(source=of, file=row.file)
    return load_file(ingestion_id=row.pk)


def hours() -> list[dict[str, Any]]:
    return list(CardHour.objects.order_by("series__card__name", "hour").values())


def prometheus_answer(start: float, stop: float, step: int, value: float = 80) -> bytes:
    """A range answer of one H100: utilisation, power, and used and free memory."""
    points = [[at, None] for at in range(int(start), int(stop) + 1, step)]
    labels = {"UUID": "GPU-p", "Hostname": "node-a1", "modelName": "NVIDIA H100", "gpu": "0"}
    figures = {
        "DCGM_FI_DEV_GPU_UTIL": value,
        "DCGM_FI_DEV_POWER_USAGE": 500,
        "DCGM_FI_DEV_FB_USED": 60_000,
        "DCGM_FI_DEV_FB_FREE": 20_000,
    }
    result = [
        {"metric": {"__name__": name, **labels}, "values": [[at, str(figure)] for at, _ in points]}
        for name, figure in figures.items()
    ]
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": result}}
    ).encode()
