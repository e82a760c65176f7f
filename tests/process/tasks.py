"""Tasks that only workers with `tests.process.settings` know.

A gate is the path of a file: tasks that hold wait until it is there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import psutil
from django.db import connection, transaction

from django_tenantqueue import Permanent, Postpone, Retry, Unique, current_job, task
from django_tenantqueue.operations.control import cancel
from tests.testapp.models import Effect
from tests.testapp.tasks import begin_interval, end_interval, noop, spin

HOLDS_FROM = 200
HOLD_SECONDS = 60.0


@task
def hold(gate: str) -> str:
    """Wait for the gate."""
    note_start(gate)
    for _ in looks_at(gate):
        time.sleep(0.005)
    return "through the gate"


@task
def read_environment() -> list[list[str]]:
    """Return the names of the variables of this process, and of a program that it starts."""
    program = [sys.executable, "-c", "import os; print(*os.environ)"]
    names = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    return [list(os.environ), names.split()]


@task
def try_to_write(*places: str) -> tuple[int, int, list[str]]:
    """Return the parent's process id, the user, and the places that cannot be written to."""
    refused = []
    for place in ("/", "/tmp", "/var/tmp", *places):
        try:
            Path(place, f"written.{os.getpid()}").touch()
        except OSError:
            refused.append(place)
    return os.getppid(), os.getuid(), refused


@task
def leave_orphan() -> None:
    """Start a program whose parent ends before it."""
    subprocess.run(["sh", "-c", "sleep 2 & sleep 2 &"], check=True)


@task(backoff=0.05, backoff_max=0.05)
def cancel_itself(how: str) -> None:
    """Fail, or postpone the job, before its worker has seen that it shall be cancelled."""
    cancel([current_job().id])
    if how == "postpone":
        raise Postpone("not now", after=0.05)
    raise ValueError(how)


@task
def look(gate: str) -> None:
    """Fail while the gate is shut."""
    if not Path(gate).exists():
        raise ConnectionRefusedError("the gate is shut")


@task
async def postpone(gate: str) -> None:
    """Postpone the job while the gate is shut."""
    note_start(gate)
    if not Path(gate).exists():
        raise Postpone("the gate is shut", after=1)


@task
async def leave_open(path: str) -> None:
    """Leave an asynchronous generator open, which writes a file when it is closed."""

    async def generate():
        try:
            yield
        finally:
            Path(path).touch()

    leave_open.generator = generate()
    await anext(leave_open.generator)


@task
def hold_and_look(gate: str) -> None:
    """Wait for the gate, and look whether the job was cancelled."""
    note_start(gate)
    for look in looks_at(gate):
        current_job().progress(look)
        time.sleep(0.005)


@task
async def async_hold(gate: str) -> str:
    """Wait for the gate as a coroutine."""
    note_start(gate)
    for _ in looks_at(gate):
        await asyncio.sleep(0.005)
    return "through the gate"


@task
def work_or_hold(gate: str, number: int) -> None:
    """Do nothing, but wait for the gate from the 200th call on."""
    if number >= HOLDS_FROM:
        hold.func(gate)


@task
def work_until(key: str, attempt: int, after: float, milliseconds: float = 0.0) -> None:
    """Write the interval of a run; ask for another attempt until this one."""
    row_id = begin_interval(key)
    time.sleep(milliseconds / 1000)
    end_interval(row_id)
    if current_job().attempt < attempt:
        raise Retry(after=after)


@task(atomic=True)
def write_slowly(note: str, milliseconds: float) -> None:
    """Write an effect in the transaction that stores the success, which stays open for a while."""
    Effect.objects.create(job_id=current_job().id, note=note)
    time.sleep(milliseconds / 1000)


@task(atomic=True)
def write_and_hold(gate: str) -> None:
    """Write an effect and wait for the gate, in the transaction that stores the success."""
    Effect.objects.create(job_id=current_job().id, note="held")
    hold.func(gate)


@task(atomic=True)
def write_after_commit(error: bool = False) -> None:
    """Enqueue a job, and note after the commit how the own job is seen then."""
    job_id = current_job().id
    noop.using(tenant="made by an atomic task").delay()
    transaction.on_commit(lambda: note_state(job_id))
    if error:
        raise Permanent("undo it")


def note_start(gate: str) -> None:
    """Leave a file that says which attempt has started; the tests look for it."""
    job = current_job()
    Path(f"{gate}.{job.id}.{job.attempt}").touch()


def looks_at(gate: str):
    """Yield numbers until the gate is there."""
    end = time.monotonic() + HOLD_SECONDS
    look = 0
    while not Path(gate).exists():
        if time.monotonic() > end:
            raise TimeoutError(f"nobody opened {gate}")
        look += 1
        yield look


def note_state(job_id: int) -> None:
    """Write an effect that holds the job's state as committed."""
    assert not connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO testapp_effect (job_id, note) "
            "SELECT id, 'seen after the commit: ' || state FROM tenantqueue_job WHERE id = %s",
            [job_id],
        )


@task
def refuse_to_stop(gate: str, seconds: float = 60.0) -> None:
    """Go on whatever is raised in this thread."""
    note_start(gate)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
        except Exception:  # noqa: BLE001 - that is the point of it
            continue


@task
async def block_the_loop(seconds: float) -> None:
    """Compute in a coroutine, giving way to no other."""
    spin.func(seconds)


@task
async def block_alone(gate: str) -> list[int]:
    """Wait for the gate, block the loop, and when begun again return the processes still there."""
    earlier = [int(path.suffix[1:]) for path in Path(gate).parent.glob("process.*")]
    Path(gate).with_name(f"process.{os.getpid()}").touch()
    alive = [pid for pid in earlier if psutil.pid_exists(pid)]
    note_start(gate)
    for _ in looks_at(gate):
        await asyncio.sleep(0.005)
    if not earlier:
        spin.func(HOLD_SECONDS)
    return alive


@task
def die(gate: str) -> None:
    """Kill the process that runs this."""
    note_start(gate)
    os.kill(os.getpid(), signal.SIGKILL)


@task
def exit_quietly() -> None:
    """End the process that runs this, as if it had been told to end."""
    os._exit(0)


_leaked: list[bytearray] = []


@task
def leak(megabytes: int) -> int:
    """Keep so much memory for ever; return the process's id."""
    _leaked.append(bytearray(megabytes << 20))
    return os.getpid()


@task
def swallow(gate: str, most_megabytes: int = 4000) -> None:
    """Take memory until the process is killed, or so much."""
    note_start(gate)
    for _ in range(most_megabytes // 10):
        leak.func(10)
        time.sleep(0.002)


@task
def process_id() -> int:
    """Return the id of the process that runs this."""
    return os.getpid()


@task(unique=Unique("until_and_while_executing", ttl=600))
def look_at_updates(key: str) -> int:
    """Count the updates that are there, for a while, and return how many there were at first."""
    row = begin_interval(key)
    seen = Effect.objects.filter(note=key).count()
    time.sleep(0.003)
    end_interval(row)
    return seen


@task(unique=Unique("until_executed"))
def hold_alone(gate: str) -> str:
    """Wait for the gate, once for each gate at a time."""
    return hold(gate)


@task
async def stop_the_loop() -> None:
    """Stop the event loop, and wait in it."""
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


@task
async def exit_from_the_loop() -> None:
    """Have the event loop itself meet SystemExit, and wait in it."""
    asyncio.get_running_loop().call_soon(sys.exit)
    await asyncio.sleep(0.01)


def fork() -> None:
    """Copy this process; the warning that it has several threads is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        os.fork()


@task
def fork_and_return() -> None:
    """Write an effect, and go on in two processes."""
    Effect.objects.create(job_id=current_job().id, note="once")
    fork()


@task
async def fork_and_return_from_a_coroutine() -> None:
    """Write an effect, and go on in two processes, which wait in the event loop."""
    await Effect.objects.acreate(job_id=current_job().id, note="once")
    fork()
    await asyncio.sleep(0.05)


@task(atomic=True)
def fork_in_a_transaction() -> None:
    """Write an effect, and go on in two processes, where success is to be committed."""
    Effect.objects.create(job_id=current_job().id, note="once")
    fork()


@task
def terminate_a_fork() -> str:
    """End a process that the multiprocessing module has forked; return how it ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
    process.terminate()
    process.join(5)
    code, _ = process.exitcode, process.kill()
    return "still there" if code is None else f"signal {-code}"


@task
async def fork_and_wait_in_a_coroutine() -> None:
    """Write an effect, and have both processes come back to the event loop for good."""
    await Effect.objects.acreate(job_id=current_job().id, note="once")
    own, there = os.getpid(), asyncio.get_running_loop().create_future()
    fork()
    if os.getpid() != own:
        await there
    await asyncio.sleep(0.05)


@task
def tick(directory: str, seconds: float) -> str:
    """Write the time to a file of the job every 5 ms, as evidence that does not pass a database."""
    job, end = current_job(), time.monotonic() + seconds
    run = f"{os.getpid()}-{job.attempt}-{time.monotonic_ns()}"
    with (Path(directory) / str(job.id)).open("a", buffering=1) as file:
        while (now := time.monotonic()) < end:
            file.write(f"{run} {now}\n")
            time.sleep(0.005)
    return TICKED


TICKED = "ticked to its end"
