"""Which tests make up which part of `nox -s suites`, and who runs them."""

import pathlib

REPORTS = pathlib.Path("build/reports")
TESTS = pathlib.Path("tests")
COMMANDED = ("crash", "docs", "e2e", "fuzz", "packaging")
# What root is not stopped by (modes, owners, limits), or can do by other means than others.
ORDINARY = (
    "attack",
    "contract",
    "e2e/test_after_power_cuts.py",
    "e2e/test_agent_memory.py",
    "e2e/test_apply.py",
    "e2e/test_bad_places.py",
    "e2e/test_bad_tools.py",
    "e2e/test_branching.py",
    "e2e/test_closed_files.py",
    "e2e/test_command_actor.py",
    "e2e/test_confinement.py",
    "e2e/test_git_libraries.py",
    "e2e/test_layers.py",
    "e2e/test_project_view.py",
    "e2e/test_hard_contents.py",
    "e2e/test_in_place_database_shapes.py",
    "e2e/test_in_place_databases.py",
    "e2e/test_interruptions.py",
    "e2e/test_late_writers.py",
    "e2e/test_mapped_files.py",
    "e2e/test_must_show.py",
    "e2e/test_odd_mcp_servers.py",
    "e2e/test_outliving.py",
    "e2e/test_read_only_tools.py",
    "e2e/test_rebuild.py",
    "e2e/test_refused_agents.py",
    "e2e/test_scarce_machines.py",
    "e2e/test_sqlite_plan.py",
    "e2e/test_subplans_stopped.py",
    "e2e/test_tools.py",
    "e2e/test_tools_within_limits.py",
    "unit/infrastructure",
)
# Of these, what is nothing else to root: it runs once, as the user who can be stopped (ADR 0069).
ONCE = (
    "contract/test_git_apply*.py",
    "contract/test_git_inside.py",
    "contract/test_git_repository.py",
    "contract/test_git_sandbox*.py",
    "contract/test_git_submodules.py",
    "contract/test_git_take_back.py",
    "contract/test_llm_*.py",
    "contract/test_schema.py",
    "contract/test_sqlite_*.py",
    "contract/unit_of_work",
    "e2e/test_after_power_cuts.py",
    "e2e/test_agent_memory.py",
    "e2e/test_apply.py",
    "e2e/test_branching.py",
    "e2e/test_git_libraries.py",
    "e2e/test_layers.py",
    "e2e/test_project_view.py",
    "e2e/test_must_show.py",
    "e2e/test_odd_mcp_servers.py",
    "e2e/test_rebuild.py",
    "e2e/test_sqlite_plan.py",
    "unit/infrastructure/merging",
    "unit/infrastructure/snapshots/test_comparison.py",
    "unit/infrastructure/snapshots/test_fidelity_git.py",
    "unit/infrastructure/snapshots/test_git_keeping.py",
    "unit/infrastructure/snapshots/test_mending.py",
    "unit/infrastructure/snapshots/test_own_repository.py",
    "unit/infrastructure/snapshots/test_pages_*.py",
    "unit/infrastructure/snapshots/test_random_histories.py",
    "unit/infrastructure/snapshots/test_recent.py",
    "unit/infrastructure/snapshots/test_sieve.py",
    "unit/infrastructure/snapshots/test_snapshot_*.py",
    "unit/infrastructure/sqlite",
    "unit/infrastructure/test_action*.py",
    "unit/infrastructure/test_agent_sessions.py",
    "unit/infrastructure/test_llm_setup.py",
    "unit/infrastructure/test_lock*.py",
    "unit/infrastructure/test_sql_tools.py",
    "unit/infrastructure/test_toolbox.py",
)


def files_at(*places: str) -> set[str]:
    """The test files at these places: folders, files, or patterns of files."""
    found: set[str] = set()
    for place in places:
        # So that nothing is left out silently once it has another name.
        there = list(TESTS.glob(place))
        assert there, f"no tests are at {TESTS / place}"
        for path in there:
            found |= set(map(str, path.rglob("test_*.py") if path.is_dir() else [path]))
    return found
