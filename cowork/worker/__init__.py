"""The processes: the supervisor, the cluster that it starts, and the drains in it.

`supervisor` starts `cluster` (django-q2 as it is) and `web` (daphne); a job of the cluster runs
`drain`, watched by `pulse`. What a process needs to know of its parent is in `process`.
"""
