// The page as a whole: what is shown, and what the watcher can do.

const REFRESH = 200; // milliseconds between two refreshes of the panel while playing

// The speed at which so many seconds take the watcher four or more, but not less than `least`.
function slowly(lasts, least) {
  return SPEEDS.findLast((speed) => speed <= Math.max(least, lasts / 4));
}

class Player {
  constructor(runs, places, labels) {
    this.clock = new Clock(runs[0].about.duration);
    this.palette = new Palette(() => this.refresh());
    this.camera = new Camera(runs[0].about.area);
    const most = Math.max(1, ...runs.map((run) => run.busiest));
    this.sides = runs.map((run, i) =>
      new Side(run, places[i], labels[i], this.clock, this.camera, this.palette, most, this._actions(i)));
    const [first] = this.sides;
    Object.assign(this, { run: first.run, view: first.view });
    this.panel = new Panel(document.getElementById("panel"));
    this.controls = new Controls(this);
    this.chooseEvent(-1);
    this._begin();
    this.panel.show("run");
    this._at = null; // the frame that was stepped to: {side, place}
    this._refreshed = 0;
    new ResizeObserver(() => this.resize()).observe(first.canvas);
    this.resize();
    requestAnimationFrame((now) => this._animate(now));
  }

  _actions(side) {
    return {
      node: (node) => this.chooseNode(node),
      event: (event) => this.chooseEvent(event, side),
      follow: () => this.follow(),
      watch: () => this.watch(),
      seek: (time) => this.seek(time),
      fates: (name) => this.sides.map((one) => ({ label: one.label, ...one.fate(name) })),
    };
  }

  // --- Drawing ---

  draw() {
    for (const side of this.sides) side.draw(this.clock);
  }

  refresh() {
    this.draw();
    for (const { nodePanel, eventPanel } of this.sides) {
      nodePanel.show(this.clock.time);
      eventPanel.show(this.clock.time);
    }
    this.controls.show(this.clock, this.view, this._at ? this._frameText() : "");
  }

  resize() {
    for (const side of this.sides) side.resize();
    this.refresh();
  }

  _frameText() {
    const { run, label } = this.sides[this._at.side], { numbers } = this.sides[this._at.side].frames();
    const text = run.frameText(numbers ? numbers[this._at.place] : this._at.place);
    return label ? `${label}: ${text}` : text;
  }

  _animate(now) {
    if (this.clock.playing) {
      this._at = null;
      this.clock.tick(now);
      this.draw();
      this.controls.showTime(this.clock);
      if (now - this._refreshed > REFRESH || !this.clock.playing) {
        this._refreshed = now;
        this.refresh();
      }
    }
    requestAnimationFrame((later) => this._animate(later));
  }

  // --- Time ---

  toggle() {
    this.clock.toggle();
    this.refresh();
  }

  seek(time) {
    this._at = null;
    this.clock.seek(time);
    this.refresh();
  }

  // To the next frame or the one before, of all runs; of the chosen event, if one is chosen.
  step(by) {
    const found = this.sides.map((_, side) => this._neighbour(side, by)).filter(Boolean);
    if (this.sides.every((side) => !side.frames().times.length)) return this.skip(by);
    if (!found.length) return undefined;
    // At one time, those of the first run come first.
    const next = found.reduce((best, one) => (by * (one.time - best.time) || by * (one.side - best.side)) < 0 ? one : best);
    this.clock.playing = false;
    this.clock.seek(next.time);
    this._at = { side: next.side, place: next.place };
    this.refresh();
    return undefined;
  }

  // The frame of one run that comes after the one stepped to, or after the clock; before it, if `by` is negative.
  _neighbour(side, by) {
    const { times } = this.sides[side].frames(), { time } = this.clock, at = this._at;
    let place = by > 0 ? upperBound(times, time) : lowerBound(times, time) - 1;
    if (at && side === at.side) place = at.place + by;
    else if (at && by > 0 && side > at.side) place = lowerBound(times, time);
    else if (at && by < 0 && side < at.side) place = upperBound(times, time) - 1;
    return place >= 0 && place < times.length ? { side, place, time: times[place] } : null;
  }

  skip(by) {
    this.seek(this.clock.time + by * Math.max(1, this.clock.end / 100));
  }

  setSpeed(speed) {
    this.clock.setSpeed(speed);
    this.refresh();
  }

  faster(by) {
    const place = SPEEDS.findIndex((speed) => speed >= this.clock.speed * 0.999);
    this.setSpeed(SPEEDS[clamp(place + by, 0, SPEEDS.length - 1)]);
  }

  // --- What is seen ---

  zoom(factor, x, y) {
    this.camera.zoom(factor, x, y);
    this.refresh();
  }

  pan(dx, dy) {
    this.camera.pan(dx, dy);
    this.refresh();
  }

  fit() {
    this.camera.fit();
    this.refresh();
  }

  switch(what) {
    this._set(what, !this.view[what]);
    this.refresh();
  }

  _set(what, value) {
    for (const { view } of this.sides) view[what] = value;
  }

  follow() {
    this.camera.follow = this.camera.follow === this.view.node ? -1 : this.view.node;
    this.refresh();
  }

  hover(x, y) {
    const node = this.sides[0].stage.nodeAt(x, y);
    if (node === this.view.hovered) return;
    this._set("hovered", node);
    for (const { canvas } of this.sides) canvas.classList.toggle("pointing", node >= 0);
    this.draw();
  }

  click(x, y) {
    this.chooseNode(this.sides[0].stage.nodeAt(x, y));
  }

  chooseNode(node) {
    this._set("node", node);
    if (this.camera.follow >= 0) this.camera.follow = node;
    for (const { nodePanel } of this.sides) nodePanel.choose(node);
    if (node >= 0) this.panel.show("node");
    else if (this.panel.shown === "node") this.panel.show(this._stories().length ? "event" : "run");
    this.refresh();
  }

  chooseEvent(event, side = 0) {
    this._at = null;
    const name = event < 0 ? null : this.sides[side].run.about.events[event][0];
    for (const one of this.sides) one.tell(name);
    this.panel.show("event");
    if (name) this.clock.seek(this._lastHeard());
    this.refresh();
  }

  _stories() {
    return this.sides.map(({ view }) => view.story).filter(Boolean);
  }

  _lastHeard() {
    return Math.max(...this._stories().map((story) => story.end));
  }

  nextEvent(by) {
    const count = this.run.event.time.length, current = this.view.story ? this.view.story.event : by > 0 ? -1 : count;
    if (current + by >= 0 && current + by < count) this.chooseEvent(current + by);
  }

  // At the first event, at the speed at which it can be seen to spread: 1/50, or more if it takes minutes.
  _begin() {
    const { event, deliver } = this.run, [published] = event.time;
    if (published === undefined) return;
    const last = deliver.time.subarray(deliver.first[0], deliver.first[1]).reduce((most, time) => Math.max(most, time), published);
    this.clock.seek(published);
    this.clock.setSpeed(slowly(last - published, 0.02));
  }

  // From its publication on, so slowly that one sees it spread.
  watch() {
    const published = Math.min(...this._stories().map((story) => story.published));
    this.clock.seek(published);
    const lasts = this._lastHeard() - published;
    this.clock.setSpeed(slowly(lasts, 0.01));
    this.clock.playing = false;
    this.toggle();
  }

  clear() {
    if (this.view.node >= 0) this.chooseNode(-1);
    else if (this._stories().length) this.chooseEvent(-1);
  }
}
