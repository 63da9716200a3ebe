"""Where a process of ours begins: the command `agents`, and `python -m cleveragents`."""

import gc

# Python's own 700 would go over all that a command loads and reads some ten times; with so many,
# everything is looked at twice, however much there is.
_VALUES_PER_COLLECTION = 100_000


def main() -> None:
    # Before anything is loaded. And not whoever imports the commands: a process that lasts needs
    # its garbage collected.
    gc.set_threshold(_VALUES_PER_COLLECTION)
    from cleveragents.cli.main import main as begin  # noqa: PLC0415 - as said above

    begin()


if __name__ == "__main__":
    main()
