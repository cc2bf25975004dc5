from __future__ import annotations

import asyncio

from agent_r1.rollout.turnstile import Room, Turnstile


def test_members_pass_in_order_when_all_have_arrived():
    passed = []

    async def member(turnstile: Turnstile, name: str, late: int):
        for _ in range(late):
            await asyncio.sleep(0)
        assert passed == []
        await turnstile.arrive(name)
        passed.append(name)

    async def run():
        turnstile = Turnstile(3)
        await asyncio.gather(*(member(turnstile, n, 9 - i) for i, n in enumerate("cab")))

    asyncio.run(run())
    assert passed == ["a", "b", "c"]


def test_a_member_that_left_is_not_awaited():
    rounds = []

    async def member(turnstile: Turnstile, name: str, times: int):
        for number in range(times):
            await turnstile.arrive(name)
            rounds.append((number, name))
        turnstile.leave()

    async def run():
        turnstile = Turnstile(3)
        await asyncio.gather(*(member(turnstile, n, t) for n, t in (("c", 1), ("a", 3), ("b", 2))))

    asyncio.run(run())
    assert rounds == [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "b"), (2, "a")]


def test_a_room_never_exceeds_its_size_and_serves_first_come_first():
    inside, entered = 0, []

    async def visitor(room: Room, name: str, count: int):
        nonlocal inside
        await room.enter(count)
        entered.append(name)
        inside += count
        assert inside <= 4
        await asyncio.sleep(0)
        inside -= count
        room.leave(count)

    async def run():
        room = Room(4)
        parties = (("a", 3), ("b", 2), ("c", 1), ("d", 4))
        await asyncio.gather(*(visitor(room, name, count) for name, count in parties))

    asyncio.run(run())
    assert entered == ["a", "b", "c", "d"]
