"""Owns the sentences of the comparison page; its figures come from the results."""

INTRODUCTION = """# Against what people use today

Our checkpoints beside the snapshots of coding agents, git sequences that others are built on,
backup programs and plain copies: how long they take, how much room, and whether what comes back is
what was there. All of it is one run, made by

```sh
make compare
```

It installs the pinned versions of the others into `build/peers/`, runs everything in turn, writes
[the results](../evidence/results.json), and makes this page, the picture and the table of the
README from them. One large tree instead:

```sh
make compare ARGS='--files 100000 --skip-fidelity --keep build/large.json'
```

"""
SPEED = """## Time

The trees have 15 files per folder, of 0.2 to 5 KB each. Files are changed by a shell, so that
nobody tells the tool what was written. Each tool has its own copy of the tree, and they take turns.
A figure is the median of up to {rounds} rounds; fewer where they take seconds. In brackets is how
many times longer it took than CleverAgents in a running plan, **bold where ours was slower**. By
default git makes nothing durable that it writes; ours, restic and borg do. "From nothing" includes
starting and setting up the tool, for ours also making the sandbox.

"""
SPACE = """## Room

{checkpoints} checkpoints, each after one line was added to one file ({files}): how much larger the
store became on disk. Nothing was packed by `git gc`, which none of the git sequences waits for.

"""
FIDELITY = """## Fidelity

{cases} cases. In each, a small repository is prepared, a snapshot taken, damage done by a shell,
and the snapshot restored. Then every file, link, folder and mode must be as before, byte for byte,
and so must HEAD, index, branches, stash and settings of git. Ours is judged through the installed
command. The scripts are in `benchmarks/peers/cases_files.py` and `cases_git.py`; what was wrong in
each case is in [the results](../evidence/results.json).

"""
OUTRO = """## Not compared

- Claude Code's `/rewind`, Cursor, Copilot CLI, Gemini's `/rewind`: they copy the files that their
  own edit tool touches. That takes microseconds, and sees nothing of what a shell, a generator or a
  database does. They cannot be asked for a snapshot without a model.
- Snapshots of filesystems and virtual machines: exact and fast, but they need root, a special
  filesystem or a cloud.
- One way back through code, databases, child plans and the plan's own record together: none of the
  others has one.
"""
