"""Owns the cases about git itself: nested repositories, HEAD and index, and a hostile set-up."""

from benchmarks.peers.cases import Case, case

INNER = "git init -q inner; cd inner; echo one > a; git add a; git commit -q -m inner; cd ..;"
REPOSITORIES: tuple[Case, ...] = (
    case("file in a nested repository", INNER, "echo two > inner/a"),
    case(
        "new commit in a nested repository",
        INNER,
        "cd inner; echo b > b; git add b; git commit -qm b",
    ),
    case("nested repository deleted", INNER, "rm -rf inner"),
    case("nested repository without a commit", "git init -q bare; echo x > bare/x", "rm -rf bare"),
    case(
        "file in a submodule",
        f'{INNER} mv inner "$OUTSIDE/sub"; git -c protocol.file.allow=always submodule --quiet'
        ' add "$OUTSIDE/sub" sub; git commit -q -m sub',
        "echo two > sub/a; echo new > sub/new",
    ),
    case("own repository deleted", "", "rm -rf .git src/app.py"),
)

STATE: tuple[Case, ...] = (
    case("the agent commits", "", "echo x >> README.md; git commit -q -a -m agent"),
    case("the agent resets a commit", "", "git reset -q --hard HEAD~1"),
    case("the agent switches to a new branch", "", "git switch -q -c other; echo x > y"),
    case("the agent detaches HEAD", "", "git switch -q --detach HEAD~1"),
    case("the agent deletes a branch", "git branch keep", "git branch -q -D keep"),
    case("the agent stashes", "echo mine >> src/app.py; echo n > n", "git stash push -q -u"),
    case("staged changes unstaged", "echo s >> src/app.py; git add src/app.py", "git reset -q"),
    case("the agent stages everything", "echo n > n; echo s >> src/app.py", "git add -A"),
    case(
        "half-staged file",
        "echo s >> src/app.py; git add src/app.py; echo t >> src/app.py",
        "git checkout -q HEAD -- src/app.py",
    ),
    case(
        "file marked assume-unchanged",
        "git update-index --assume-unchanged src/app.py; echo local >> src/app.py",
        "echo other > src/app.py",
    ),
    case("settings of the repository changed", "", "git config core.autocrlf true"),
    case("everything ignored afterwards", "echo n > n", "echo '*' > .gitignore; rm n; echo m > m"),
    case(
        "the agent excludes files for itself",
        "echo n > n",
        'echo n > "$(git rev-parse --git-dir)/info/exclude"; rm n',
    ),
    case(
        "git gc --prune=now afterwards",
        "echo n > n; echo s >> src/app.py",
        "echo x > n; git reflog expire --expire=now --all; git gc -q --prune=now",
    ),
    case(
        "staged file unstaged, deleted and pruned",
        "echo precious > p; git add p",
        "git rm -q --cached p; rm p; git reflog expire --expire=now --all; git gc -q --prune=now",
    ),
)

HOSTILE: tuple[Case, ...] = (
    case(
        "commits must be signed, and cannot be",
        "",
        "echo x >> src/app.py",
        config="[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n",
    ),
    case(
        "hooks that fail",
        'mkdir "$OUTSIDE/hooks"; for h in pre-commit post-checkout commit-msg post-index-change'
        ' reference-transaction; do printf "#!/bin/sh\\nexit 1\\n" > "$OUTSIDE/hooks/$h"; done;'
        ' chmod +x "$OUTSIDE"/hooks/*; git config --global core.hooksPath "$OUTSIDE/hooks"',
        "echo x >> src/app.py",
    ),
    case(
        "nobody's identity",
        "git config --global --unset user.name; git config --global --unset user.email;"
        " git config --global user.useConfigOnly true",
        "echo x >> src/app.py",
    ),
    case(
        "GIT_DIR points somewhere else",
        'git init -q "$OUTSIDE/other"; cd "$OUTSIDE/other"; echo o > o; git add o;'
        " git commit -qm o",
        "echo x >> src/app.py; echo n > n",
        environ=(("GIT_DIR", "{outside}/other/.git"),),
    ),
    case(
        "a lock on the index",
        'touch "$(git rev-parse --git-dir)/index.lock"; echo n > n',
        "echo x >> src/app.py; rm n",
    ),
    case(
        "global ignore list",
        'printf "*.tmp\\n" > "$OUTSIDE/ignore";'
        ' git config --global core.excludesFile "$OUTSIDE/ignore"; echo t > a.tmp',
        "rm a.tmp",
    ),
)
