"""`python -m logscan`."""

from logscan.cli.main import main

if __name__ == "__main__":
    main()
