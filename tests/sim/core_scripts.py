"""Generated work for a core: settings, movement, links and sends, and a log of everything it answers.

The script reacts to upcalls with further sends and withdrawals, drawn from its own stream, so that two cores whose
answers differ anywhere drift apart for good.
"""

from random import Random
from typing import Any

from roamcast.sim.core.interface import EVERYONE, FIRST_HOST_KIND, Core, Settings, Told, Upcall
from roamcast.sim.known import subjects_followed
from roamcast.units import SECOND

KINDS = FIRST_HOST_KIND + 2
FOLLOWED = FIRST_HOST_KIND
"""A kind of which nodes are told only if they do not know the subject."""


def settings_for(rng: Random) -> Settings:
    nodes = rng.choice([2, 3, 5, 8, 20, 45])
    links = rng.random() < 0.2
    per_frame = not links and rng.random() < 0.3
    background = rng.random() < 0.4
    return Settings(
        nodes=nodes,
        seed=rng.randrange(2**40),
        kinds=KINDS,
        record=rng.random() < 0.5,
        links=links,
        width=400.0,
        height=300.0,
        sense=rng.choice([1.0, 2.2]),
        range_low=60.0 if per_frame else 0.0,
        range_high=150.0 if per_frame else 0.0,
        surroundings=not links and rng.random() < 0.2,
        capture=rng.random() < 0.5,
        threshold=rng.choice([10.0, 3.0, 0.5]),
        loss=rng.choice([0.0, 0.0, 0.3]),
        ideal=rng.random() < 0.15,
        kbps=rng.choice([1000, 2000, 5500, 11000]),
        basic_kbps=rng.choice([1000, 2000]),
        mtu=rng.choice([200, 1472]),
        cca=rng.choice([0, 4_000, 15_000, 70_000]),
        retries=rng.choice([0, 2, 7]),
        queue=rng.choice([1, 3, 50]),
        background_interval=rng.choice([SECOND // 50, SECOND // 7]) if background else 0,
        background_size=rng.choice([20, 300]),
        background_flood=background and rng.random() < 0.7,
        background_jitter=rng.choice([0, SECOND // 100]),
        overhear=background,
    )


class Script:
    """Drives one core through one generated story."""

    def __init__(self, core: Core, settings: Settings, seed: int) -> None:
        self.core = core
        self.settings = settings
        self.rng = Random(seed)
        self.log: list[Any] = []
        self.free = list(range(60))
        self.held: dict[int, int] = {}  # handle -> release; -1 if its node has forgotten it
        self.owner: dict[int, int] = {}
        self.bulks: set[int] = set()  # handles
        self.switching = self.rng.random() < 0.5
        self.off: set[int] = set()
        self.walls = self.rng.random() < 0.3
        core.follow(FOLLOWED + 1, False)
        core.follow(FOLLOWED, seed % 4 > 0)
        for node in range(settings.nodes):
            core.set_range(node, self.rng.uniform(60, 150))
            self.move(node, 0)
        for a in range(settings.nodes if settings.links else 0):
            for b in range(settings.nodes):
                if a != b and self.rng.random() < 0.3:
                    core.set_link(a, b, self.rng.choice([0.0, 0.0, 0.4]))

    def move(self, node: int, now: int) -> None:
        place = self.rng.uniform(-20, 420), self.rng.uniform(-20, 320)
        speed = self.rng.choice([(0.0, 0.0), (self.rng.uniform(-3e-8, 3e-8), self.rng.uniform(-3e-8, 3e-8))])
        self.core.set_leg(node, now, *place, *speed)

    def change_room(self) -> None:
        self.core.set_room(self.rng.randrange(self.settings.nodes), self.rng.choice([-1, -1, 0, 1]))

    def send(self, now: int) -> None:
        if not self.free:
            return
        rng, nodes = self.rng, self.settings.nodes
        node, handle = rng.randrange(nodes), self.free.pop()
        to = EVERYONE if rng.random() < 0.5 else rng.choice([n for n in range(nodes) if n != node])
        delay = rng.choice([0, 0, rng.randrange(20_000_000)])
        size = rng.choice([1, 30, 256, 700, 4000, 20_000]) if rng.random() < 0.9 else 0
        kind, urgent = rng.choice([2, 3]), rng.random() < 0.2
        if to == EVERYONE and rng.random() < 0.2:
            pieces = rng.choice([1, 2, 7, 62])
            self.core.send_bulk(node, handle, pieces, rng.choice([40, 600]), 30, kind, now + delay, urgent)
            self.bulks.add(handle)
        else:
            self.bulks.discard(handle)
            if to == EVERYONE and kind == FOLLOWED:
                told = rng.choice(list(Told))
                self.core.send(node, handle, to, size, kind, now + delay, urgent, told, self.subject())
            else:
                self.core.send(node, handle, to, size, kind, now + delay, urgent)
            if rng.random() < 0.2:
                self.core.know(rng.choice([FOLLOWED, kind]), node, self.subject(), rng.random() < 0.7)
        self.held[handle] = now + delay
        self.owner[handle] = node

    def subject(self) -> int:
        """Mostly one of a few; now and then one that takes the place of another."""
        return self.rng.randrange(1, 7) + (self.rng.random() < 0.05) * subjects_followed(self.settings.nodes)

    def switch(self) -> None:
        """Somebody goes off or comes back; now and then also who is off already, or on."""
        node = self.rng.randrange(self.settings.nodes)
        on, keep_queue = (node in self.off) != (self.rng.random() < 0.1), self.rng.random() < 0.5
        self.core.set_on(node, on, keep_queue)
        (self.off.discard if on else self.off.add)(node)
        if on and self.rng.random() < 0.5:
            self.core.begin_again(FOLLOWED, node)
        if not on and not keep_queue:
            self.held.update((handle, -1) for handle in self.held if self.owner[handle] == node)

    def act(self, now: int) -> None:
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            self.send(now)
        delayed = [handle for handle, release in self.held.items() if release > now]
        if delayed and self.rng.random() < 0.1:
            handle = self.rng.choice(delayed)
            self.core.withdraw(handle)
            self.over(handle)
        if self.switching and self.rng.random() < 0.2:
            self.switch()

    def over(self, handle: int) -> None:
        del self.held[handle]
        self.free.append(handle)

    def run(self, seconds: float) -> list[Any]:
        core, rng = self.core, self.rng
        end, until = round(seconds * SECOND), 0
        while core.now < end:
            if core.now >= until:
                until = core.now + rng.randrange(1, 50_000_000)
                for _ in range(rng.choice([0, 3, 12])):
                    self.send(core.now)
                if rng.random() < 0.3:
                    self.move(rng.randrange(self.settings.nodes), core.now)
                if self.switching:
                    self.switch()
                if self.walls:
                    self.change_room()
            upcall = core.advance(until)
            if core.over:
                self.log.append((core.now, "over", core.over))
                for handle in core.over:
                    self.over(handle)
            if upcall is Upcall.REACHED:
                self.log.append((core.now, core.take_series()))
                continue
            receivers = core.receivers if upcall in (Upcall.BROADCAST, Upcall.DELIVERED) else None
            if upcall is Upcall.FRAME:
                self.log.append((core.now, upcall, core.frame))
                continue
            spent = core.spent if upcall not in (Upcall.DELIVERED, Upcall.DROPPED) else None
            assert not self.off.intersection(receivers or ()), "received by a node that is off"
            masks = core.masks if upcall is Upcall.BROADCAST and core.handle in self.bulks else None
            self.log.append((core.now, upcall, core.sender, core.handle, receivers, masks, spent))
            if upcall is not Upcall.DELIVERED:
                self.over(core.handle)
            self.act(core.now)
        if self.settings.overhear:
            everybody = range(self.settings.nodes)
            self.log.append([[core.overheard(node, sender) for sender in everybody] for node in everybody])
        self.log.append(core.skipped(FOLLOWED))
        self.log.append(core.totals())
        return self.log
