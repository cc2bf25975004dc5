"""x"""
from agent_r1.tools.sandbox.levels import Isolation, isolation
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.result import (
    SandboxError,
    SandboxResult,
    SandboxUnavailable,
    Status,
    TestsUnusable,
    Verdict,
)
from agent_r1.tools.sandbox.sandbox import Sandbox
from agent_r1.tools.sandbox.verdict import arun_tests, run_tests
