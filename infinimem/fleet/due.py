"""Which libraries are due: PostgreSQL with Procrastinate. It holds names and times alone, and can be lost.

One job a library: its queueing lock lets one wait at most, its lock lets one run at most. Neither is a fence:
a worker that was stopped may go on beside the next one, and only the store's If-Match decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.worker import Worker
from psycopg import sql

from infinimem.errors import FleetError, ModelError
from infinimem.log import log

Serve = Callable[[str], bool]
"""Consolidates a library; whether there is more to do. FleetError and ModelError: to be tried again."""

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


class Due:
    """The database of a fleet; `url` is that of the store that it belongs to."""

    def __init__(self, database: str, url: str) -> None:
        self.database, self._url = database, url
        self._app: App | None = None

    def init(self) -> None:
        """Make the tables, where they are missing; FleetError if the database is not this fleet's."""
        with _told(), psycopg.connect(self.database, connect_timeout=10) as connection:
            if not self._owned(connection):
                schema = App(connector=SyncPsycopgConnector()).schema_manager.get_schema()
                connection.execute(schema.encode())
                owner = sql.SQL("COMMENT ON TABLE procrastinate_jobs IS {}")
                connection.execute(owner.format(self._url))
                # who takes a job asks whether another of its lock runs: of all jobs, without this
                connection.execute("CREATE INDEX infinimem_fleet_lock ON procrastinate_jobs (lock)")

    def _owned(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether the tables are there; whose they are is their comment."""
        table = "to_regclass('procrastinate_jobs')"
        found = connection.execute(f"SELECT {table}, obj_description({table}, 'pg_class')").fetchone()
        there, owner = found or (None, None)
        if there and owner != self._url:
            whose = f"belongs to {owner}, not to {self._url}" if owner else "has another program's jobs"
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

    def close(self) -> None:
        """Give the connections back."""
        if self._app is not None:
            self._app.close()
            self._app = None

    def mark(self, library: str) -> None:
        """Make a library due; that it is already is as good. FleetError if the database cannot be used."""
        with _told(), suppress(AlreadyEnqueued):
            _job(self._opened(), library).defer(library=library, wait=1)

    def status(self) -> dict[str, Any]:
        """Count libraries that are due, `waiting` for a next try, running, failed, and workers."""
        with _told():
            found: dict[str, Any] = self._opened().connector.execute_query_one(_STATUS)
            return found

    async def work(
        self, serve: Serve, requeue: Callable[[], object], concurrency: int, lease: float, wait: bool
    ) -> None:
        """Serve what is due, as `Fleet.work`; a database that does not answer is waited for. `serve` and
        `requeue` are called in threads."""
        with ThreadPoolExecutor(concurrency + 1, "fleet") as threads:
            while True:
                try:
                    await asyncio.to_thread(self._opened)
                    most = max(4, concurrency)
                    connector = PsycopgConnector(
                        conninfo=self.database, min_size=2, max_size=most, configure=_tuned
                    )
                    async with AsyncExitStack() as stack:
                        app = App(connector=connector)
                        stack.push_async_callback(app.close_async)
                        await _to_its_end(app.open_async())
                        _tasks(app, serve, requeue, threads, periodic=wait)
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
                    if not wait:
                        return
                except (FleetError, ConnectorException, psycopg.Error, OSError) as error:
                    log.warning("the database does not answer, trying again: %s", error)
                await asyncio.sleep(0.5)


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


def _tasks(
    app: App, serve: Serve, requeue: Callable[[], object], threads: ThreadPoolExecutor, periodic: bool
) -> None:
    """What jobs of these names do; who only drains what is due looks for nothing else."""

    async def in_thread(call: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(threads, call, *args)

    @app.task(name=SERVE, queue=QUEUE)
    async def task(library: str, wait: int) -> None:
        try:
            again, after, wait = await in_thread(serve, library), 0, 1
        except (FleetError, ModelError) as error:
            again, after, wait = True, wait, min(2 * wait, LONGEST_WAIT)
            log.warning("%s is tried again in %d s: %s", library, after, error)
        if again:
            with suppress(AlreadyEnqueued):
                await _job(app, library, after).defer_async(library=library, wait=wait)

    @app.task(name=REQUEUE, queue=QUEUE, lock=f".{REQUEUE}", queueing_lock=f".{REQUEUE}")
    async def look_through(timestamp: int) -> None:
        await app.job_manager.delete_old_jobs(nb_hours=KEPT_HOURS, queue=QUEUE, include_failed=True)
        await in_thread(requeue)

    if periodic:
        app.periodic(cron=EVERY)(look_through)


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
