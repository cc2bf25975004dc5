"""Code rewards: whether a solution passes hidden tests.

1. There are two sandboxes. In one, the solution runs and answers calls. In the other, the tester
   runs the tests. Two pipes connect them; they share nothing else.
2. The pipes carry calls with plain arguments, and plain values back (`inside.values`). The tests
   compare values in a process that never runs code of the solution, so the solution cannot patch
   an ``assert``, a built-in, ``check`` or a frame there. Whatever it does to its own process, it
   can only answer, and an answer that the tests accept is a solution.
3. A solution passes if the tester says so, with a number that only the tester was given, after the
   tests called the solution and ran to their end. Silence, an early exit and a crash are failures.

Arguments are passed by value. If a function returns None, the tests also get its changes to lists,
dictionaries and objects of the task's own classes.

Limits: tests cannot pass functions; such tests are unusable and give no score. An iterator is sent
as all its items, so an endless one fails. An object of a class that neither the task defines nor
``classes`` names can be passed on, but fails in any comparison.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import time
from collections.abc import Collection
from pathlib import Path

from agent_r1.tools.sandbox.launch import MAIN
from agent_r1.tools.sandbox.levels import isolation, level_for
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.process import START_S, Confined, Ended
from agent_r1.tools.sandbox.result import SandboxUnavailable, TestsUnusable, Verdict


def run_tests(
    solution: str,
    tests: str,
    *,
    entry_point: str | None,
    prelude: str = "",
    classes: Collection[str] = (),
    parameters: SandboxParameters | None = None,
) -> Verdict:
    """Test a solution by hidden tests.

    Args:
        solution: the whole program, for HumanEval the prompt with its completion.
        tests: HumanEval's ``test`` (defines ``check(candidate)``), or MBPP's list of assertions
            joined by newlines.
        entry_point: the function under test. None: every name that the tests use, and neither
            they nor Python define; so a function with the name of a built-in must be given.
        prelude: code that the task gives and the tests may use: HumanEval's ``prompt``, MBPP's
            ``test_setup_code``. What it defines is the task's, not the solution's.
        classes: names of classes that a solution must define, because the tests construct them.
            Attributes, methods and comparisons of these objects are the solution's.
        parameters: limits of each of the two processes; ``timeout_s`` covers all calls together,
            from the first one on.

    Raises:
        SandboxUnavailable: this machine does not support the isolation asked for; with ``auto``,
            also if programs could read this user's files, including the tests.
        TestsUnusable: no solution can pass: the task is at fault.
        SandboxError: the sandbox failed, which says nothing about the solution.
    """
    parameters = parameters or SandboxParameters()
    level = _level(parameters)
    begin = time.monotonic()
    number = secrets.token_hex(16)
    task = {
        "prelude": prelude,
        "tests": tests,
        "entry_point": entry_point,
        "classes": list(classes),
        "number": number,
        "timeout_s": parameters.timeout_s,
    }
    solution_end, tester_end = _run_both(level, solution, json.dumps(task), parameters)
    outcome, detail = _read(tester_end, number)
    if outcome == "unusable":
        raise TestsUnusable(f"the tests cannot be used: {detail}")
    reason = _reason(outcome, detail, solution_end)
    return Verdict(outcome == "passed", reason, time.monotonic() - begin)


def _level(parameters: SandboxParameters) -> Level:
    level = level_for(parameters)
    if parameters.isolation == "auto" and not isolation().hides_files:
        raise SandboxUnavailable(
            "this kernel has no Landlock, so solutions could read the tests from this user's "
            "files; install bubblewrap, or set isolation: rlimits if there is nothing to read"
        )
    return level


def _run_both(
    level: Level, solution: str, task: str, parameters: SandboxParameters
) -> tuple[Ended, Ended]:
    # The tester measures the time from its first call: start-up is not the solution's fault.
    patient = parameters.model_copy(update={"timeout_s": parameters.timeout_s + START_S})
    with contextlib.ExitStack() as stack:
        calls_out, calls_in = os.pipe()
        answers_out, answers_in = os.pipe()
        with contextlib.ExitStack() as ends:
            for descriptor in (calls_out, calls_in, answers_out, answers_in):
                ends.callback(os.close, descriptor)
            tested = stack.enter_context(
                Confined(
                    level,
                    {**_program("solution", "messages", "values"), "solution.txt": solution},
                    patient,
                    stdin=calls_out,
                    stdout=answers_in,
                )
            )
            tester = stack.enter_context(
                Confined(
                    level,
                    {**_program("tester", "channel", "messages", "values"), "task.json": task},
                    patient,
                    stdin=answers_out,
                    stdout=calls_in,
                )
            )
        verdict = tester.finish()
        tested.stop()
        return tested.finish(), verdict


@functools.cache
def _program(name: str, *modules: str) -> dict[str, str]:
    inside = Path(__file__).parent / "inside"
    sources = {MAIN: name} | {f"{module}.py": module for module in modules}
    return {
        file: (inside / f"{source}.py").read_text(encoding="utf-8")
        for file, source in sources.items()
    }


def _read(tester: Ended, number: str) -> tuple[str, str]:
    """(outcome, detail) from the tester; anything other than a verdict is a failure."""
    try:
        verdict = json.loads(tester.stderr)
    except ValueError:
        return "no verdict", ""
    if tester.status != "ok" or verdict.get("number") != number:
        return "no verdict", ""
    return verdict["outcome"], verdict["detail"]


def _reason(outcome: str, detail: str, tested: Ended) -> str:
    if outcome == "passed":
        return "passed"
    if outcome == "wrong":
        return "wrong answer"
    if outcome == "raised":
        return f"raised {detail}"
    if tested.status == "timeout":
        return "used more processor time than allowed"
    if tested.status in ("memory", "disk", "processes"):
        return f"used more {tested.status} than allowed"
    if outcome == "gone":
        return f"no answer: {detail}"
    return "the tests did not end"
