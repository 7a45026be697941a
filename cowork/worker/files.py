"""Files of a running installation: its lock, its lasting name, its descriptor (SPEC §16.1)."""

import contextlib
import fcntl
import json
import os
import time
import uuid
from pathlib import Path
from typing import TextIO

PATIENCE = 1.0
DESCRIPTOR = "control-plane-local.json"


class AlreadyRunning(Exception):
    """Another server runs over this data folder."""

    def __init__(self, pid: str) -> None:
        self.pid = pid
        super().__init__(pid)


def make_private(folder: Path) -> None:
    """Keep others out of the folder and of what is in it, now and later."""
    os.umask(0o077)
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            path.chmod(0o700 if path.is_dir() else 0o600)


def lock(path: Path) -> TextIO:
    """Hold a lock as long as this process lives; a killed one's is free. Raises AlreadyRunning."""
    file = path.open("a+")
    # The children of a killed server die with it, but a moment later.
    ends_at = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > ends_at:
                file.seek(0)
                raise AlreadyRunning(file.read().strip()) from None
            time.sleep(0.05)
        else:
            break
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def instance(folder: Path) -> str:
    """The lasting name of what runs over this folder; owners of leases begin with it."""
    path = folder / "instance"
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:12])
    return path.read_text().strip()


def describe(folder: Path, *, url: str, token: str | None) -> None:
    """Tell this user's other programs where the server is and how to call it."""
    path, draft = folder / DESCRIPTOR, folder / f".{DESCRIPTOR}"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"url": url, "token": token, "pid": os.getpid()}, file)
    draft.replace(path)


def forget(folder: Path) -> None:
    (folder / DESCRIPTOR).unlink(missing_ok=True)
