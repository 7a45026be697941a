"""How times are written: relative under seven days, 24 hours, in the reader's zone (DESIGN §2)."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

register = template.Library()


@register.filter
def since(at: datetime, now: datetime) -> str:
    """How long ago, in the largest unit; a date after seven days."""
    passed = now - at
    if passed < timedelta(minutes=1):
        return _("now")
    if passed < timedelta(hours=1):
        return _("%d min") % (passed // timedelta(minutes=1))
    if passed < timedelta(days=1):
        return _("%d h") % (passed // timedelta(hours=1))
    if passed < timedelta(days=7):
        return _("%d d") % passed.days
    return day(at, now)


@register.filter
def ago(at: datetime, now: datetime) -> str:
    """How long ago, as the end of a sentence."""
    passed = now - at
    if passed < timedelta(minutes=1):
        return _("just now")
    return _("%s ago") % since(at, now) if passed < timedelta(days=7) else day(at, now)


@register.filter
def clock(at: datetime, now: datetime) -> str:
    """The time of day; for another day its name."""
    days = (timezone.localtime(now).date() - timezone.localtime(at).date()).days
    if days == 0:
        return timezone.localtime(at).strftime("%H:%M")
    return _("yesterday") if days == 1 else day(at, now)


@register.filter
def day(at: datetime, now: datetime) -> str:
    """The date, with its year where that is not the present one."""
    local = timezone.localtime(at)
    return date_format(local, "j M" if local.year == timezone.localtime(now).year else "j M Y")


@register.filter
def day_line(at: datetime, now: datetime) -> str:
    """The date as the line that begins a day."""
    local, today = timezone.localtime(at), timezone.localtime(now).date()
    written = date_format(local, "j F" if local.year == today.year else "j F Y")
    days = (today - local.date()).days
    if days == 0:
        return _("Today, %s") % written
    return _("Yesterday, %s") % written if days == 1 else written


@register.filter
def hour(at: datetime) -> str:
    """Hours and minutes."""
    return timezone.localtime(at).strftime("%H:%M")


@register.filter
def exact(at: datetime) -> str:
    """The time of day to the millisecond."""
    return timezone.localtime(at).strftime("%H:%M:%S.%f")[:-3]


@register.filter
def stamp(at: datetime) -> str:
    """The time for machines."""
    return timezone.localtime(at).isoformat(timespec="seconds")


@register.filter
def full(at: datetime) -> str:
    """Date and time in full, for a tooltip."""
    return date_format(timezone.localtime(at), "j F Y, H:i")
