"""What is known of coding agents by name: what each needs to be allowed, and what it is called.

How its hooks are put in for one run is in `infrastructure/actors/command/agents`.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from msgspec import Struct

# Where a proxy or a certificate of the house stands in between, no agent reaches its model without.
_ROUTES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)


class AgentPreset(Struct, frozen=True, kw_only=True):
    """`environment` are the variables it gets to see if they are set, `folders` what of its own in
    the home folder it may write: they are made if they are not there, unlike `files`. `task` is
    what it is given as arguments with a task, `{task}` standing for that."""

    name: str
    network: bool = True
    environment: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    task: tuple[str, ...] = ("{task}",)

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.environment, *_ROUTES)

    def command(self, task: str) -> tuple[str, ...]:
        return (self.name, *(part.replace("{task}", task) for part in self.task))


NO_AGENT = "none"
UNKNOWN = AgentPreset(name="", network=False)
"""Of any other program nothing is known: it is watched, and allowed nothing."""

_PRESETS = (
    AgentPreset(
        name="claude",
        environment=(
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
            *("ANTHROPIC_MODEL", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"),
        ),
        folders=("~/.claude",),
        files=("~/.claude.json",),
    ),
    AgentPreset(
        name="codex",
        environment=("OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_HOME"),
        folders=("~/.codex",),
    ),
    AgentPreset(
        name="gemini",
        environment=(
            *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"),
            *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI"),
            *("GOOGLE_APPLICATION_CREDENTIALS", "GEMINI_TELEMETRY_ENABLED"),
        ),
        # Its credentials, which it renews; all else that it writes is of one run.
        folders=("~/.gemini",),
        task=("--prompt-interactive", "{task}"),
    ),
    AgentPreset(
        name="opencode",
        environment=(
            *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
            *("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_API_KEY"),
            *("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH"),
            *("OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_DEFAULT_PLUGINS"),
            *("XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        ),
        folders=("~/.config/opencode", "~/.local/share/opencode"),
        task=("run", "{task}"),
    ),
    AgentPreset(
        name="aider",
        environment=(
            *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_BASE", "GEMINI_API_KEY"),
            *("DEEPSEEK_API_KEY", "OPENROUTER_API_KEY", "LITELLM_LOCAL_MODEL_COST_MAP"),
        ),
        folders=("~/.aider",),
        task=("--message", "{task}"),
    ),
)
PRESETS: Mapping[str, AgentPreset] = {preset.name: preset for preset in _PRESETS}


def preset_of(program: str, named: str | None) -> AgentPreset:
    """`named` is what a person said, which must be known; else it goes by the program's name.

    Raises ValueError.
    """
    if named is None:
        return PRESETS.get(program, UNKNOWN)
    if named == NO_AGENT:
        return UNKNOWN
    if named not in PRESETS:
        close = get_close_matches(named, [*PRESETS, NO_AGENT], n=1)
        meant = f"; did you mean `{close[0]}`?" if close else ""
        raise ValueError(f"no agent `{named}` is known{meant}")
    return PRESETS[named]
