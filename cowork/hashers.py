"""How people's passwords are kept."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2(Argon2PasswordHasher):
    """Argon2id with OWASP's parameters: 19 MiB, two passes, one lane."""

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1
