"""Many libraries: append and ask from anywhere, consolidate in workers, keep all in an object store.

In: names of libraries, turns, questions. Out: snapshots, heads. Promise: what `append` returned from is in
the store, and is in its library once; a head is replaced only by one that was made from it.

Which libraries are due PostgreSQL knows, with Procrastinate. It holds names and times alone, and can be lost.
One job a library: its queueing lock lets one wait at most, its lock lets one run at most. Neither is a fence:
a worker that was stopped may go on beside the next one, and only the store's If-Match decides.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.worker import Worker
from psycopg import sql

from infinimem.errors import FleetError, LibraryError, ModelError, NotALibrary, UsageError
from infinimem.fleet import home as store
from infinimem.fleet.home import SWEEP, Head, Home, Moved, Places, checked, ulid
from infinimem.llm.base import LLM
from infinimem.llm.connect import connect
from infinimem.llm.replies import Cached
from infinimem.log import log
from infinimem.memory import Memory, open_memory
from infinimem.model import Turn
from infinimem.operations.forget.forget import Forgotten, Residue
from infinimem.settings import SETTINGS, configuration
from infinimem.store import disk
from infinimem.store.evidence import check_turn
from infinimem.store.files import MAX_OWNED, Files
from infinimem.store.folders import explained
from infinimem.store.library import init
from infinimem.store.lines import marks_of
from infinimem.user_folders import user_folder

QUEUE, SERVE, REQUEUE = "fleet", "serve", "requeue"
LEASE = 30.0
"""Seconds without a sign of life after which what a worker had is given to another."""
LONGEST_WAIT = 600
"""Seconds between two tries of a library whose model does not answer."""
EVERY, KEPT_HOURS = "*/10 * * * *", 24
"""When the store is looked through for inboxes that nobody said are due; how long failures are counted."""
_STATUS = """
SELECT count(*) FILTER (WHERE status = 'todo') AS due,
       count(*) FILTER (WHERE status = 'todo' AND scheduled_at > now()) AS waiting,
       count(*) FILTER (WHERE status = 'doing') AS running,
       count(DISTINCT lock) FILTER (WHERE status = 'failed') AS failed,
       coalesce(extract(epoch FROM now() - min(event.at) FILTER (
           WHERE status = 'todo' AND coalesce(scheduled_at, now()) <= now())), 0)::float AS oldest_seconds,
       (SELECT count(*) FROM procrastinate_workers) AS workers
FROM procrastinate_jobs AS job
LEFT JOIN LATERAL (SELECT min(at) AS at FROM procrastinate_events WHERE job_id = job.id) AS event ON true
WHERE task_name = 'serve'
"""


async def _to_its_end(work: Awaitable[Any], stop: Callable[[], object] | None = None) -> None:
    """Await some work, and once cancelled its end: Python 3.11 loses a cancellation as a pool connects."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.sleep(0)  # a worker forgets what it was told before its first step
        (stop or task.cancel)()
        await asyncio.wait([task])
        raise


async def _tuned(connection: psycopg.AsyncConnection[Any]) -> None:
    """For a worker: each statement is a transaction. None waits for the disk, as what is lost is done again;
    none sorts, as PostgreSQL would put all that is due in order before it has statistics."""
    await connection.set_autocommit(True)
    await connection.execute("SET synchronous_commit = off; SET enable_sort = off")


def _job(app: App, library: str, after: int = 0) -> Any:
    when: Any = {"schedule_in": {"seconds": after}} if after else {}
    return app.configure_task(SERVE, queue=QUEUE, lock=library, queueing_lock=library, **when)


async def _reap(app: App, lease: float) -> None:
    """Make due again what a silent worker had, by a new job: it may only be late, and ends the old one."""
    manager = app.job_manager
    while True:
        with suppress(ConnectorException):  # at the next look
            for job in await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=lease):
                log.warning("%s is taken over from a worker that gives no sign of life", job.lock)
                if job.task_name == SERVE:
                    with suppress(AlreadyEnqueued):
                        await _job(app, str(job.lock)).defer_async(library=job.lock, wait=1)
                with suppress(ConnectorException):  # another one was first
                    await manager.finish_job(job, Status.FAILED, delete_job=True)
        await asyncio.sleep(lease / 3)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, ConnectorException, OSError) as error:
        why = " ".join(str(error.__cause__ or error).split())[:200]
        raise FleetError(f"the database cannot be used ({why}); check its URL and that it runs") from error


# ── many libraries ────────────────────────────────────────────────────────────────────────────────────


BATCH, BATCH_BYTES = 200, 8 << 20
"""Inbox objects, and bytes of them, that one turn of a worker takes: then other libraries have theirs. The
header of a head names no more of them: a zip's comment is shorter than 64 KiB."""
TRIES = 20
"""How often a head is made anew because another one was first."""
T = TypeVar("T")


class Fleet:
    """Libraries by name, in one store; nothing is connected before it is used.

    Args:
        url: of its place in an object store, s3://BUCKET/PREFIX (else UsageError); keys come from AWS_….
        database: URL of a PostgreSQL database of its own.
        cache: folder for what was fetched; None takes infinimem-fleet beside this user's other caches.
        model: its name, or a client; None takes the environment's and the user's, never a library's.
    """

    def __init__(
        self, url: str, *, database: str, cache: str | Path | None = None, model: str | LLM | None = None
    ) -> None:
        if model is None or isinstance(model, str):
            model = connect(model, configuration().settings.llm)
        if cache is None and (beside := user_folder("cache")):
            cache = beside.with_name("infinimem-fleet")  # `forget` deletes the other one whole
        if cache is None:
            raise LibraryError("there is no home folder for a cache; name a folder")
        self.home, self.database, self._llm = Home(url), database, model
        self._places = Places(Path(cache))
        self._app: App | None = None

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *error: object) -> None:
        if self._app is not None:
            self._app.close()
            self._app = None
        self._places.close()

    def init(self) -> None:
        """Make the database's tables, where they are missing, and see that the bucket is there; FleetError if
        one cannot be used, or the database is not this fleet's."""
        self.home.look("any")
        with _told(), psycopg.connect(self.database, connect_timeout=10) as connection:
            if not self._owned(connection):
                schema = App(connector=SyncPsycopgConnector()).schema_manager.get_schema()
                connection.execute(schema.encode())
                owner = sql.SQL("COMMENT ON TABLE procrastinate_jobs IS {}")
                connection.execute(owner.format(self.home.url))
                # who takes a job asks whether another of its lock runs: of all jobs, without this
                connection.execute("CREATE INDEX infinimem_fleet_lock ON procrastinate_jobs (lock)")

    def _owned(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether the tables are there; whose they are is their comment."""
        table, url = "to_regclass('procrastinate_jobs')", self.home.url
        found = connection.execute(f"SELECT {table}, obj_description({table}, 'pg_class')").fetchone()
        there, owner = found or (None, None)
        if there and owner != url:
            whose = f"belongs to {owner}, not to {url}" if owner else "has another program's jobs"
            raise FleetError(f"the database {whose}; name one for this fleet alone")
        return bool(there)

    def _opened(self) -> Any:
        if self._app is None:
            with _told():
                with psycopg.connect(self.database, connect_timeout=10) as connection:
                    if not self._owned(connection):
                        raise FleetError("the database is not a fleet's; run: infinimem fleet init")
                app = App(
                    connector=SyncPsycopgConnector(conninfo=self.database, min_size=1, max_size=4, timeout=10)
                )
                app.open()
            self._app = app
        return self._app

    def _mark(self, library: str) -> None:
        """Make a library due; that it is already is as good. FleetError if the database cannot be used."""
        with _told(), suppress(AlreadyEnqueued):
            _job(self._opened(), library).defer(library=library, wait=1)

    def append(self, library: str, turns: Iterable[Turn], key: str | None = None) -> bool:
        """Keep what was said, durably, and make the library due; calls with the same `key` count once.
        Returns whether the database took notice. UsageError if the name or a turn is none,
        FleetError if the store cannot be reached."""
        checked(library)
        name, said = ulid(), list[Turn]()
        for number, turn in enumerate(turns):
            check_turn(turn)
            # one that is known by session and number gets only a given key
            known = turn.key or (not key and marks_of(None, turn.session, turn.turn))
            said.append(turn if known else replace(turn, key=f"{key or name}.{number}"))
        data = to_lines(said)
        if len(data) > store.MAX_OBJECT:
            raise FleetError(f"these turns have more than {store.MAX_OBJECT >> 20} MiB; append them in parts")
        self.home.append(library, name, data)
        try:
            self._mark(library)
        except FleetError as error:
            log.warning("%s is due, and the database does not know yet: %s", library, error)
            return False
        return True

    @contextmanager
    def open(self, library: str) -> Iterator[Memory]:
        """Give the library as its head is now, to ask and search. LibraryError if there is none or its head
        is refused, FleetError if the store cannot be reached."""

        def newer(known: str) -> Head | None:
            head = self.home.fetch(library, known)
            return head and store.demand(head, library)

        self._places.sweep()
        with self._places.taken(checked(library), newer) as place:
            yield open_memory(place.tree, model=self._llm, read_only=True)

    def forget(self, library: str, **wanted: Any) -> Forgotten:
        """`Memory.forget` for head and inbox, with its arguments; caches lose it after home.KEPT."""

        waits = True
        while waits:  # all that was said is recorded first
            _, waits = self._changed(checked(library), lambda memory: None)
        before = store.demand(self.home.fetch(library), library)
        try:
            done, _ = self._changed(library, lambda memory: memory.forget(**wanted))
            assert done is not None
        finally:
            self.append(library, ())  # what was recorded without a model is drawn from after all
        self.home.drop(library, self.home.look(library).refused, "refused")
        if not before.version:
            return done
        why = f"the store keeps versions, like {before.version}, also of inbox/: delete the old ones there"
        return replace(done, left=(*done.left, Residue(f"{self.home.url}/{library}/head.zip", why)))

    def export(self, library: str, folder: Path) -> None:
        """Write a library to a folder that is new or empty; `import_` brings it back. Errors as of `open`;
        LibraryError also if the folder is neither, or the disk refuses."""
        head = store.demand(self.home.fetch(checked(library)), library)
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise LibraryError(f"{folder} is not empty; name a new folder")
            store.lay_out(head.files, folder)
        Files(folder).stage(store.EXPORTED, head.etag.encode())

    def import_(self, library: str, folder: Path) -> int:
        """Bring a folder in, as a new library or with what was changed in it since `export` wrote it; return
        how many files differ now. LibraryError if it is another library's, or this one changed meanwhile."""

        def attempt() -> int:
            head = self.home.fetch(checked(library))
            assert head is not None
            files = store.folder_files(folder)
            if SETTINGS not in files:
                to_do = f"to make it a library, run: infinimem init {folder}"
                raise NotALibrary(f"{folder} has no {SETTINGS}; {to_do}")
            before = Files(folder).read(store.EXPORTED, MAX_OWNED)
            if head.etag and before != head.etag.encode():
                raise LibraryError(
                    f"there is such a library; only what was exported from it comes back, not {folder}"
                    if before is None
                    else f"the library changed since it was exported to {folder}; export anew, and edit that"
                )
            paths = files.keys() | head.files.keys()
            if changed := sum(files.get(path) != head.files.get(path) for path in paths):
                self.home.commit(library, store.pack(files, ulid(), head.taken), head.etag)
                self.append(library, ())
            return changed

        return _anew(library, attempt)

    def requeue(self) -> int:
        """Make every library due that has something in its inbox, and count them; the database may be new."""
        found = self.home.waiting()
        for library in found:
            self._mark(library)
        return len(found)

    def status(self) -> dict[str, Any]:
        """Count libraries that are due, `waiting` for a next try, running, failed, and workers."""
        with _told():
            found: dict[str, Any] = self._opened().connector.execute_query_one(_STATUS)
            return found

    async def work(self, concurrency: int = 20, lease: float = LEASE, wait: bool = True) -> None:
        """Consolidate what is due, in threads, until cancelled, or with `wait` off until nothing is; a
        database that does not answer is waited for. After `lease` seconds without a sign of life others take
        over."""

        async def sweep() -> None:  # also where nothing is due, what was forgotten elsewhere leaves the cache
            while True:
                await asyncio.to_thread(self._places.sweep)
                await asyncio.sleep(SWEEP)

        sweeping = asyncio.create_task(sweep())
        try:
            with ThreadPoolExecutor(concurrency + 1, "fleet") as threads:
                while not await self._worked(threads, concurrency, lease, wait):
                    await asyncio.sleep(0.5)
        finally:
            sweeping.cancel()

    async def _worked(self, threads: ThreadPoolExecutor, concurrency: int, lease: float, wait: bool) -> bool:
        """Work as long as the database answers; return whether that is all."""
        try:
            await asyncio.to_thread(self._opened)
            most = max(4, concurrency)
            connector = PsycopgConnector(conninfo=self.database, min_size=2, max_size=most, configure=_tuned)
            async with AsyncExitStack() as stack:
                app = App(connector=connector)
                stack.push_async_callback(app.close_async)
                await _to_its_end(app.open_async())
                self._define_tasks(app, threads, periodic=wait)
                stack.callback(asyncio.create_task(_reap(app, lease)).cancel)
                worker: Any = Worker(
                    app,
                    queues=[QUEUE],
                    concurrency=concurrency,
                    wait=wait,
                    delete_jobs=DeleteJobCondition.SUCCESSFUL,
                    install_signal_handlers=False,
                    update_heartbeat_interval=lease / 3,
                    stalled_worker_timeout=lease,
                    fetch_job_polling_interval=min(5.0, lease / 3),
                )
                await _to_its_end(worker.run(), worker.stop)
            return not wait
        except (FleetError, ConnectorException, psycopg.Error, OSError) as error:
            log.warning("the database does not answer, trying again: %s", error)
            return False

    def _define_tasks(self, app: App, threads: ThreadPoolExecutor, periodic: bool) -> None:
        """What jobs of these names do; who only drains what is due looks for nothing else."""

        async def in_thread(call: Callable[..., Any], *args: Any) -> Any:
            return await asyncio.get_running_loop().run_in_executor(threads, call, *args)

        @app.task(name=SERVE, queue=QUEUE)
        async def task(library: str, wait: int) -> None:
            try:
                again, after, wait = await in_thread(self.serve, library), 0, 1
            except (FleetError, ModelError) as error:
                again, after, wait = True, wait, min(2 * wait, LONGEST_WAIT)
                log.warning("%s is tried again in %d s: %s", library, after, error)
            if again:
                with suppress(AlreadyEnqueued):
                    await _job(app, library, after).defer_async(library=library, wait=wait)

        @app.task(name=REQUEUE, queue=QUEUE, lock=f".{REQUEUE}", queueing_lock=f".{REQUEUE}")
        async def look_through(timestamp: int) -> None:
            await app.job_manager.delete_old_jobs(nb_hours=KEPT_HOURS, queue=QUEUE, include_failed=True)
            await in_thread(self.requeue)

        if periodic:
            app.periodic(cron=EVERY)(look_through)

    def serve(self, library: str) -> bool:
        """Consolidate one library and commit; return whether there is more to do. After a FleetError or
        ModelError it may be tried again; LibraryError: a bad head."""
        self._places.sweep()
        return self._changed(
            checked(library), lambda memory: memory.draw() if memory.view.uncited() else None
        )[1]

    def _changed(self, library: str, act: Callable[[Memory], T | None]) -> tuple[T | None, bool]:
        """Record the inbox, act, and commit, anew where another was first; return also whether more waits."""
        llm = Cached(self._llm)

        def attempt() -> tuple[T | None, bool]:
            found, failed, done = self.home.look(library), None, None

            def newer(known: str) -> Head | None:
                if found.etag and found.etag == known:
                    return None
                head = self.home.fetch(library) if found.etag else None
                return head if head and head.etag else self._blank

            with self._places.taken(library, newer) as place, disk.unsynced():
                head, place.head = place.head, Head()
                turns, taken, more = self._inbox(library, head, found.inbox)
                memory = open_memory(place.tree, model=llm)
                new = memory.record(turns) if turns else ()
                try:
                    done = act(memory)
                except ModelError as error:
                    failed = error
                if new or failed or done is not None:
                    data = store.pack(store.folder_files(place.tree), ulid(), taken)
                    head = Head(self.home.commit(library, data, head.etag), taken=taken)
                place.head = head
            if failed:
                raise failed  # the turns are in the head, but not drawn from: their objects stay
            self.home.drop(library, sorted(taken))
            return done, more

        with self._places.scratch() as folder, llm.within(folder):
            return _anew(library, attempt)  # of a library that changed only what it changed is asked again

    def _inbox(self, library: str, head: Head, names: list[str]) -> tuple[list[Turn], frozenset[str], bool]:
        """Turns that are not in the head yet; names of all that are in it afterwards; whether more wait."""
        taken = {name for name in names if name in head.taken}
        fresh = [name for name in names if name not in taken]
        turns: list[Turn] = []
        size = done = 0
        for name in fresh[: max(BATCH - len(taken), 0)]:
            done += 1
            try:
                data = self.home.take(library, name)
                turns += from_lines(data)
            except FileNotFoundError:  # another worker is done with it
                continue
            except (ValueError, LibraryError) as error:
                log.warning("%s: inbox/%s is refused: %s", library, name, error)
                self.home.refuse(library, name)
                continue
            taken.add(name)
            size += len(data)
            if size > BATCH_BYTES:
                break
        return turns, frozenset(taken), done < len(fresh)

    @cached_property
    def _blank(self) -> Head:
        with TemporaryDirectory() as folder:
            init(Path(folder), trust=True)
            return Head(files=store.folder_files(Path(folder)))


open_fleet = Fleet  # as `open_memory` opens one library


def _anew(library: str, attempt: Callable[[], T]) -> T:
    for _ in range(TRIES):
        with suppress(Moved):
            return attempt()
    raise FleetError(f"{library} is being changed all the time; try again")


def to_lines(turns: Iterable[Turn]) -> bytes:
    """The bytes of an inbox object; fields that say nothing are left out."""
    rows = ({name: value for name, value in asdict(turn).items() if value is not None} for turn in turns)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def from_lines(data: bytes) -> list[Turn]:
    """Return the turns of an inbox object that anybody may have written; ValueError says why it is none."""
    turns = []
    try:
        for line in data.decode("ascii").splitlines():
            row = json.loads(line)
            if not isinstance(row, dict) or not all(isinstance(value, str) for value in row.values()):
                raise ValueError("a line that is no turn")
            turns.append(Turn(**row))
            check_turn(turns[-1])
    except (TypeError, RecursionError, UsageError) as error:
        raise ValueError(str(error)) from error
    return turns
