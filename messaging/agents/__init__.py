"""Built-in agents: they claim, report and end like everybody else (SPEC §13)."""
