"""What the model of a `LocalEngine` was really given: tokens and positions, forward by forward."""

from __future__ import annotations

from typing import Any

from agent_r1.engines import prefill
from agent_r1.engines.decode import DecodeBatch
from agent_r1.engines.local import LocalEngine


class ModelSpy:
    """Remembers for each session which token the model last computed at each position."""

    def __init__(self, engine: LocalEngine, monkeypatch: Any) -> None:
        self.seen: dict[str, list[list[int]]] = {}
        """By session: what stood before each of its actions."""
        self._memory: dict[str, dict[int, int]] = {}
        self._rows: list[tuple[str, int]] = []
        """Session and number of tokens that count, of each row of the next forward."""
        monkeypatch.setattr(prefill, "_compute", self._around_prefill(prefill._compute))
        monkeypatch.setattr(DecodeBatch, "step", self._around_step(DecodeBatch.step))
        monkeypatch.setattr(engine, "fork", self._around_fork(engine.fork))
        engine._model.register_forward_pre_hook(self._forward, with_kwargs=True)

    def _around_prefill(self, compute: Any) -> Any:
        def run(model: Any, bucket: Any, pool: Any, cache: Any) -> None:
            self._rows = [(one.name, prefill.missing(one)) for one in bucket]
            compute(model, bucket, pool, cache)

        return run

    def _around_step(self, step: Any) -> Any:
        def run(batch: DecodeBatch) -> Any:
            active = batch._rows.active.tolist()
            first = (batch._rows.count == 0).tolist()
            names = [request.stream.name for request in batch.requests]
            self._rows = [(name, int(on)) for name, on in zip(names, active, strict=True)]
            begins = [
                (request.stream.name, request.prompt_tokens)
                for request, on, new in zip(batch.requests, active, first, strict=True)
                if on and new
            ]
            results = step(batch)
            for name, length in begins:
                memory = self._memory[name]
                self.seen.setdefault(name, []).append([memory[i] for i in range(length)])
            return results

        return run

    def _around_fork(self, fork: Any) -> Any:
        def run(session: str, into: Any) -> None:
            fork(session, into)
            for name in into:
                self._memory[name] = dict(self._memory[session])

        return run

    def _forward(self, model: Any, args: Any, inputs: dict[str, Any]) -> None:
        tokens, positions = inputs["input_ids"].tolist(), inputs["position_ids"].tolist()
        for (name, count), row, places in zip(self._rows, tokens, positions, strict=True):
            pairs = list(zip(places, row, strict=True))[:count]
            self._memory.setdefault(name, {}).update(pairs)
