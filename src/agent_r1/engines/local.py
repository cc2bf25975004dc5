"""The engine in this process: PyTorch, with any causal language model of transformers.

1. `generate` appends to the stream and queues a request. All requests of one tick of the event
   loop reach the worker thread together, whether it is busy or idle, and are sorted by their
   content. So their order does not depend on timing.
2. The worker computes the missing keys and values of the queued streams (`prefill`), then samples
   all of them together (`decode`). It returns an action as soon as the action ends.
3. Batching is continuous: when enough rows have ended or enough requests wait, the batch is
   compacted, and waiting streams join. If `generate` is called for all live trajectories in one
   tick, as in the deterministic rollout, batches depend only on the requests.
4. A stream's keys and values stay in its slot between actions. `load` forgets all streams, so
   nothing that old weights computed is used with new ones.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from agent_r1.engines.base import EngineError, Generation, Sampling, UnsupportedModelError
from agent_r1.engines.cache import CacheShape, SlotPool, WorkingCache
from agent_r1.engines.decode import DecodeBatch
from agent_r1.engines.prefill import prefill
from agent_r1.engines.stream import GenerationRequest, TokenStream, deliver

_COMPACT_AT = 0.75
"""Compact a batch when at most this share of its rows is active. A compaction costs about as much
as one step."""
_JOIN_AT = 0.25
"""Let waiting streams join when their number is at least this share of the batch."""


class LocalEngine:
    """Generates with a model in this process; see `agent_r1.engines.base.Engine`.

    Args:
        device: torch's name of the model's device.
        threads: CPU threads of torch; None for torch's default.
        dtype: of weights, keys and values: ``float32`` or ``bfloat16``. Log-probs are float32.
        max_batch: number of streams that are sampled at the same time. More requests wait.
    """

    def __init__(
        self,
        device: str = "cpu",
        threads: int | None = None,
        dtype: str = "float32",
        max_batch: int = 512,
    ) -> None:
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, got {max_batch}")
        self.weight_version = ""
        self.max_batch = max_batch
        self._device = torch.device(device)
        self._dtype = getattr(torch, dtype)
        self._threads = threads
        self._model: PreTrainedModel  # set by `load`, as are the caches and the batch
        self._positions = 0
        self._streams: dict[str, TokenStream] = {}
        self._arriving: dict[asyncio.AbstractEventLoop, list[GenerationRequest]] = {}
        """Requests of unfinished ticks. The worker must not see only a part of a tick."""
        self._pending: list[GenerationRequest] = []
        self._joining: list[GenerationRequest] = []
        self._working = False
        self._lock = threading.RLock()
        self._rest = threading.Condition(self._lock)
        """Notified when the worker has nothing left to do."""
        self._executor = ThreadPoolExecutor(1, "engine", self._start_worker)

    def _start_worker(self) -> None:
        if self._threads is not None:
            torch.set_num_threads(self._threads)

    def load(self, policy: Path, version: str) -> None:
        """Load the weights of a Hugging Face folder (safetensors only) and forget all streams.

        Does nothing if ``version`` is loaded already.

        Raises:
            EngineError: a stream is generating.
            UnsupportedModelError: the model has layers without full attention.
        """
        if version and version == self.weight_version:
            return
        with self._lock:
            if self._pending or any(stream.busy for stream in self._streams.values()):
                raise EngineError("cannot load weights while streams are generating")
            self._rest.wait_for(lambda: not self._working)
            self.weight_version = ""
            self._streams.clear()
            model = AutoModelForCausalLM.from_pretrained(
                Path(policy),
                dtype=self._dtype,
                attn_implementation="sdpa",
                use_safetensors=True,
                local_files_only=True,
            )
            # The decorator of transformers' `to` hides its `self` from the type checker.
            moved = model.to(self._device)  # type: ignore[arg-type]
            self._model = moved.eval().requires_grad_(False)
            self._make_caches()
            self.weight_version = version

    def _make_caches(self) -> None:
        config = self._model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"}:
            raise UnsupportedModelError(
                "the local engine runs only models with full attention; model.path has "
                f"{', '.join(sorted(kinds))}: set model.path to another model"
            )
        shape = CacheShape.of(config, self._dtype, self._device)
        self._positions = config.max_position_embeddings
        with torch.inference_mode():
            self._pool = SlotPool(shape)
            self._prefill_cache, decode_cache = WorkingCache(shape), WorkingCache(shape)
        self._batch = DecodeBatch(self._model, self._pool, decode_cache)

    async def generate(
        self, session: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """Append tokens to the stream, then sample an action. Opens unknown streams.

        Raises:
            EngineError: no weights are loaded, or the stream is generating already.
            ValueError: the stream has no tokens, a token id is unknown, or the action could exceed
                the model's maximal length.
        """
        request = self._queue(session, [int(token) for token in new_token_ids], sampling)
        return await request.future

    def _queue(self, name: str, tokens: list[int], sampling: Sampling) -> GenerationRequest:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._check(name, tokens, sampling)
            stream = self._streams.get(name) or self._open(name)
            stream.append(tokens)
            stream.busy = True
            request = GenerationRequest(
                stream, sampling, loop.create_future(), loop, len(stream.visible), stream.cached
            )
            if loop not in self._arriving:
                self._arriving[loop] = []
                # One tick later, so that all requests of this tick are in one batch.
                loop.call_soon(self._end_tick, loop)
            self._arriving[loop].append(request)
        return request

    def _end_tick(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._pending += self._arriving.pop(loop, [])
            if self._pending and not self._working:
                self._working = True
                self._executor.submit(self._work)

    def _check(self, name: str, tokens: list[int], sampling: Sampling) -> None:
        if not self.weight_version:
            raise EngineError("the engine has no weights; call load() first")
        known = self._streams.get(name)
        if known is not None and known.busy:
            raise EngineError(f"stream '{name}' is generating already")
        length = (len(known.visible) if known else 0) + len(tokens)
        if not length:
            raise ValueError(f"stream '{name}' has no tokens to continue")
        vocabulary = self._model.config.get_text_config().vocab_size
        if tokens and not 0 <= min(tokens) <= max(tokens) < vocabulary:
            raise ValueError(f"stream '{name}': a token id is not in [0, {vocabulary})")
        if length + sampling.max_tokens > self._positions:
            raise ValueError(
                f"stream '{name}' could reach {length + sampling.max_tokens} tokens, but the model"
                f" has {self._positions} positions (max_position_embeddings)"
            )

    def _open(self, name: str) -> TokenStream:
        with torch.inference_mode():
            stream = self._streams[name] = TokenStream(name, self._pool.open())
        return stream

    def _idle(self, name: str) -> TokenStream:
        stream = self._streams.get(name)
        if stream is None:
            raise EngineError(f"unknown stream '{name}'")
        if stream.busy:
            raise EngineError(f"stream '{name}' is generating")
        return stream

    def fork(self, session: str, into: Sequence[str]) -> None:
        """Open streams as copies of ``session``, including its keys and values.

        Raises:
            EngineError: ``session`` is unknown or generating, or a new name is taken.
        """
        with self._lock, torch.inference_mode():
            source = self._idle(session)
            taken = [name for name in into if name in self._streams]
            if taken or len(set(into)) < len(into):
                raise EngineError(f"cannot fork '{session}' into {list(into)}: names must be new")
            forks = [source.forked(name, self._pool.open()) for name in into]
            if forks and source.cached:
                self._pool.copy(source.slot, [fork.slot for fork in forks], source.cached)
            self._streams.update((fork.name, fork) for fork in forks)

    def window(
        self, session: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Move the visible window. Keys and values after the first change are computed again.

        Raises:
            EngineError: ``session`` is unknown or generating.
        """
        with self._lock:
            self._idle(session).show(prefix, start, drops)

    def close(self, session: str) -> None:
        """Forget the stream and free its slot. Unknown streams are ignored."""
        with self._lock:
            known = self._streams.pop(session, None)
            if known is not None:
                known.closed = True
                if not known.busy:
                    self._pool.release(known.slot)

    def _work(self) -> None:
        try:
            with torch.inference_mode():
                while self._admit():
                    self._decode()
        except BaseException as error:
            self._fail(error)

    def _admit(self) -> bool:
        """Let waiting requests join the batch. If there is no work: become idle, return False."""
        batch = self._batch
        batch.compact()
        with self._lock:
            waiting = sorted(self._pending, key=lambda request: request.order)
            room = self.max_batch - batch.active
            joining, self._pending = waiting[:room], waiting[room:]
            if not joining and not batch.active:
                self._working = False
                self._rest.notify_all()
                return False
            self._joining = joining
        if joining:
            self._pool.reserve(0, max(request.last_position for request in joining) + 1)
            streams = [request.stream for request in joining]
            prefill(self._model, streams, self._pool, self._prefill_cache)
            batch.admit([one for one in joining if one.sampling.max_tokens >= 1])
            only_appended = [one for one in joining if one.sampling.max_tokens < 1]
            self._deliver([(request, request.generation([], [])) for request in only_appended])
        return True

    def _decode(self) -> None:
        """Sample until the batch should be compacted or enough requests wait to join."""
        batch, rows = self._batch, len(self._batch.requests)
        while batch.active:
            self._deliver(batch.step())
            room = batch.active < self.max_batch
            if batch.active <= _COMPACT_AT * rows:
                return
            if room and len(self._pending) >= _JOIN_AT * rows:
                return

    def _deliver(self, results: Sequence[tuple[GenerationRequest, Generation]]) -> None:
        """Give finished actions to the tasks that wait for them."""
        with self._lock:
            for request, _ in results:
                self._finish(request)
        deliver(results)

    def _finish(self, request: GenerationRequest) -> None:
        request.stream.busy = False
        if request.stream.closed:
            self._pool.release(request.stream.slot)

    def _fail(self, error: BaseException) -> None:
        """Raise the error in all waiting tasks and forget all streams."""
        with self._lock:
            arriving = [request for tick in self._arriving.values() for request in tick]
            failed = [*self._batch.requests, *self._joining, *self._pending, *arriving]
            self._pending = []
            self._arriving.clear()
            self._working = False
            self._streams.clear()
            self._make_caches()
            self._rest.notify_all()
        for request in failed:
            request.reject(error)
