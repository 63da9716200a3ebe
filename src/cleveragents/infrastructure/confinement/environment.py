"""Which variables of the user's environment a command gets to see."""

from collections.abc import Collection, Mapping

# Where programs are, who runs them, how they talk, and where toolchains live. No credentials, and
# no addresses of services that would act in a command's place (agents, buses, displays).
_PASSED = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TZ", "TERM"),
        *("COLUMNS", "LINES", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CI", "EDITOR", "PAGER"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "PYTHONHOME"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONWARNINGS"),
        *("JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "NODE_PATH"),
        *("PYENV_ROOT", "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "ANDROID_HOME"),
        *("LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "MANPATH", "INFOPATH", "CC", "CXX", "MAKEFLAGS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SOURCE_DATE_EPOCH"),
    )
)
_PASSED_PREFIXES = ("LC_",)


def passed_on(environ: Mapping[str, str], further: Collection[str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environ.items()
        if name in _PASSED or name in further or name.startswith(_PASSED_PREFIXES)
    }


def private_places(folder: str) -> dict[str, str]:
    """Where programs put what need not stay: HOME can be read, but not written."""
    return {
        "TMPDIR": folder,
        "TMP": folder,
        "TEMP": folder,
        "XDG_CACHE_HOME": f"{folder}/cache",
        "XDG_STATE_HOME": f"{folder}/state",
        "npm_config_cache": f"{folder}/cache/npm",
    }
