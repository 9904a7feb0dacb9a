"""logscan: did the engine run the numeric path that the checkpoint promised?"""

__version__ = "0.1.0"
