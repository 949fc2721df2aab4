"""What a reader and an auditor see of a document, read back from its bytes."""

import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pytest
import structlog
from django.core.exceptions import SuspiciousFileOperation
from pypdf import PdfReader

from core import charts
from core import pdf as pdf_module
from core.money import Money
from core.pdf import Attachment, RefusedAddress, StaticFilesOnly, render_pdf

MADE_AT = datetime(2026, 11, 30, 20, 30, tzinfo=UTC)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _templates(settings):
    settings.TEMPLATES = [
        {
            **settings.TEMPLATES[0],
            "DIRS": [*settings.TEMPLATES[0]["DIRS"], Path(__file__).parent.parent / "templates"],
        }
    ]


def document(organisation, language="zh-hans", **changes):
    context = {
        "name": "季度复盘 2026Q4",
        "rows": range(1, 4),
        "amount": Money(Decimal("1234567.5"), "CNY"),
        "parts": [("权重", 70e9)],
        **changes.pop("context", {}),
    }
    return render_pdf("document.html", context, language, made_at=MADE_AT, **changes)


def read(pdf):
    return PdfReader(BytesIO(pdf))


def text(pdf):
    return "\n".join(page.extract_text() for page in read(pdf).pages)


def fonts(pdf):
    found = {}
    for page in read(pdf).pages:
        for font in page["/Resources"]["/Font"].values():
            descendant = font.get_object()["/DescendantFonts"][0].get_object()
            descriptor = descendant["/FontDescriptor"].get_object()
            found[str(descriptor["/FontName"])] = {"/FontFile2", "/FontFile3"} & set(descriptor)
    return found


def test_chinese_and_amounts_are_read_back(organisation):
    said = text(document(organisation))

    assert "季度复盘 2026Q4" in said
    assert "加速卡 3" in said
    assert "1,234,567.50 CNY" in said
    assert "Quanta Cloud" in said


def test_the_chinese_font_is_inside(organisation):
    embedded = fonts(document(organisation))

    assert any("CJK" in name for name in embedded)
    assert all(embedded.values()), f"not embedded: {embedded}"


def test_it_is_tagged_and_says_its_language_and_date(organisation):
    reader = read(document(organisation))
    catalogue = reader.trailer["/Root"]

    assert catalogue["/MarkInfo"]["/Marked"]
    assert "/StructTreeRoot" in catalogue
    assert catalogue["/Lang"] == "zh-hans"
    assert "pdfuaid" in catalogue["/Metadata"].get_object().get_data().decode()
    assert reader.metadata.title == "季度复盘 2026Q4"
    assert reader.metadata.creation_date == MADE_AT


def test_language_and_zone_are_those_of_the_document_not_of_the_caller(organisation):
    english = text(document(organisation, "en"))
    chinese = text(document(organisation))

    # 20:30 UTC is half past four on the next day in Shanghai
    assert "Made by Headroom on 1 Dec 2026, 04:30" in english
    assert "2026年12月1日" in chinese
    assert "Made by" not in chinese


def test_the_same_input_gives_the_same_bytes(organisation):
    chart = charts.bars(title="成本", labels=("方案", "类别", "CNY"), rows=[("自建", "资本", 2.0)])
    csv = Attachment("figures.csv", b"a,b\r\n1,2\r\n")

    def make(**context):
        return document(organisation, attachments=[csv], context={"chart": chart, **context})

    assert make() == make()
    assert make(name="other") != make()


def test_pages_are_numbered_and_the_head_runs_on_from_the_second(organisation):
    reader = read(document(organisation, context={"rows": range(200)}))
    count = len(reader.pages)

    assert count > 3
    assert f"2 / {count}" in reader.pages[1].extract_text()
    assert reader.pages[1].extract_text().count("季度复盘 2026Q4") == 1
    assert "Item" in reader.pages[2].extract_text()  # the table head is repeated


def test_a_chart_is_drawn_with_its_alternative_text(organisation):
    chart = charts.bars(
        title="年度成本", labels=("方案", "类别", "CNY"), rows=[("自建机房", "资本", 2.0)]
    )
    pdf = document(organisation, context={"chart": chart})

    assert "自建机房" in text(pdf)
    figures = [
        node.get_object()
        for node in walk(read(pdf).trailer["/Root"]["/StructTreeRoot"].get_object())
    ]
    assert any(str(node.get("/Alt", "")).startswith("年度成本") for node in figures)


def walk(node):
    node = node.get_object()
    if not hasattr(node, "get"):
        return
    yield node
    kids = node.get("/K", [])
    for kid in kids if isinstance(kids, list) else [kids]:
        yield from walk(kid)


@pytest.mark.odd_document
@pytest.mark.parametrize("name", ["量子 <b>&", "量子\x0b <b>&"])
def test_a_name_that_is_no_xml_takes_the_slower_way_to_the_same_document(organisation, name):
    plain, odd = document(organisation), document(organisation, context={"name": name})

    assert "加速卡 1" in text(odd)
    assert len(read(odd).pages) == len(read(plain).pages)
    assert [node.get("/S") for node in walk(structure(odd))] == [
        node.get("/S") for node in walk(structure(plain))
    ]


def structure(pdf):
    return read(pdf).trailer["/Root"]["/StructTreeRoot"].get_object()


def test_drawings_inside_the_page_are_drawings_whether_they_say_so_or_not(organisation):
    figures = [
        node for node in walk(structure(document(organisation))) if node.get("/S") == "/Figure"
    ]

    assert any(
        "权重" in str(figure.get("/Alt")) for figure in figures
    )  # of components/stacked_bar.html


@pytest.mark.odd_document
def test_a_document_that_is_not_well_formed_says_so_in_the_log(organisation):
    with structlog.testing.capture_logs() as logs:
        document(organisation)
    assert logs == []
    with structlog.testing.capture_logs() as logs:
        document(organisation, context={"name": "量子\x0b"})
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("pdf.not_well_formed", "warning")
    ]


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_it_was_before(organisation, on):
    before = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        document(organisation)
        assert gc.isenabled() == on
        with pdf_module._alone_without_collections():
            assert not gc.isenabled()
        with pytest.raises(ZeroDivisionError), pdf_module._alone_without_collections():
            raise ZeroDivisionError
        assert gc.isenabled() == on
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("on", [True, False])
def test_two_threads_draw_one_after_the_other_and_leave_the_collector_as_it_was(on):
    before, inside, met = gc.isenabled(), threading.Event(), []
    (gc.enable if on else gc.disable)()

    def first():
        with pdf_module._alone_without_collections():
            inside.set()
            time.sleep(0.05)
            met.append(("first", gc.isenabled()))
            raise ZeroDivisionError

    def second():
        inside.wait(5)
        with pdf_module._alone_without_collections():
            met.append(("second", gc.isenabled()))

    try:
        with ThreadPoolExecutor(2) as pool:
            failing, fine = pool.submit(first), pool.submit(second)
            with pytest.raises(ZeroDivisionError):
                failing.result(5)
            fine.result(5)
        assert met == [("first", False), ("second", False)]
        assert gc.isenabled() == on
    finally:
        (gc.enable if before else gc.disable)()


def test_an_attachment_comes_out_as_it_went_in(organisation):
    pdf = document(organisation, attachments=[Attachment("数据.csv", b"a,b\r\n1,2\r\n")])

    assert read(pdf).attachments["数据.csv"] == [b"a,b\r\n1,2\r\n"]


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/x.png", "http://127.0.0.1/x", "file:///etc/passwd", "static:/../config/settings.py",
        "static:/etc/passwd", "ftp://example.com/x",
    ],
)  # fmt: skip
def test_nothing_but_static_files_is_read(address):
    with pytest.raises((RefusedAddress, SuspiciousFileOperation)):
        StaticFilesOnly().fetch(address)


def test_a_refused_picture_does_not_stop_the_document(organisation):
    pdf = document(organisation, context={"picture": "file:///etc/passwd"})

    assert "季度复盘" in text(pdf)
    assert b"root:" not in pdf


def test_a_date_without_a_zone_is_refused(organisation):
    with pytest.raises(ValueError, match="time zone"):
        render_pdf("document.html", {}, "en", made_at=datetime(2026, 1, 1))
