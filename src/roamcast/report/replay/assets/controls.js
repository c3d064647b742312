// Buttons, keys, and the pointer on the picture.

const SPEEDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

class Controls {
  constructor(player) {
    this._player = player;
    const on = (id, action) => document.getElementById(id).addEventListener("click", action);
    on("play", () => player.toggle());
    on("back", () => player.step(-1));
    on("next", () => player.step(1));
    on("zoom-in", () => player.zoom(1.4));
    on("zoom-out", () => player.zoom(1 / 1.4));
    on("fit", () => player.fit());
    for (const what of ["links", "ranges", "numbers"]) on(what, () => player.switch(what));
    this._speed = document.getElementById("speed");
    this._speed.max = SPEEDS.length - 1;
    this._speed.addEventListener("input", () => player.setSpeed(SPEEDS[this._speed.value]));
    addEventListener("keydown", (event) => this._key(event));
    for (const { canvas } of player.sides) this._pointer(canvas);
    this._frame = document.getElementById("frame");
    this._clock = document.getElementById("clock");
  }

  show(clock, view, frameText) {
    const place = SPEEDS.findIndex((speed) => speed >= clock.speed * 0.999);
    this._speed.value = place < 0 ? SPEEDS.length - 1 : place;
    const text = clock.speed >= 1 ? `${clock.speed}×` : `1/${Math.round(1 / clock.speed)}×`;
    document.getElementById("speed-text").textContent = text;
    this._speed.setAttribute("aria-valuetext", text);
    const play = document.getElementById("play");
    play.setAttribute("aria-pressed", clock.playing);
    play.textContent = clock.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", clock.playing ? "Pause" : "Play");
    for (const what of ["links", "ranges", "numbers"]) document.getElementById(what).setAttribute("aria-pressed", view[what]);
    this._frame.textContent = frameText;
    this.showTime(clock);
  }

  showTime(clock) {
    const digits = !clock.playing || clock.speed < 0.2 ? 6 : clock.speed < 2 ? 2 : 0;
    const text = clockText(clock.time, digits);
    if (text !== this._time) this._clock.textContent = this._time = text; // each change lays the page out again
  }

  _key(event) {
    if (event.target.matches("input[type=search], input[type=number]") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === this._speed && event.key.startsWith("Arrow")) return; // they move the slider
    const player = this._player, far = event.shiftKey;
    const actions = {
      " ": () => player.toggle(),
      ArrowRight: () => (far ? player.skip(1) : player.step(1)),
      ArrowLeft: () => (far ? player.skip(-1) : player.step(-1)),
      ArrowUp: () => player.faster(1),
      ArrowDown: () => player.faster(-1),
      Home: () => player.seek(0),
      End: () => player.seek(Infinity),
      "+": () => player.zoom(1.4),
      "-": () => player.zoom(1 / 1.4),
      0: () => player.fit(),
      l: () => player.switch("links"),
      r: () => player.switch("ranges"),
      n: () => player.switch("numbers"),
      f: () => player.follow(),
      e: () => player.nextEvent(far ? -1 : 1),
      E: () => player.nextEvent(-1),
      Escape: () => player.clear(),
    };
    const action = actions[event.key];
    if (!action) return;
    // On a focused button the space bar would press it too.
    if (event.key === " " && event.target.matches("button, input")) event.target.blur();
    event.preventDefault();
    action();
  }

  _pointer(canvas) {
    const player = this._player, held = new Map();
    let moved = 0, spread = 0;
    const place = (event) => [event.offsetX, event.offsetY];
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, place(event));
      moved = 0;
      spread = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId), now = place(event);
      if (!before) return player.hover(...now);
      held.set(event.pointerId, now);
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (held.size === 2) {
        const [[ax, ay], [bx, by]] = [...held.values()], wide = Math.hypot(ax - bx, ay - by);
        if (spread) player.zoom(wide / spread, (ax + bx) / 2, (ay + by) / 2);
        spread = wide;
      } else if (moved > 4) player.pan(now[0] - before[0], now[1] - before[1]);
    });
    const release = (event) => {
      if (held.delete(event.pointerId) && event.type === "pointerup" && moved <= 4) player.click(...place(event));
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      player.zoom(Math.exp(-event.deltaY / 400), ...place(event));
    }, { passive: false });
  }
}
