"""One request to a web server; runs in a process of its own."""

import json as json_text
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

_SCHEMES = ("http", "https")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class RequestError(Exception):
    """Says what is wrong in one line."""


def request(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, Any] | None = None,
    body: str | None = None,
    json: Any = None,
    most_bytes: int = 1 << 20,
) -> dict[str, Any]:
    """The answer, whatever its status; a body beyond `most_bytes` is cut off."""
    _check(url)
    sent = {
        "User-Agent": "cleveragents",
        **{k: _filled(str(v)) for k, v in (headers or {}).items()},
    }
    data = body.encode() if body is not None else None
    if json is not None:
        data = json_text.dumps(json).encode()
        sent.setdefault("Content-Type", "application/json")
    asked = urllib.request.Request(url, data=data, headers=sent, method=method.upper())
    opener = urllib.request.build_opener(_Redirects())
    try:
        with opener.open(asked) as answer:
            return _told(answer, most_bytes)
    except urllib.error.HTTPError as error:
        if 300 <= error.code < 400 and "Location" in error.headers:
            place = error.headers["Location"]
            raise RequestError(
                f"{url} redirects to {place}, which does not lead to the web"
            ) from None
        with error:
            return _told(error, most_bytes)
    except urllib.error.URLError as error:
        raise RequestError(f"{url} cannot be reached: {error.reason}") from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    # By position, as the library calls it: six more names would say nothing here.
    def redirect_request(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *given: Any
    ) -> Any:
        req, newurl = given[0], given[5]
        _check(newurl)  # the library would also follow to ftp
        new = super().redirect_request(*given)
        if new is not None and _host(newurl) != _host(req.full_url):
            # What was meant for one server is not shown to another.
            for name in ("Authorization", "Cookie"):
                new.headers.pop(name, None)
        return new


def _check(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise RequestError(f"{url} is not an address that begins with http:// or https://")


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def _filled(value: str) -> str:
    def variable(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise RequestError(
                f"the variable {found[1]} is not passed on; name it under `environment` of "
                "`confinement`"
            )
        return os.environ[found[1]]

    return _VARIABLE.sub(variable, value)


def _told(answer: Any, most_bytes: int) -> dict[str, Any]:
    data: bytes = answer.read(most_bytes + 1)
    return {
        "status": answer.status,
        "reason": answer.reason,
        "url": answer.url,
        "headers": dict(answer.headers.items()),
        "body": data[:most_bytes].decode("utf-8", "backslashreplace"),
        "truncated": len(data) > most_bytes,
    }
