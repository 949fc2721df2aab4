"""With Redis, the database or the disk gone: what works goes on, what cannot be done says so and loses nothing."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import structlog
from django.conf import settings as product
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
)
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from psycopg.errors import lookup

from core import background, files, jobs, outages, redis_away
from core.background import WORKER_SILENCE, stage_of
from core.errors import StoreAway, StoreBusy, StoreFull
from core.files import store_bytes, store_upload
from core.models import Heartbeat, Job, Organisation, StoredFile
from core.storage import WholeFileStorage
from tests.factories import UserFactory

NOWHERE = "unix:///nowhere/redis.sock"
FULL = OperationalError("database or disk is full")


@pytest.fixture
def redis_gone(settings, monkeypatch):
    """The product's own cache settings, with a Redis that nobody can reach."""
    own = {**settings_of_the_product(), "LOCATION": NOWHERE}
    settings.REDIS_URL = NOWHERE
    settings.CACHES = {"default": own}
    monkeypatch.setattr(background, "_worker", (float("-inf"), False))
    redis_away.forget()
    caches["default"].clear()
    redis_away.forget()
    yield
    redis_away.forget()


def settings_of_the_product():
    from config import settings as written

    return written.CACHES["default"]


@pytest.fixture
def person(db):
    return UserFactory()


def test_the_cache_forgets_no_error_and_says_once_that_redis_is_away(redis_gone):
    cache = caches["default"]
    with structlog.testing.capture_logs() as logs:
        assert cache.get("a") is None
        assert cache.add("a", 1)
        assert not cache.add("a", 2)
        cache.set_many({"b": 2})
        assert cache.get_many(["a", "b"]) == {"a": 1, "b": 2}
        assert cache.incr("a") == 2
        assert cache.has_key("b")
        assert cache.touch("b")
        assert cache.delete("a")
        cache.delete_many(["b"])
        assert cache.get("b") is None
        cache.clear()
    assert [(entry["event"], entry["call"]) for entry in logs] == [("redis.away", "cache.get")]
    assert logs[0]["log_level"] == "warning"


def test_what_one_finds_out_of_redis_all_others_know(
    redis_gone, broker_away, person, django_capture_on_commit_callbacks, monkeypatch
):
    assert caches["default"].get("a") is None
    with structlog.testing.capture_logs() as logs, django_capture_on_commit_callbacks(execute=True):
        job = jobs.submit("some.task", 1, key="key", owner=person)
    assert broker_away == []  # nobody waits for a second time-out
    assert [entry["event"] for entry in logs] == ["task.left_to_the_sweeper"]
    assert stage_of(job) is not None
    monkeypatch.setattr(redis_away.redis.Redis, "ping", lambda self: True)
    assert redis_away.probe() is None  # /readyz found it back
    assert not redis_away.is_away()


def test_log_in_pages_and_api_work_without_redis(redis_gone, client, person, organisation):
    person.set_password("long enough to pass")
    person.save()
    form = {"login": person.email, "password": "long enough to pass"}
    assert client.post("/accounts/login/", form).status_code == 302
    for path in ("/", "/requests/", "/jobs/", "/api/v1/me/", "/api/v1/requests/"):
        assert client.get(path).status_code == 200, path


def test_log_ins_are_still_limited_without_redis(redis_gone, client, person):
    form = {"login": person.email, "password": "wrong"}
    texts = [client.post("/accounts/login/", form).content.decode() for _ in range(7)]
    assert "Too many failed" not in texts[0]
    assert "Too many failed" in texts[-1]


@pytest.fixture
def broker_away(monkeypatch):
    """A broker that takes no message; `tried` counts."""
    tried = []

    class Task:
        name = "some.task"

        def apply_async(self, args, **options):
            tried.append(args)
            raise BrokerError("Error 2 connecting to /nowhere/redis.sock")

    monkeypatch.setattr(jobs, "import_string", lambda path: Task())
    redis_away.forget()
    return tried


def test_work_is_kept_while_the_broker_is_away(
    redis_gone, broker_away, person, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        kept = [jobs.submit("some.task", 1, key=f"key-{n}", owner=person) for n in range(3)]
    assert len(broker_away) == 1  # the others do not wait for the same time-out
    assert {Job.objects.get(pk=job.pk).status for job in kept} == {Job.Status.QUEUED}
    stage = stage_of(kept[0])
    assert stage is not None
    assert "Nothing is lost" in stage.render()


def test_the_waiting_person_reads_it_in_their_language(redis_gone, client, person):
    person.language = "zh-hans"
    person.save()
    job = Job.objects.create(task="x", key="k", owner=person)
    client.force_login(person)
    assert "后台服务" in client.get(f"/jobs/{job.pk}/").content.decode()


def test_a_job_that_is_served_says_nothing_of_it(monkeypatch, person):
    monkeypatch.setattr(background, "_worker", (float("-inf"), False))
    monkeypatch.setattr(redis_away, "answers", lambda: True)
    Heartbeat.objects.create(name="worker", at=timezone.now())
    assert stage_of(Job.objects.create(task="x", key="k", owner=person)) is None
    monkeypatch.setattr(background, "_worker", (float("-inf"), False))
    Heartbeat.objects.update(at=timezone.now() - 2 * WORKER_SILENCE)
    assert stage_of(Job.objects.get(key="k")) is not None


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (FULL, StoreFull),
        (OperationalError("disk I/O error"), StoreFull),
        (OperationalError("attempt to write a readonly database"), StoreFull),
        (OperationalError('could not extend file "base/1": No space left on device'), StoreFull),
        (DatabaseError('could not write to file "pg_wal": No space left on device'), StoreFull),
        (OSError(errno.ENOSPC, "No space left on device"), StoreFull),
        (OSError(errno.EROFS, "Read-only file system"), StoreFull),
        (OperationalError("database is locked"), StoreBusy),
        (OperationalError("canceling statement due to lock timeout"), StoreBusy),
        (OperationalError("connection failed: Connection refused"), StoreAway),
        (InterfaceError("connection already closed"), StoreAway),
        (OperationalError("server closed the connection unexpectedly"), StoreAway),
        (OSError(errno.ENOENT, "No such file"), None),
        (OperationalError("no such table: x"), None),
        (ValueError("x"), None),
        (None, None),
    ],
)
def test_what_an_error_means_to_a_person(error, refusal):
    found = outages.behind(error)
    assert found is None if refusal is None else type(found) is refusal


def of_postgres(text, state, kind=OperationalError):
    """As Django raises it: the driver's error, with its code, is the cause."""
    error = kind(text)
    error.__cause__ = lookup(state)(text)
    return error


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (of_postgres("无法扩展文件: 设备上没有空间", "53100"), StoreFull),
        (of_postgres("检测到死锁", "40P01"), StoreBusy),
        (of_postgres("无法在关系上获得锁", "55P03"), StoreBusy),
        (of_postgres("对不起, 已经有太多的客户", "53300"), StoreAway),
        (of_postgres("由于管理员命令, 联接被终止", "57P01"), StoreAway),
        (of_postgres("数据库系统启动中", "57P03"), StoreAway),
        (DatabaseError('could not extend file "base/1/2": Disk quota exceeded'), StoreFull),
        (of_postgres("错误: 语法错误", "42601", ProgrammingError), None),
        (of_postgres("由于用户请求而正在取消查询", "57014"), None),
    ],
)
def test_postgres_is_understood_in_every_language_by_its_codes(error, refusal):
    found = outages.behind(error)
    assert found is None if refusal is None else type(found) is refusal


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("text", ["设备上没有空间", 'could not extend file "base/1/2"'])
def test_a_full_disk_under_postgres_is_said_in_page_and_api(client, person, monkeypatch, text):
    def filling(*args, **kwargs):
        with connection.cursor() as cursor:
            cursor.execute(
                f"DO $$ BEGIN RAISE EXCEPTION USING MESSAGE = '{text}', ERRCODE = '53100'; END $$"
            )

    client.force_login(person)
    monkeypatch.setattr("core.views.visible_jobs", filling)
    monkeypatch.setattr("core.api.filtered_audit", filling)
    page, api = client.get("/jobs/"), client.get("/api/v1/audit/")
    assert (page.status_code, page["Retry-After"]) == (507, "300")
    assert "disk of this installation is full" in page.content.decode()
    assert (api.status_code, api.json()["code"]) == (507, "storage_full")


def test_an_error_that_hides_its_context_hides_it_from_here_too():
    def failing(*, hides):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            if hides:
                raise ValueError("no such thing") from None
            raise ValueError("on the way")  # noqa: B904

    with pytest.raises(ValueError, match="no such thing") as hidden:
        failing(hides=True)
    with pytest.raises(ValueError, match="on the way") as shown:
        failing(hides=False)
    assert outages.behind(hidden.value) is None
    assert isinstance(outages.behind(shown.value), StoreFull)


def test_the_cause_counts():
    error = RuntimeError("the PDF could not be made")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert isinstance(outages.behind(error), StoreFull)


def refuse(error):
    def refusing(*args, **kwargs):
        raise error

    return refusing


@pytest.mark.parametrize(("language", "said"), [("en", "disk"), ("zh-hans", "磁盘")])
def test_a_full_disk_is_said_in_a_page_a_fragment_and_the_api(
    client, person, monkeypatch, language, said
):
    person.language = language
    person.save()
    client.force_login(person)
    monkeypatch.setattr("core.views.visible_jobs", refuse(FULL))
    monkeypatch.setattr("core.api.filtered_audit", refuse(FULL))
    page = client.get("/jobs/")
    fragment = client.get("/jobs/", headers={"HX-Request": "true"})
    api = client.get("/api/v1/audit/")
    for answer in (page, fragment, api):
        assert (answer.status_code, answer["Retry-After"]) == (507, "300")
        text = answer.json()["detail"] if answer is api else answer.content.decode()
        assert said in text
    assert "<html" in page.content.decode()
    assert "<html" not in fragment.content.decode()
    assert api.json()["code"] == "storage_full"


def test_a_store_that_fails_before_any_view_is_said_too(client, person, monkeypatch):
    """The session, the user and the organisation are read by middlewares."""
    client.raise_request_exception = False
    error = OperationalError("connection failed: Connection refused")
    monkeypatch.setattr(Organisation.objects, "values_list", refuse(error))
    page = client.get("/accounts/login/")
    assert (page.status_code, page["Retry-After"]) == (503, "30")
    assert "database does not answer" in page.content.decode()
    assert client.get("/api/v1/me/").json()["code"] == "database_away"


def test_a_defect_is_still_a_defect(client, monkeypatch, db):
    client.raise_request_exception = False
    monkeypatch.setattr(Organisation.objects, "values_list", refuse(ValueError("a defect")))
    assert client.get("/accounts/login/").status_code == 500


def kept_files(settings):
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def test_half_a_file_is_not_kept(settings, person, monkeypatch):
    settings.STORAGES = {**product.STORAGES}

    class Filling(ContentFile):
        def chunks(self, chunk_size=None):
            yield b"the first half"
            if self.read_once:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.read_once = True

        read_once = False

    with pytest.raises(OSError, match="No space left"):
        store_upload(Filling(b"the first half and more", name="log.txt"), by=person)
    assert kept_files(settings) == []
    assert not StoredFile.objects.exists()


def test_a_file_whose_row_cannot_be_written_is_not_kept(settings, db, monkeypatch):
    monkeypatch.setattr(StoredFile, "save", refuse(FULL))
    with pytest.raises(OperationalError):
        store_bytes(b"%PDF-", name="a.pdf", content_type="application/pdf")
    assert kept_files(settings) == []


def test_files_are_whole_in_the_product():
    from config import settings as written

    assert isinstance(files.StoredFile._meta.get_field("file").storage, WholeFileStorage)
    assert written.STORAGES["default"]["BACKEND"] == "core.storage.WholeFileStorage"


def test_a_job_on_a_full_disk_says_so(person):
    job = Job.objects.create(task="x", key="k", owner=person)

    @jobs.job_task
    def fill(job, progress):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fill(str(job.pk))
    job.refresh_from_db()
    assert job.status == Job.Status.FAILED
    assert "full" in job.error["template"]


LISTENER = """
import os, socket, sys, signal
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
signal.pause()
"""


def test_a_service_whose_socket_was_deleted_is_started_again(tmp_path):
    socket = tmp_path / "deep" / "s.sock"
    keeper = subprocess.Popen(
        ["script/keep", "--socket", str(socket), sys.executable, "-c", LISTENER, str(socket)],
        cwd=product.BASE_DIR,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(2):  # it is made, deleted, and made again
            deadline = time.monotonic() + 60
            while not socket.exists():
                assert time.monotonic() < deadline, "the socket is not there"
                time.sleep(0.1)
            time.sleep(2.5)  # the keeper looks every two seconds
            socket.unlink()
    finally:
        os.killpg(keeper.pid, signal.SIGKILL)
        keeper.wait()
