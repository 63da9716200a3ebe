"""What the built-in tools are called, what they take, and what they declare of themselves."""

from cleveragents.domain.action import Parameter, ToolSpec

_RESOURCE = Parameter(name="resource", required=False, description="which resource it works on")
_PATH = Parameter(name="path", description="a path in the resource")
_TIMEOUT = Parameter(name="timeout", type="number", required=False, description="seconds")
_SQL_PARAMETERS = Parameter(
    name="parameters",
    type="list or map",
    required=False,
    description="values for `?` as a list, for `:name` as a map",
)

# As what a tool reads: all of the resource that it works on.
_ALL_OF_IT = (".",)


def _flag(name: str, description: str) -> Parameter:
    return Parameter(name=name, type="boolean", required=False, description=description)


BUILT_IN = (
    ToolSpec(
        name="file.read",
        description="Read a file",
        reads=("{path}",),
        parameters=(_RESOURCE, _PATH),
        idempotent=True,
    ),
    ToolSpec(
        name="file.write",
        description="Write a whole file, making its folders",
        reads=(),
        parameters=(_RESOURCE, _PATH, Parameter(name="content", description="the new content")),
        writes=True,
        idempotent=True,
    ),
    ToolSpec(
        name="file.edit",
        description="Replace a piece of text in a file",
        reads=("{path}",),
        parameters=(
            _RESOURCE,
            _PATH,
            Parameter(name="old", description="the text to replace; it must be there exactly once"),
            Parameter(name="new", description="what to put in its place"),
            _flag("all", "replace every occurrence"),
        ),
        writes=True,
    ),
    ToolSpec(
        name="file.delete",
        description="Delete a file, a link or a folder",
        reads=("{path}",),
        parameters=(_RESOURCE, _PATH, _flag("recursive", "delete a folder with what is in it")),
        writes=True,
    ),
    ToolSpec(
        name="file.move",
        description="Move or rename a file or folder",
        reads=("{path}", "{to}"),
        parameters=(
            _RESOURCE,
            _PATH,
            Parameter(name="to", description="the new path"),
            _flag("overwrite", "replace what is there"),
        ),
        writes=True,
    ),
    ToolSpec(
        name="file.list",
        description="List a folder",
        reads=("{path}",),
        parameters=(
            _RESOURCE,
            Parameter(name="path", required=False, description="a folder; default: the top"),
            _flag("recursive", "list everything below it"),
        ),
        idempotent=True,
    ),
    ToolSpec(
        name="file.search",
        description="Find lines that match a regular expression",
        reads=("{path}",),
        parameters=(
            _RESOURCE,
            Parameter(name="pattern", description="a regular expression"),
            Parameter(name="path", required=False, description="a file or folder to search in"),
            _TIMEOUT,
        ),
        idempotent=True,
    ),
    ToolSpec(
        name="sql.execute",
        description="Change a database: all statements in one transaction, or none",
        reads=_ALL_OF_IT,
        parameters=(
            _RESOURCE,
            Parameter(name="sql", description="one statement, or several with `;` between them"),
            _SQL_PARAMETERS,
            _TIMEOUT,
        ),
        writes=True,
    ),
    ToolSpec(
        name="sql.query",
        description="Read from a database",
        reads=_ALL_OF_IT,
        parameters=(
            _RESOURCE,
            Parameter(name="sql", description="one statement that only reads"),
            _SQL_PARAMETERS,
            Parameter(name="limit", type="number", required=False, description="rows; 1000"),
            _TIMEOUT,
        ),
        idempotent=True,
    ),
    ToolSpec(
        name="shell",
        description="Run a command line with /bin/sh in the sandbox",
        parameters=(
            _RESOURCE,
            Parameter(name="command", description="what /bin/sh -c gets"),
            _TIMEOUT,
        ),
        writes=True,
    ),
    ToolSpec(
        name="git.status",
        description="Show which files of a checkout differ from its last commit",
        reads=_ALL_OF_IT,
        parameters=(_RESOURCE,),
        idempotent=True,
    ),
    ToolSpec(
        name="git.diff",
        description="Show the changes of tracked files as a patch",
        reads=_ALL_OF_IT,
        parameters=(
            _RESOURCE,
            Parameter(name="path", required=False, description="only below this path"),
            Parameter(name="against", required=False, description="a commit; default: the index"),
            _flag("staged", "what is in the index, against the last commit"),
        ),
        idempotent=True,
    ),
    ToolSpec(
        name="git.commit",
        description="Commit everything in the sandbox's own repository; hooks do not run",
        reads=_ALL_OF_IT,
        parameters=(
            _RESOURCE,
            Parameter(name="message", description="the message of the commit"),
            Parameter(
                name="paths", type="list", required=False, description="only these; default: all"
            ),
            Parameter(name="author", required=False, description="Name <address>"),
            _flag("allow_empty", "also if nothing has changed"),
        ),
        writes=True,
    ),
    ToolSpec(
        name="http.request",
        description="Ask a web server; needs `confinement: {network: true}`",
        reads=(),
        parameters=(
            Parameter(name="url", description="http:// or https://"),
            Parameter(name="method", required=False, description="default: GET"),
            Parameter(
                name="headers",
                type="map",
                required=False,
                description="`${NAME}` stands for a variable that `confinement` passes on",
            ),
            Parameter(name="body", required=False, description="text to send"),
            Parameter(name="json", type="any", required=False, description="sent as JSON"),
            _flag("any_status", "an answer of 400 or more is no error"),
            _TIMEOUT,
        ),
        side_effects=("an HTTP request",),
        network=True,
    ),
)
