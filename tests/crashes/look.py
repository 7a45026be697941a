"""Look whether an installation's records agree: `python -m tests.crashes.look`."""

import django


def main() -> None:
    django.setup()

    from tests import records
    from timeline.clock import system_clock

    records.check(now=system_clock.now())


if __name__ == "__main__":
    main()
