"""The command line: one thin function a command; the work is imported when a command runs."""

import gc

# Start-up makes tens of thousands of objects that stay: looking for cycles among them costs a twentieth of a run.
gc.set_threshold(50_000)
