"""Git with all our rights is started only where no step can have written (ADR 0046)."""

import ast
from collections.abc import Iterator
from pathlib import Path

SANDBOX = Path(__file__).parents[2] / "src/cleveragents/infrastructure/sandbox"
SOURCE = SANDBOX.parents[1]

# What each is for. A new one belongs here only if a step can have written nothing that it reads:
# settings, references and commits of the user's repository, and names of what was brought over.
PLAIN = {
    "git/apply/prepare._carrying_out": "the user's references and index; files are read inside",
    "git/taking_back/prepare.__init__": (
        "the user's references, index and commits; files are looked at inside"
    ),
    "git/apply/prepare._project": "the user's own checkout, before anything of the plan is in it",
    "git/sandbox._repository": "references of the user's repository, and diffs of their commits",
    "git/inspect._top_level": "where a repository begins, before there is a plan",
    "git/inspect.inspect_checkout": "the user's own checkout, before there is a plan",
    "secrets._tracked": "names in the index of the user's own checkout, before there is a plan",
    "git/repository/own_place.new_git": "the first checkout, before the first step",
    "git/repository/own_repository.branch_repository": (
        "which objects of the user's repository are tags"
    ),
    "git/repository/own_repository.make_repository": (
        "settings and references of the user's repository"
    ),
    "git/repository/state.__init__": (
        "blobs and trees of the base, which the user made, and his tags"
    ),
    "git/submodules/records.repository_git": "references and settings of the user's repository",
    "git/submodules/records.submodule_git": (
        "the first checkout of a submodule, before the first step"
    ),
    "git/submodules/prepare._place": "where the user's repository keeps submodules",
    "git/submodules/inspect._repository": "the user's submodules, before there is a plan",
    "git/submodules/new_repositories.__init__": "where the user's repository is",
    "git/submodules/new_repositories.make": (
        "a repository of ours that is being made; objects come inside"
    ),
    "git/repository/own_repository.check_out": "a new sandbox, in which no step has run yet",
    "git/submodules/carry_out.users_submodule": (
        "a checkout of the user's; files are looked at inside"
    ),
    "git/views.of_files": "where the user's git-lfs keeps its contents",
    "leftovers.in_repository": (
        "references of the user's repository; sandboxes are looked at inside"
    ),
    "git/location._common": "whether a folder that the user named is a repository",
    "git/location.is_at": "whether it is the one that a plan was made on",
    "git/location._bases": "what it was made from, and our references in the user's repository",
    "git/location.moved": "where the user's repository is",
    "in_place/inspect._details": "where the user's repository is, before there is a plan",
    "in_place/git_there.users_git": (
        "settings, attributes and index of the user's repository, at the first look"
    ),
    "in_place/linked_packs.__init__": "a repository of ours, with links to packs and no settings",
    "project_view/layers.ignored_folders": "which folders the user's own project ignores",
}


def test_every_place_that_starts_git_plainly_is_known() -> None:
    found = {place for path in sorted(SANDBOX.rglob("*.py")) for place in _plain_in(path)}
    assert found == PLAIN.keys()


def _plain_in(path: Path) -> Iterator[str]:
    if path == SANDBOX / "git/command.py":
        return  # what makes one out of another keeps who starts it
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef) and any(map(_is_plain, ast.walk(function))):
            yield f"{path.relative_to(SANDBOX).with_suffix('')}.{function.name}"


def _is_plain(node: ast.AST) -> bool:
    """`Git(folder)` or `Git(folder, variables)`: nobody is named who starts it."""
    if isinstance(node, ast.Name):
        return node.id in ("start_plainly", "start_hookless")
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    named = {keyword.arg for keyword in node.keywords}
    return node.func.id == "Git" and len(node.args) < 3 and "start" not in named
