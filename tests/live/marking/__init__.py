"""An app for tests that adds one kind of outbox work: a line in a file, with the time."""
