"""Records the outcome of each test as a JSON line. It is copied beside a run, and the user's own Python loads it.

pytest loads it as a plugin. `-m` runs it in place of unittest. It imports nothing of Mnemarch and runs on any Python 3.
"""

import json
import os
import sys
from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_CHARS_MAX = 4000
# Tests may run pytest themselves. Those runs must not be recorded.
_others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != _FOLDER]
os.environ.pop("PYTHONPATH", None)
if any(_others):
    os.environ["PYTHONPATH"] = os.pathsep.join(_others)
_plugins = [name for name in os.environ.pop("PYTEST_PLUGINS", "").split(",") if name not in ("", __name__)]
if _plugins:
    os.environ["PYTEST_PLUGINS"] = ",".join(_plugins)
sys.path[:] = [path for path in sys.path if path != _FOLDER]


def _record(**fields: str) -> None:
    # The file is opened each time, so a killed process loses nothing. If a sandbox forbids writing, the tests go on.
    try:
        with open(os.path.join(_FOLDER, "results.jsonl"), "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")
    except OSError:
        pass


def pytest_configure(config: Any) -> None:
    root = getattr(config, "rootpath", None) or config.rootdir
    _record(runner="pytest", folder=str(root))
    # pytest's header lists plugins. This one is not the project's, so it is hidden.
    plugins = getattr(config.pluginmanager, "_plugin_distinfo", [])
    plugins[:] = [(plugin, about) for plugin, about in plugins if plugin is not sys.modules[__name__]]


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.outcome != "passed":
        _record(name=report.nodeid, outcome=report.outcome, message=_pytest_message(report))


def pytest_collectreport(report: Any) -> None:
    if report.outcome == "failed":
        _record(name=report.nodeid, outcome=report.outcome, message=_pytest_message(report))


def _pytest_message(report: Any) -> str:
    if report.outcome != "failed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(report.longrepr if crash is None else crash.message)[-_CHARS_MAX:]


def _run_unittest() -> None:
    import unittest

    outcomes = {
        "addSuccess": "passed",
        "addSkip": "skipped",
        "addExpectedFailure": "skipped",
        "addUnexpectedSuccess": "failed",
        "addFailure": "failed",
        "addError": "failed",
        "addSubTest": "failed",
    }
    methods = {name: _recording(unittest.TextTestResult, name, outcome) for name, outcome in outcomes.items()}
    _record(runner="unittest", folder=os.getcwd())
    unittest.TextTestRunner.resultclass = type("Result", (unittest.TextTestResult,), methods)
    sys.argv[0] = "python -m unittest"
    unittest.main(module=None)


def _recording(result: Any, name: str, outcome: str) -> Any:
    """A method of unittest's result that also records."""
    from traceback import format_exception_only

    def method(self: Any, test: Any, *rest: Any) -> None:
        getattr(result, name)(self, test, *rest)
        error = rest[-1] if rest and isinstance(rest[-1], tuple) else None
        if name == "addSubTest" and error is None:
            return
        message = "" if error is None else "".join(format_exception_only(error[0], error[1])).strip()
        own = test.id().replace("unittest.loader._FailedTest.", "")
        _record(name=own, outcome=outcome, message=message[-_CHARS_MAX:] if outcome == "failed" else "")

    return method


if __name__ == "__main__":
    _run_unittest()
