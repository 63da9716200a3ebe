"""What the built-in tools are called, what they take, and what they declare of themselves."""

from cleveragents.domain.action import Parameter, ToolSpec

_AT_ITS_PATH = ("{path}",)
# As what a tool reads: all of the resource that it works on.
_ALL_OF_IT = (".",)


def _needed(name: str, description: str) -> Parameter:
    return Parameter(name=name, description=description)


def _optional(name: str, description: str, type_: str = "string") -> Parameter:
    return Parameter(name=name, type=type_, required=False, description=description)


def _flag(name: str, description: str) -> Parameter:
    return _optional(name, description, "boolean")


_RESOURCE = _optional("resource", "which resource it works on")
_PATH = _needed("path", "a path in the resource")
_TIMEOUT = _optional("timeout", "seconds", "number")
_SQL_PARAMETERS = _optional(
    "parameters", "values for `?` as a list, for `:name` as a map", "list or map"
)


def _reading(
    name: str, description: str, *parameters: Parameter, reads: tuple[str, ...]
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        reads=reads,
        parameters=(_RESOURCE, *parameters),
        idempotent=True,
    )


def _writing(
    name: str,
    description: str,
    *parameters: Parameter,
    reads: tuple[str, ...] | None,
    idempotent: bool = False,
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        reads=reads,
        parameters=(_RESOURCE, *parameters),
        writes=True,
        idempotent=idempotent,
    )


BUILT_IN = (
    _reading("file.read", "Read a file", _PATH, reads=_AT_ITS_PATH),
    _writing(
        "file.write",
        "Write a whole file, making its folders",
        _PATH,
        _needed("content", "the new content"),
        reads=(),
        idempotent=True,
    ),
    _writing(
        "file.edit",
        "Replace a piece of text in a file",
        _PATH,
        _needed("old", "the text to replace; it must be there exactly once"),
        _needed("new", "what to put in its place"),
        _flag("all", "replace every occurrence"),
        reads=_AT_ITS_PATH,
    ),
    _writing(
        "file.delete",
        "Delete a file, a link or a folder",
        _PATH,
        _flag("recursive", "delete a folder with what is in it"),
        reads=_AT_ITS_PATH,
    ),
    _writing(
        "file.move",
        "Move or rename a file or folder",
        _PATH,
        _needed("to", "the new path"),
        _flag("overwrite", "replace what is there"),
        reads=("{path}", "{to}"),
    ),
    _reading(
        "file.list",
        "List a folder",
        _optional("path", "a folder; default: the top"),
        _flag("recursive", "list everything below it"),
        reads=_AT_ITS_PATH,
    ),
    _reading(
        "file.search",
        "Find lines that match a regular expression",
        _needed("pattern", "a regular expression"),
        _optional("path", "a file or folder to search in"),
        _TIMEOUT,
        reads=_AT_ITS_PATH,
    ),
    _writing(
        "sql.execute",
        "Change a database: all statements in one transaction, or none",
        _needed("sql", "one statement, or several with `;` between them"),
        _SQL_PARAMETERS,
        _TIMEOUT,
        reads=_ALL_OF_IT,
    ),
    _reading(
        "sql.query",
        "Read from a database",
        _needed("sql", "one statement that only reads"),
        _SQL_PARAMETERS,
        _optional("limit", "rows; 1000", "number"),
        _TIMEOUT,
        reads=_ALL_OF_IT,
    ),
    _writing(
        "shell",
        "Run a command line with /bin/sh in the sandbox",
        _needed("command", "what /bin/sh -c gets"),
        _TIMEOUT,
        reads=None,
    ),
    _reading(
        "git.status",
        "Show which files of a checkout differ from its last commit",
        reads=_ALL_OF_IT,
    ),
    _reading(
        "git.diff",
        "Show the changes of tracked files as a patch",
        _optional("path", "only below this path"),
        _optional("against", "a commit; default: the index"),
        _flag("staged", "what is in the index, against the last commit"),
        reads=_ALL_OF_IT,
    ),
    _writing(
        "git.commit",
        "Commit everything in the sandbox's own repository; hooks do not run",
        _needed("message", "the message of the commit"),
        _optional("paths", "only these; default: all", "list"),
        _optional("author", "Name <address>"),
        _flag("allow_empty", "also if nothing has changed"),
        reads=_ALL_OF_IT,
    ),
    ToolSpec(
        name="http.request",
        description="Ask a web server; needs `confinement: {network: true}`",
        reads=(),
        parameters=(
            _needed("url", "http:// or https://"),
            _optional("method", "default: GET"),
            _optional(
                "headers", "`${NAME}` stands for a variable that `confinement` passes on", "map"
            ),
            _optional("body", "text to send"),
            _optional("json", "sent as JSON", "any"),
            _flag("any_status", "an answer of 400 or more is no error"),
            _TIMEOUT,
        ),
        side_effects=("an HTTP request",),
        network=True,
    ),
)
