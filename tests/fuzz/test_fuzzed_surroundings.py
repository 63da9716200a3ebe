"""Whatever the environment and the standard streams are like: the work is done or refused, in
order; what cannot be said is not said, and no bug shows."""

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from hypothesis import given
from hypothesis import strategies as st
from tests.support.agents import COMMAND, Answer
from tests.support.fuzzing import FUZZ, SLOW_FUZZ, WORD
from tests.support.proper import AT_REST, has_no_bug, is_proper
from tests.support.world import PlanHandle, World, shell, write

from cleveragents.config.keys import KEYS

# --- environments -------------------------------------------------------------------------------

# Where data goes is said by a flag, so that none of these can lead it out of the test's own folder.
PLACES = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
ANYWHERE = ["rel", "./rel/../x", "/nonexistent/home", "/dev/null", "caf\udce9", "a" * 300]
LOOKS = ("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "TZ", "COLORTERM", "TTY_COMPATIBLE")
SPEECH = ("LANG", "LC_ALL", "LC_CTYPE", "LANGUAGE", "PYTHONUNBUFFERED")
GITS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_COUNT", "GIT_AUTHOR_DATE", "GIT_INDEX_FILE")
OTHERS = ("PATH", "EDITOR", "USER", "SHELL", "PWD", "OPENAI_BASE_URL", "CLEVERAGENTS_HOOKS")
OURS = tuple(key.env for key in KEYS if "DATA" not in key.env)
SIZES = ["0", "-1", "1", "²", "٣", "99999999999999", "1_0"]
SPOKEN = ["C", "POSIX", "en_US.ISO-8859-1", "xx", "0", "1", "2"]


def _values(names: tuple[str, ...], values: list[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(names), st.sampled_from(values) | WORD, max_size=3)


ENVIRONMENTS = st.one_of(
    _values(LOOKS, SIZES),
    _values(SPEECH, SPOKEN),
    _values(GITS, SIZES),
    _values(OTHERS, ["/nonexistent", "", "http://[::1", "vi 'x"]),
    _values(OURS, [*SIZES, "json", "off", "1d", ""]),
    st.dictionaries(st.sampled_from(PLACES), st.sampled_from(ANYWHERE), max_size=3),
)


@FUZZ
@given(environ=ENVIRONMENTS, format=st.sampled_from(["json", "rich", "table", "color", "yaml"]))
def test_whatever_the_environment_says_there_is_a_proper_answer(
    world: World, plan: PlanHandle, environ: dict[str, str], format: str
) -> None:
    agents = world.agents.having(**environ)
    place = ("--data-dir", str(world.agents.data_dir))
    for words in (["plan", "list"], ["plan", "status", plan.id], ["config", "list"]):
        answer = agents.inside(*place, "--format", format, *words)
        has_no_bug(answer)
        assert answer.out or answer.err
        if format == "json":
            is_proper(answer)


@SLOW_FUZZ
@given(environ=ENVIRONMENTS)
def test_whatever_the_environment_says_a_plan_is_carried_out_or_refused(
    world: World, environ: dict[str, str]
) -> None:
    made = world.use(write("a", "1"), shell("echo 2 > b"))
    place = ["--data-dir", str(world.agents.data_dir)]
    words = [*place, "--format", "json", "plan", "execute", made.id]
    is_proper(_process(world, world.agents.having(**environ).environ, words))
    assert made.status["state"] in AT_REST
    made.execute().ok()


def _process(world: World, environ: dict[str, str], argv: list[str]) -> Answer:
    done = subprocess.run(
        [COMMAND, *argv],
        cwd=world.project.path,
        env={key: os.fsencode(value) for key, value in environ.items()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=600,
        check=False,
    )
    out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    return Answer(argv=tuple(argv), code=done.returncode, out=out, err=err)


# --- streams ------------------------------------------------------------------------------------

STREAMS = ["kept", "closed", "full", "reader gone", "for reading", "for writing", "not waiting"]


@SLOW_FUZZ
@given(
    streams=st.tuples(*[st.sampled_from(STREAMS)] * 3),
    format=st.sampled_from(["json", "rich", "plain"]),
    given=st.binary(max_size=20) | st.just(b'{"tool_name": "x"}'),
    changing=st.booleans(),
)
def test_whatever_the_streams_are_like_what_was_asked_is_done(
    world: World,
    plan: PlanHandle,
    streams: tuple[str, str, str],
    format: str,
    given: bytes,
    *,
    changing: bool,
) -> None:
    made = world.use(write("a", "1"))
    words = ["plan", "execute", made.id] if changing else ["plan", "status", plan.id]
    with ExitStack() as stack:
        pipes = [stack.enter_context(_pipe(kind, given)) for kind in streams]
        code, said = _started(world, ["-v", "--format", format, *words], pipes, streams)
    assert not any(word in said for word in (b"Traceback", b"bug in agents", b"ignored")), said
    if changing:
        assert code == 0, said
        assert made.status["state"] == "complete"
    else:
        assert code in (0, 1), said


@SLOW_FUZZ
@given(
    kind=st.sampled_from(["pre-tool", "post-tool"]),
    said=st.binary(max_size=40) | WORD.map(lambda word: os.fsencode('{"tool_name": "' + word)),
    there=st.booleans(),
)
def test_whatever_an_agent_tells_a_hook_it_gets_an_answer(
    world: World, kind: str, said: bytes, *, there: bool
) -> None:
    folder = world.top / "hooks"
    if there:
        folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [COMMAND, "hook", kind],
        cwd=world.project.path,
        env={**world.agents.environ, "CLEVERAGENTS_HOOKS": str(folder)},
        input=said,
        capture_output=True,
        timeout=600,
        check=False,
    )
    told = done.stdout + done.stderr
    assert done.returncode in (0, 1, 2)
    assert told.strip()
    assert not any(word in told for word in (b"Traceback", b"bug in agents")), told


def _started(
    world: World, argv: list[str], pipes: list[int | None], kinds: tuple[str, str, str]
) -> tuple[int, bytes]:
    """The exit code, and what was said on those streams that were left as they are."""
    with tempfile.TemporaryFile() as heard:
        places = [
            heard.fileno() if kind == "kept" and number else pipe
            for number, (kind, pipe) in enumerate(zip(kinds, pipes, strict=True))
        ]

        def arrange() -> None:
            for number, place in enumerate(places):
                if place is None:
                    os.close(number)

        process = subprocess.Popen(
            [COMMAND, *argv],
            cwd=world.project.path,
            env=world.agents.environ,
            stdin=places[0],
            stdout=places[1],
            stderr=places[2],
            preexec_fn=arrange,
        )
        code = process.wait(600)
        heard.seek(0)
        return code, heard.read()


@contextmanager
def _pipe(kind: str, given: bytes) -> Generator[int | None]:
    """The end that the command gets; None for one that is closed."""
    if kind == "closed":
        yield None
    elif kind in ("full", "for reading", "for writing"):
        place = "/dev/full" if kind == "full" else os.devnull
        mode = os.O_RDONLY if kind == "for reading" else os.O_WRONLY
        descriptor = os.open(place, mode)
        yield descriptor
        os.close(descriptor)
    else:
        with _between(kind, given) as descriptor:
            yield descriptor


@contextmanager
def _between(kind: str, given: bytes) -> Generator[int]:
    """A pipe with a few bytes in it; whoever writes to it does not fill it."""
    reading, writing = os.pipe()
    os.write(writing, given)
    os.set_blocking(writing, kind != "not waiting")
    os.close(reading if kind == "reader gone" else os.dup(reading))
    yield writing
    os.close(writing)
