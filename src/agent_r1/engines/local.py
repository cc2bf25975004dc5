"""The engine that runs in this process: PyTorch, any causal language model of transformers.

1. `generate` appends to the stream and queues a request. Requests that arrive in the same tick of
   the event loop reach the worker together, however busy or idle it is just then, and are served in
   an order that depends on their content alone.
2. A worker thread computes what is missing of the queued streams (`prefill`), then samples all of
   them together (`decode`). An action is handed back the moment it ends.
3. Batching is continuous: when enough rows have ended or enough requests wait, the batch is
   compacted and waiting streams join. Who calls `generate` for all live trajectories at once, as
   the deterministic rollout does, gets batches that depend on nothing but the requests.
4. Keys and values of a stream stay in its slot between its actions. `load` forgets all streams:
   nothing that the old weights computed is ever used with new ones.
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
"""A batch is compacted when this part of its rows, or less, is still active: a compaction costs
about as much as one step."""
_JOIN_AT = 0.25
"""Waiting streams join when they are this part of the batch."""


class LocalEngine:
    """Generates with a model in this process; see `agent_r1.engines.base.Engine`.

    Args:
        device: where the model lives, as torch names it.
        threads: CPU threads of torch; None leaves torch's own choice.
        dtype: ``float32`` or ``bfloat16``; of weights, keys and values. Log-probs are float32.
        max_batch: streams that are sampled at the same time; more wait.
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
        self._model: PreTrainedModel | None = None
        self._positions = 0
        self._streams: dict[str, TokenStream] = {}
        self._arriving: dict[asyncio.AbstractEventLoop, list[GenerationRequest]] = {}
        """Requests of a tick that is not over; the worker must not see a part of it."""
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

        Raises:
            EngineError: a generation is running.
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
            self._model = model.to(self._device).eval().requires_grad_(False)
            self._make_caches()
            self.weight_version = version

    def _make_caches(self) -> None:
        config = self._model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"}:
            raise UnsupportedModelError(
                "the local engine runs models with full attention only; model.path has "
                f"{', '.join(sorted(kinds))}: set model.path to another model"
            )
        width = getattr(config, "head_dim", None)
        shape = CacheShape(
            layers=config.num_hidden_layers,
            heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
            head_dim=width or config.hidden_size // config.num_attention_heads,
            dtype=self._dtype,
            device=self._device,
        )
        self._positions = config.max_position_embeddings
        with torch.inference_mode():
            self._pool = SlotPool(shape)
            self._prefill_cache, decode_cache = WorkingCache(shape), WorkingCache(shape)
        self._batch = DecodeBatch(self._model, self._pool, decode_cache)

    async def generate(
        self, stream: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """Append tokens to the stream (opened if unknown), then sample an action.

        Raises:
            EngineError: no weights are loaded, or the stream is generating already.
            ValueError: nothing to continue, an unknown token id, or more positions than the model
                was built for.
        """
        request = self._queue(stream, [int(token) for token in new_token_ids], sampling)
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
                # One tick later: whoever else asks in this tick is in the same batch.
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
        if self._model is None or not self.weight_version:
            raise EngineError("the engine has no weights: call load() first")
        known = self._streams.get(name)
        if known is not None and known.busy:
            raise EngineError(f"stream '{name}' is generating already")
        length = (len(known.visible) if known else 0) + len(tokens)
        if not length:
            raise ValueError(f"stream '{name}' has no tokens to continue")
        vocabulary = self._model.config.get_text_config().vocab_size
        if tokens and not 0 <= min(tokens) <= max(tokens) < vocabulary:
            raise ValueError(f"stream '{name}': token ids must be in [0, {vocabulary})")
        if length + sampling.max_tokens > self._positions:
            raise ValueError(
                f"stream '{name}' would reach {length + sampling.max_tokens} tokens, but the model"
                f" was built for {self._positions} (max_position_embeddings)"
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

    def fork(self, stream: str, into: Sequence[str]) -> None:
        """New streams that start as copies of ``stream``, keys and values included."""
        with self._lock, torch.inference_mode():
            source = self._idle(stream)
            taken = [name for name in into if name in self._streams]
            if taken or len(set(into)) < len(into):
                raise EngineError(f"cannot fork '{stream}' into {list(into)}: names must be new")
            forks = [source.forked(name, self._pool.open()) for name in into]
            if forks and source.cached:
                self._pool.copy(source.slot, [fork.slot for fork in forks], source.cached)
            self._streams.update((fork.name, fork) for fork in forks)

    def window(
        self, stream: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Move the visible window; what stands behind the first change is computed again."""
        with self._lock:
            self._idle(stream).show(prefix, start, drops)

    def close(self, stream: str) -> None:
        """Forget the stream and free its slot. Unknown streams are ignored."""
        with self._lock:
            known = self._streams.pop(stream, None)
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
        """Let waiting requests join the batch; False, and idle, if there is nothing to do."""
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
        """Sample until the batch is worth compacting, or enough requests wait to join."""
        batch, rows = self._batch, len(self._batch.requests)
        while batch.active:
            self._deliver(batch.step())
            room = batch.active < self.max_batch
            if batch.active <= _COMPACT_AT * rows:
                return
            if room and len(self._pending) >= _JOIN_AT * rows:
                return

    def _deliver(self, results: Sequence[tuple[GenerationRequest, Generation]]) -> None:
        """Hand actions back to the tasks that wait for them; one call for each event loop."""
        with self._lock:
            for request, _ in results:
                self._finish(request)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[GenerationRequest, Generation]]] = {}
        for request, generation in results:
            by_loop.setdefault(request.loop, []).append((request, generation))
        for loop, own in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(deliver, own)

    def _finish(self, request: GenerationRequest) -> None:
        request.stream.busy = False
        if request.stream.closed:
            self._pool.release(request.stream.slot)

    def _fail(self, error: BaseException) -> None:
        """Everyone who waits gets the error; streams in doubt are forgotten."""
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
            if not request.loop.is_closed():
                request.loop.call_soon_threadsafe(request.reject, error)
