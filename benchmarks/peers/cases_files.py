"""Owns the cases about files: contents, kinds, modes, names, and bytes that git would rewrite."""

from benchmarks.peers.cases import Case, case

CONTENTS: tuple[Case, ...] = (
    case("tracked file edited", "", "echo more >> src/app.py"),
    case("tracked file deleted", "", "rm src/app.py"),
    case("untracked file edited", "echo note > note.txt", "echo x >> note.txt"),
    case("untracked file deleted", "echo note > note.txt", "rm note.txt"),
    case("ignored file edited", "echo KEY=1 > .env", "echo KEY=2 > .env"),
    case("ignored file deleted", "echo KEY=1 > .env", "rm .env"),
    case("ignored folder deleted", "mkdir out; echo lib > out/lib.a", "rm -r out"),
    case("new file is removed again", "", "mkdir new; echo x > new/file"),
    case("new ignored file is removed again", "", "echo x > trace.log"),
    case("file renamed", "", "mv src/app.py src/main.py"),
    case("folder renamed", "", "mv src code"),
    case("name changed in case only", "", "mv README.md readme.md"),
    case("file replaced by a folder", "", "rm README.md; mkdir README.md; echo x > README.md/x"),
    case("folder replaced by a file", "", "rm -r src; echo x > src"),
    case(
        "same size, same time",
        "printf aaaa > same; touch -d @1700000000 same; git add same; sleep 0.05",
        "printf bbbb > same; touch -d @1700000000 same",
    ),
    case(
        "large untracked file (8 MB)",
        "head -c 8388608 /dev/urandom > big.bin",
        "echo x | dd of=big.bin bs=1 seek=4000000 conv=notrunc status=none",
    ),
    case("empty file", ": > empty.txt", "echo x > empty.txt"),
    case(
        "three snapshots, back to the first",
        "echo one > a",
        "echo two > a; echo b > b",
        "rm a; mkdir c; echo c > c/c",
        "rm -r c b; echo three > a",
    ),
    case(
        "there, back, and there again",
        "echo one > a",
        "echo two > a; rm src/app.py; echo new > n",
        forth=True,
    ),
    case(
        "SQLite database with a write-ahead log",
        "python3 -c \"import os, sqlite3; d = sqlite3.connect('app.db');"
        " d.execute('PRAGMA journal_mode=WAL'); d.execute('CREATE TABLE t (a)');"
        " d.execute('INSERT INTO t VALUES (1)'); d.commit(); os._exit(0)\"",
        "python3 -c \"import sqlite3; d = sqlite3.connect('app.db');"
        " d.execute('DELETE FROM t'); d.commit(); d.close()\"",
    ),
    case(
        "SQLite database, not ignored",
        "python3 -c \"import sqlite3; d = sqlite3.connect('app.sqlite');"
        " d.execute('CREATE TABLE t (a)'); d.commit(); d.close()\"",
        "python3 -c \"import sqlite3; d = sqlite3.connect('app.sqlite');"
        " d.execute('DROP TABLE t'); d.commit(); d.close()\"",
    ),
)

KINDS: tuple[Case, ...] = (
    case("executable bit lost", "", "chmod -x run.sh"),
    case("executable bit of an untracked file", "echo x > t.sh; chmod +x t.sh", "chmod -x t.sh"),
    case("private file (0600)", "echo key > key.pem; chmod 0600 key.pem", "rm key.pem"),
    case(
        "read-only file (0444)",
        "chmod 0444 src/app.py",
        "chmod 0644 src/app.py; echo x >> src/app.py",
    ),
    case("private folder (0700)", "mkdir v; echo v > v/v; chmod 0700 v", "rm -r v"),
    case("empty folder deleted", "mkdir -p spool/in", "rm -r spool"),
    case("new empty folder is removed again", "", "mkdir -p spool/in"),
    case("link retargeted", "", "ln -sfn src/app.py link"),
    case("dangling link deleted", "ln -s nowhere gone", "rm gone"),
    case("link replaced by a file", "", "rm link; echo x > link"),
    case(
        "file replaced by a link to the outside",
        'echo theirs > "$OUTSIDE/theirs"',
        'rm src/app.py; ln -s "$OUTSIDE/theirs" src/app.py',
    ),
    case(
        "folder replaced by a link to the outside",
        'mkdir "$OUTSIDE/src"; echo theirs > "$OUTSIDE/src/app.py"; echo t > "$OUTSIDE/src/own"',
        'rm -r src; ln -s "$OUTSIDE/src" src',
    ),
)

NAMES: tuple[Case, ...] = (
    case("newline in a name", "echo x > \"$(printf 'a\\nb')\"", "rm a*b"),
    case("quotes and spaces in a name", "echo x > 'a \"b'\"'\"' c'", "rm a*c"),
    case("name that begins with a dash", "echo x > ./-rf", "rm ./-rf"),
    case("name with a star beside others", "echo x > 'a*'; echo y > ab", "rm 'a*'; echo z > ab"),
    case("name that is not UTF-8", "echo x > \"$(printf 'caf\\351')\"", "rm caf*"),
    case("name in UTF-8", "echo x > grün.txt", "echo y > grün.txt"),
    case("name that begins with a colon", "echo x > :x", "rm :x"),
)

FILTER = (
    '[filter "shout"]\n\tclean = tr a-z A-Z\n\tsmudge = cat\n'
    '[filter "store"]\n\tclean = false\n\tsmudge = false\n\trequired = true\n'
)
BYTES: tuple[Case, ...] = (
    case(
        "CRLF under text=auto",
        "echo '* text=auto' > .gitattributes; printf 'a\\r\\nb\\r\\n' > dos.txt",
        "rm dos.txt",
    ),
    case(
        "mixed line ends under eol=crlf",
        "echo '*.txt text eol=crlf' > .gitattributes; printf 'a\\nb\\r\\nc\\n' > mixed.txt",
        "rm mixed.txt",
    ),
    case(
        "file with a clean filter",
        "echo '*.txt filter=shout' > .gitattributes; echo quiet > a.txt",
        "rm a.txt",
        config=FILTER,
    ),
    case(
        "file whose required filter fails (as LFS without its program)",
        "echo '*.bin filter=store' > .gitattributes; echo data > a.bin",
        "rm a.bin; echo x >> src/app.py",
        config=FILTER,
    ),
    case(
        "keyword expansion (ident)",
        "echo '*.c ident' > .gitattributes; echo '/* $Id: mine $ */' > a.c",
        "rm a.c",
    ),
    case(
        "working-tree-encoding",
        "echo '*.u16 working-tree-encoding=UTF-16LE' > .gitattributes; printf 'a\\0b\\0' > t.u16",
        "rm t.u16",
    ),
    case(
        "attributes changed afterwards",
        "printf 'a\\r\\n' > dos.txt",
        "rm dos.txt; echo '* text=auto eol=lf' > .gitattributes",
    ),
)
