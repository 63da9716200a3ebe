"""python -m cleveragents."""

from cleveragents.cli.main import main

main()
