"""The product's settings over a data folder that is gone after the tests.

A given COWORK_DATA_DIR is used as it is. Each process of pytest-xdist has a folder of its own, as
some tests leave marks in it.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def _data_dir() -> Path:
    given = os.environ.get("COWORK_DATA_DIR")
    folder = Path(given or tempfile.mkdtemp(prefix="cowork-tests-"))
    if not given:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return folder / worker if worker else folder


os.environ["COWORK_DATA_DIR"] = str(_data_dir())

from cowork.settings import *  # noqa: E402, F403 - the folder has to be named first
from cowork.settings import COWORK_DATA_DIR, DATABASES  # noqa: E402

COWORK_DATA_DIR.joinpath("static").mkdir(exist_ok=True)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick, not safe

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file and not memory: threads and processes meet in it as they do in production.
    DATABASES["default"]["TEST"] = {"NAME": str(COWORK_DATA_DIR / "tests.sqlite3")}
