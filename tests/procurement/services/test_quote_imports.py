"""A vendor's table: what an RFQ produces is read back, every row has a fate, and all is recorded or nothing."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from openpyxl import Workbook, load_workbook
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.messages import Message
from core.models import AuditEntry, Job
from core.organisation import today
from procurement.models import Quote, QuoteImport
from procurement.quote_table import HEADINGS, read_quote
from procurement.selectors.comparison import compare
from procurement.services import awards, quote_imports, quotes, rfqs
from procurement.services.quotes import compute_hash
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
VALID = "2099-12-31"
HEAD = {"currency": "CNY", "valid_until": VALID, "lead_time_days": "30", "warranty_months": "36",
        "warranty_start": "acceptance"}  # fmt: skip
CARD = {"rfq_line": "1", "kind": "accelerator", "description": "H100 SXM 80 GB", "quantity": "8",
        "unit_price": "250000", "tax_percent": "13", "accelerators_per_item": "1", "serialised": "yes"}  # fmt: skip


@pytest.fixture
def s():
    return b.shop()


def table(*rows: dict[str, str], delimiter: str = ",", language: int | None = None) -> str:
    """Rows as CSV, headed by codes, in English (0) or in Chinese (1)."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    heads = names if language is None else [HEADINGS[name][language] for name in names]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(heads)
    writer.writerows([[row.get(name, "") for name in names] for row in rows])
    return out.getvalue()


def start(s, rfq, content: bytes | str, name: str = "quote.csv", **fields) -> QuoteImport:
    body = content.encode() if isinstance(content, str) else content
    return quote_imports.start_import(
        rfq_id=rfq.pk, vendor_id=s.vendor.pk, upload=SimpleUploadedFile(name, body),
        by=s.procurement, **fields,
    )  # fmt: skip


def fates(row: QuoteImport) -> list[str]:
    return [one[1] for one in row.report["rows"]]


def told(row: QuoteImport) -> str:
    return str(row.report)


def recorded(s, rfq, *rows) -> Quote:
    row = start(s, rfq, table(*rows))
    assert set(fates(row)) == {"add"}, told(row)
    return quote_imports.apply_import(pk=row.pk, by=s.procurement).quote


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_the_table_of_an_rfq_comes_back_filled_in(s, client, kind, language):
    rfq = b.rfq(s)
    client.force_login(s.procurement)
    answer = client.get(reverse("quote-template", args=[rfq.pk, kind]), {"language": language})
    content = b"".join(answer.streaming_content)
    if kind == "csv":
        cells = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    else:
        cells = [list(row) for row in load_workbook(io.BytesIO(content)).active.values]
    heads = cells[0]
    assert heads[0] == ("行号" if language.startswith("zh") else "Line")
    filled = dict(zip(HEADINGS, cells[1], strict=True))
    filled |= {
        "unit_price": "250000",
        "tax_percent": "13",
        "currency": "CNY",
        "valid_until": VALID,
        "lead_time_days": "30",
    }
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(heads)
    writer.writerow([filled[name] if filled[name] is not None else "" for name in HEADINGS])

    row = start(s, rfq, out.getvalue())

    assert fates(row) == ["add"], told(row)
    quote = quote_imports.apply_import(pk=row.pk, by=s.procurement).quote
    line = quote.lines.get()
    assert (line.rfq_line.position, line.quantity, line.unit_price) == (1, 8, 250000)
    assert (quote.warranty.months, quote.warranty.start_trigger) == (36, "acceptance")
    assert quote.attachments.get().file_id == row.file_id


@pytest.mark.parametrize("language", [None, 0, 1])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_headings_and_separators(s, language, delimiter):
    row = start(s, b.rfq(s), table(CARD | HEAD, delimiter=delimiter, language=language))
    assert fates(row) == ["add"], told(row)


def test_gbk_is_asked_for_and_then_read(s):
    rfq = b.rfq(s)
    text = table(
        CARD | HEAD | {"description": "八卡服务器加速卡模组", "kind": "加速卡"}, language=1
    )
    row = start(s, rfq, text.encode("gb18030"))
    assert "对应询价行" in row.report["choices"]["gb18030"]
    with pytest.raises(InputError, match="encoding"):
        quote_imports.apply_import(pk=row.pk, by=s.procurement)
    row = quote_imports.choose_encoding(pk=row.pk, encoding="gb18030", by=s.procurement)
    quote = quote_imports.apply_import(pk=row.pk, by=s.procurement).quote
    assert quote.lines.get().description == "八卡服务器加速卡模组"


def test_byte_order_mark_decimal_comma_and_percent_sign(s):
    card = CARD | HEAD | {"unit_price": "250.000,50", "tax_percent": "13%"}
    row = start(s, b.rfq(s), b"\xef\xbb\xbf" + table(card, delimiter=";").encode())
    assert fates(row) == ["add"], told(row)
    line = quote_imports.apply_import(pk=row.pk, by=s.procurement).quote.lines.get()
    assert (line.unit_price, line.tax_rate) == (Decimal("250000.50"), Decimal("0.13"))


def test_one_wrong_row_keeps_all_out_and_every_row_has_its_fate(s):
    rfq = b.rfq(s)
    row = start(s, rfq, table(
        CARD | HEAD, CARD | {"rfq_line": "", "description": "Switch", "kind": "network", "unit_price": ""},
        CARD | {"quantity": "many", "tax_percent": "x"}, CARD | {"rfq_line": "7"},
        CARD | {"kind": "spaceship"},
    ))  # fmt: skip
    assert fates(row) == ["add", "refused", "refused", "refused", "refused"]
    assert row.report["counts"] == {"add": 1, "refused": 4}
    texts = told(row)
    for word in (
        "missing price is not 0",
        "many",
        "tax_percent",
        "which was not asked",
        "spaceship",
    ):
        assert word in texts
    with pytest.raises(InputError, match="4 rows are refused"):
        quote_imports.apply_import(pk=row.pk, by=s.procurement)
    assert not Quote.objects.exists()


@pytest.mark.parametrize(
    ("column", "limit"),
    [("tax_percent", "0 … 100"), ("serialised", "yes, no"), ("kind", "server, accelerator"),
     ("accelerators_per_item", "0 … 10000")],
)  # fmt: skip
def test_what_a_row_does_not_say_is_refused_and_not_guessed(s, column, limit):
    row = start(s, b.rfq(s), table(CARD | HEAD, CARD | {column: ""}))
    assert fates(row) == ["add", "refused"]
    (message,) = row.report["rows"][1][2]
    assert f"{column} is missing" in Message.from_json(message).render(str)
    assert limit in Message.from_json(message).render(str)
    assert not Quote.objects.exists()


@pytest.mark.parametrize("field", ["tax_rate", "serialised", "kind", "accelerators_per_item"])
@pytest.mark.parametrize("missing", [None, "", "absent"])
def test_what_a_line_does_not_say_is_refused_naming_line_field_and_limit(s, field, missing):
    second = b.line()
    if missing == "absent":
        del second[field]
    else:
        second[field] = missing
    with pytest.raises(InputError) as refused:
        b.quote(s, b.rfq(s), lines=[b.line(), second])
    error = refused.value
    assert error.field == field
    assert error.limit
    assert "Line 2" in str(error)
    assert not Quote.objects.exists()


def test_a_line_that_holds_no_cards_need_not_count_them_and_no_tax_is_said(s):
    freight = b.line("500", "1", kind="freight", serialised=False, rfq_line=None, tax_rate="0")
    del freight["accelerators_per_item"]
    kept = b.quote(s, b.rfq(s), lines=[b.line(), freight]).lines.last()
    assert (kept.accelerators_per_item, kept.tax_rate, kept.serialised) == (0, 0, False)
    with pytest.raises(InputError, match="neither yes nor no"):
        b.quote(s, b.rfq(s), lines=[b.line(serialised="no")])


def test_what_neither_file_nor_form_says_is_asked_for(s):
    row = start(s, b.rfq(s), table(CARD), head={"currency": "CNY"})
    missing = {one["params"]["field"] for one in row.report["problems"]}
    assert missing == {"valid_until", "lead_time_days", "months", "start_trigger"}
    with pytest.raises(InputError):
        quote_imports.apply_import(pk=row.pk, by=s.procurement)


def test_the_form_says_what_the_file_does_not(s):
    row = start(
        s, b.rfq(s), table(CARD | {"currency": "usd"}),
        head={"currency": "CNY", "valid_until": today() + timedelta(days=9), "lead_time_days": 4},
        warranty={"months": 24, "start_trigger": "delivery", "doa_days": 30},
    )  # fmt: skip
    quote = quote_imports.apply_import(pk=row.pk, by=s.procurement).quote
    assert (quote.currency, quote.lead_time_days) == ("USD", 4)  # the file goes before
    assert (quote.warranty.months, quote.warranty.doa_days) == (24, 30)


def test_two_rows_that_disagree_about_the_whole_are_refused(s):
    row = start(s, b.rfq(s), table(CARD | HEAD, CARD | {"currency": "USD"}))
    assert "an earlier row" in told(row)


def test_breaks_bundles_discounts_freight_and_alternatives(s):
    rfq = b.rfq(s)
    quote = recorded(
        s, rfq,
        CARD | HEAD | {"line": "10", "unit_price": "", "price_breaks": "1-7: 260000; 8-: 250000", "bundle": "Rack A"},
        {"line": "20", "kind": "network", "description": "Switch", "quantity": "1", "list_price": "100000",
         "discount_percent": "12.5", "bundle": "Rack A", "tax_percent": "13",
         "serialised": "no"},
        {"line": "30", "kind": "运费", "description": "Freight", "quantity": "1", "unit_price": "5000",
         "tax_percent": "0", "serialised": "否"},
        CARD | {"line": "40", "description": "H200", "unit_price": "280000", "alternative_to": "10"},
    )  # fmt: skip
    cards, switch, freight, other = quote.lines.order_by("position")
    assert [step.unit_price for step in cards.breaks.all()] == [260000, 250000]
    assert cards.unit_price == 250000
    assert (switch.unit_price, switch.list_price, switch.discount_rate) == (
        87500,
        100000,
        Decimal("0.125"),
    )
    assert (freight.kind, other.alternative_to) == ("freight", 1)
    # 8 x 250000 + 87500 + 5000; the alternative is in no sum
    assert quote.totals().net.amount == Decimal("2092500.00")
    b.quote(s, rfq, s.rival, "36000")
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="both in")
    rfq.refresh_from_db()
    shown = next(row for row in compare(rfq).rows if row.quote.pk == quote.pk)
    assert (shown.accelerators, shown.is_complete) == (8, True)
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    assert award.lines.count() == 3


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"unit_price": "240000", "price_breaks": "1-: 250000"}, "price breaks"),
        ({"unit_price": "", "price_breaks": "1-7: 260000; 9-: 250000"}, "follow on each other"),
        ({"unit_price": "", "price_breaks": "cheap"}, "from-to"),
        ({"unit_price": "9", "list_price": "10", "discount_percent": "20"}, "less the discount"),
        ({"discount_percent": "20"}, "no list price"),
        ({"alternative_to": "1"}, "no line to stand in for"),
        ({"alternative_to": "99"}, "there is no line"),
        ({"quantity": "-1"}, "quantity"),
        ({"quantity": "1,234"}, "plain number"),
    ],
)
def test_lines_that_do_not_add_up(s, change, word):
    row = start(s, b.rfq(s), table(CARD | HEAD | change))
    assert fates(row) == ["refused"]
    assert word in told(row)


def test_formulas_are_text_and_never_run(s):
    """A formula in a CSV is refused where a number belongs and stays text elsewhere; XLSX counts by the value shown."""
    rfq = b.rfq(s)
    assert fates(start(s, rfq, table(CARD | HEAD | {"quantity": "=4+4"}))) == ["refused"]
    quote = recorded(s, rfq, CARD | HEAD | {"description": '=HYPERLINK("http://x","y")'})
    assert quote.lines.get().description == '=HYPERLINK("http://x","y")'
    book = Workbook()
    names = list(CARD | HEAD)
    book.active.append(names)
    book.active.append([(CARD | HEAD | {"unit_price": "=200000+50000"})[name] for name in names])
    out = io.BytesIO()
    book.save(out)
    row = start(s, rfq, out.getvalue(), "quote.xlsx")
    assert "has no price" in told(
        row
    )  # openpyxl stores no value for a formula that nobody has reckoned


def test_the_product_writes_no_formula_into_the_table(s, client):
    from procurement.models import RfqLine

    rfq = b.rfq(s)
    RfqLine.objects.filter(rfq=rfq).update(description='=cmd|"/c calc"!A1')
    client.force_login(s.procurement)
    text = b"".join(
        client.get(reverse("quote-template", args=[rfq.pk, "csv"])).streaming_content
    ).decode()
    assert "'=cmd" in text
    book = b"".join(client.get(reverse("quote-template", args=[rfq.pk, "xlsx"])).streaming_content)
    cell = load_workbook(io.BytesIO(book)).active.cell(2, 4)
    assert (cell.value, cell.data_type) == ('=cmd|"/c calc"!A1', "s")
    assert read_quote(text.encode()).lines[0].given["description"].startswith("=cmd")


def test_a_sealed_bid_shows_no_price_in_its_dry_run(s, client):
    rfq = b.rfq(s, sealed=True)
    row = start(s, rfq, table(
        CARD | HEAD | {"unit_price": "271828.18"}, CARD | {"unit_price": "271828.1234567"},
        CARD | {"unit_price": "271,828"},
    ))  # fmt: skip
    assert fates(row) == ["add", "refused", "refused"]
    assert "271828" not in told(row)
    assert "271,828" not in told(row)
    client.force_login(s.procurement)
    page = client.get(row.get_absolute_url()).text
    assert "271" not in page
    assert "shown to nobody before the opening" in page


def test_only_who_uploaded_sees_it_and_only_buyers_may(s, client):
    rfq = b.rfq(s)
    with pytest.raises(NotPermitted):
        quote_imports.start_import(
            rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.cto,
            upload=SimpleUploadedFile("q.csv", table(CARD | HEAD).encode()),
        )  # fmt: skip
    row = start(s, rfq, table(CARD | HEAD))
    api = APIClient()
    for other in (s.buyer2, s.cto, s.auditor, s.superuser):
        client.force_login(other)
        assert client.get(row.get_absolute_url()).status_code == 404
        api.force_authenticate(other)
        for end in ("", "apply/", "discard/"):
            send = api.get if not end else api.post
            assert send(f"/api/v1/procurement/quote-imports/{row.pk}/{end}").status_code == 404
    with pytest.raises(NotPermitted):
        quote_imports.apply_import(pk=row.pk, by=s.buyer2)


def test_a_vendor_that_was_not_invited_and_a_blocked_one(s):
    rfq = b.rfq(s, vendor_ids=[s.rival.pk])
    with pytest.raises(InputError, match="not invited"):
        start(s, rfq, table(CARD | HEAD))


def test_it_is_recorded_once(s):
    row = start(s, b.rfq(s), table(CARD | HEAD))
    quote_imports.apply_import(pk=row.pk, by=s.procurement)
    with pytest.raises(InvalidTransition):
        quote_imports.apply_import(pk=row.pk, by=s.procurement)
    quote_imports.write_import(pk=row.pk)  # the worker again
    assert Quote.objects.count() == 1
    assert AuditEntry.objects.filter(action="quote_import.applied").count() == 1


def test_a_large_table_goes_through_the_worker(s, django_capture_on_commit_callbacks):
    rows = [CARD | HEAD] + [
        CARD | {"rfq_line": "", "description": f"Part {n} " + "x" * 150} for n in range(700)
    ]
    with django_capture_on_commit_callbacks(execute=True):
        row = start(s, b.rfq(s), table(*rows))
    row.refresh_from_db()
    assert Job.objects.filter(task=quote_imports.CHECK_TASK).exists()
    if row.status == "checking":  # no worker runs in tests: its work is done here
        quote_imports.check_import(pk=row.pk)
    quote_imports.apply_import(pk=row.pk, by=s.procurement)
    row.refresh_from_db()
    assert Job.objects.filter(task=quote_imports.APPLY_TASK).exists()
    quote_imports.write_import(pk=row.pk)
    row.refresh_from_db()
    assert (row.status, row.quote.lines.count()) == ("applied", 701)


def test_queries_of_recording_do_not_grow_with_the_lines(s, django_assert_max_num_queries):
    steps = [{"from_quantity": 1, "to_quantity": None, "unit_price": "5"}]
    parts = [b.line(None, rfq_line=None, description=f"P{k}", breaks=steps) for k in range(600)]
    rfq = b.rfq(s)
    # SQLite takes so few values at once that rows go in by some dozens
    with django_assert_max_num_queries(60):
        quote = b.quote(s, rfq, lines=[b.line(), *parts])
    with django_assert_max_num_queries(6):
        assert (
            compute_hash(Quote.objects.select_related("warranty").get(pk=quote.pk))
            == quote.content_hash
        )


def test_told_facts_change_the_hash_only_when_told(s):
    rfq = b.rfq(s)
    plain = b.quote(s, rfq)
    bundled = b.quote(s, rfq, lines=[b.line(bundle="Rack A")])
    again = b.quote(s, rfq)
    assert plain.content_hash == again.content_hash != bundled.content_hash


def test_an_extension_keeps_what_was_told(s):
    rfq = b.rfq(s)
    quote = b.quote(
        s, rfq, partial_delivery=True, lines=[b.line(), b.line(alternative_to=1, bundle="B")]
    )
    longer = quotes.extend_quote(
        quote_id=quote.pk, valid_until=today() + timedelta(days=90), by=s.procurement
    )
    assert longer.partial_delivery is True
    assert longer.lines.get(position=2).alternative_to == 1
    assert longer.totals() == quote.totals()


def test_by_page_and_by_api(s, client):
    rfq = b.rfq(s)
    client.force_login(s.procurement)
    upload = SimpleUploadedFile("quote.csv", table(CARD | HEAD).encode())
    answer = client.post(
        reverse("quote-import", args=[rfq.pk]),
        {"vendor": s.vendor.pk, "file": upload, "months": 36, "start_trigger": "acceptance"},
        follow=True,
    )
    assert "becomes a line" in answer.text
    row = QuoteImport.objects.get()
    answer = client.post(
        reverse("quote-import-apply", args=[row.pk]), {"version": row.version}, follow=True
    )
    assert "The quote is recorded" in answer.text

    api = APIClient()
    api.force_authenticate(s.procurement)
    base = "/api/v1/procurement"
    made = api.post(
        f"{base}/rfqs/{rfq.pk}/quote-imports/",
        {"vendor": s.vendor.pk, "file": SimpleUploadedFile("q.csv", table(CARD | HEAD).encode())},
        format="multipart",
    )
    assert made.status_code == 201, made.data
    assert made.data["counts"] == {"add": 1, "refused": 0}
    assert made.data["rows"][0]["fate"] == "add"
    done = api.post(f"{base}/quote-imports/{made.data['id']}/apply/")
    assert Quote.objects.get(pk=done.data["quote"]).revision == 2
    again = api.post(f"{base}/quote-imports/{made.data['id']}/apply/")
    assert again.status_code == 409
    text = b"".join(
        api.get(f"{base}/rfqs/{rfq.pk}/quote-template.csv", {"language": "zh"}).streaming_content
    )
    assert "阶梯价" in text.decode()


@pytest.mark.parametrize(
    ("language", "column"), [(0, "Unit price without tax"), (1, "不含税单价"), (None, "unit_price")]
)
def test_a_refused_table_is_corrected_on_its_page_which_names_columns_as_the_sheet_does(
    s, client, language, column
):
    told = CARD | HEAD
    row = start(
        s, b.rfq(s, sealed=False), table(told | {"unit_price": "not told"}, language=language)
    )
    client.force_login(s.procurement)
    page = client.get(row.get_absolute_url()).text
    assert f"{column}: not told" in page or f"{column} " in page
    assert ("unit_price" in page) == (language is None)
    address = reverse("quote-import-again", args=[row.pk])
    assert address in page
    assert client.post(address).status_code == 422
    corrected = SimpleUploadedFile("again.csv", table(told, language=language).encode())
    made = QuoteImport.objects.get(
        pk=int(client.post(address, {"file": corrected}).url.rstrip("/").rpartition("/")[2])
    )
    assert (made.vendor, made.head, made.warranty) == (row.vendor, row.head, row.warranty)
    assert fates(made) == ["add"]
    row.refresh_from_db()
    assert row.status == "discarded"
    assert address not in client.get(row.get_absolute_url()).text


def test_putting_it_aside(s, client):
    row = start(s, b.rfq(s), table(CARD | HEAD))
    client.force_login(s.procurement)
    client.post(reverse("quote-import-discard", args=[row.pk]))
    row.refresh_from_db()
    assert row.status == "discarded"
    with pytest.raises(InvalidTransition):
        quote_imports.apply_import(pk=row.pk, by=s.procurement)
