"""The command line: one thin function a command; the work is imported when a command runs."""
