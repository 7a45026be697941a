"""Who may see a stream: a port that an upper floor fills (ARCHITECTURE, ports).

The log knows no tasks and no people, so it asks. Entry points of this floor call the port.
"""
