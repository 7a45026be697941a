"""The product's settings with the kind of work that the live tests promise."""

from cowork.settings import *  # noqa: F403
from cowork.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.live.marking"]
