// The page as a whole: what is shown, and what the watcher can do.

const REFRESH = 200; // milliseconds between two refreshes of the panel while playing

class Player {
  constructor(run) {
    this.run = run;
    this.clock = new Clock(run.about.duration);
    this.view = { links: true, ranges: false, numbers: true, node: -1, hovered: -1, story: null };
    this.palette = new Palette(() => this.refresh());
    this.camera = new Camera(run.about.area);
    this.stage = new Stage(document.getElementById("stage"), run, this.camera, this.palette, this.view);
    const seek = (time) => this.seek(time);
    this.timeline = new Timeline(document.getElementById("timeline"), run, this.clock, this.palette, this.view, seek);
    const actions = {
      node: (node) => this.chooseNode(node),
      event: (event) => this.chooseEvent(event),
      follow: () => this.follow(),
      watch: (story) => this.watch(story),
      seek,
    };
    this.panel = new Panel(document.getElementById("panel"));
    this.nodePanel = new NodePanel(document.getElementById("about-node"), run, actions);
    this.eventPanel = new EventPanel(document.getElementById("about-event"), run, this.palette, actions);
    this.controls = new Controls(this);
    this._frame = -1; // the one that was stepped to
    this._refreshed = 0;
    new ResizeObserver(() => this.resize()).observe(document.getElementById("stage"));
    this.resize();
    requestAnimationFrame((now) => this._animate(now));
  }

  // --- Drawing ---

  draw() {
    this.run.seek(this.clock.time);
    this.stage.draw(this.clock);
    this.timeline.draw();
  }

  refresh() {
    this.draw();
    this.nodePanel.show(this.clock.time);
    this.eventPanel.show(this.clock.time);
    this.controls.show(this.clock, this.view, this._frame < 0 ? "" : this.run.frameText(this._frame));
  }

  resize() {
    this.stage.resize();
    this.timeline.resize();
    this.refresh();
  }

  _animate(now) {
    if (this.clock.playing) {
      this._frame = -1;
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
    this._frame = -1;
    this.clock.seek(time);
    this.refresh();
  }

  // To the next frame or the one before; of the chosen event, if one is chosen.
  step(by) {
    const { start } = this.run.frame, story = this.view.story;
    const frames = story ? story.steps.map((step) => step.frame) : null;
    const times = frames ? frames.map((frame) => start[frame]) : start;
    if (!times.length) return this.skip(by);
    let next = by > 0 ? upperBound(times, this.clock.time) : lowerBound(times, this.clock.time) - 1;
    if (this._frame >= 0 && start[this._frame] === this.clock.time) next = (frames ? frames.indexOf(this._frame) : this._frame) + by;
    if (next < 0 || next >= times.length) return undefined;
    this.clock.playing = false;
    this.clock.seek(times[next]);
    this._frame = frames ? frames[next] : next;
    this.refresh();
    return undefined;
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
    this.view[what] = !this.view[what];
    this.refresh();
  }

  follow() {
    this.camera.follow = this.camera.follow === this.view.node ? -1 : this.view.node;
    this.refresh();
  }

  hover(x, y) {
    const node = this.stage.nodeAt(x, y);
    if (node === this.view.hovered) return;
    this.view.hovered = node;
    document.getElementById("stage").classList.toggle("pointing", node >= 0);
    this.draw();
  }

  click(x, y) {
    this.chooseNode(this.stage.nodeAt(x, y));
  }

  chooseNode(node) {
    this.view.node = node;
    if (this.camera.follow >= 0) this.camera.follow = node;
    this.nodePanel.choose(node);
    if (node >= 0) this.panel.show("node");
    else if (this.panel.shown === "node") this.panel.show(this.view.story ? "event" : "run");
    this.refresh();
  }

  chooseEvent(event) {
    this.view.story = event < 0 ? null : new Story(this.run, event);
    this.eventPanel.choose(this.view.story);
    this.panel.show("event");
    if (event >= 0) this.clock.seek(Math.min(this.clock.end, this._lastHeard(this.view.story)));
    this.refresh();
  }

  _lastHeard(story) {
    return Math.max(story.published, ...[...story.heard].filter(Number.isFinite), ...story.lost.map(({ time }) => time));
  }

  nextEvent(by) {
    const count = this.run.event.time.length, current = this.view.story ? this.view.story.event : by > 0 ? -1 : count;
    if (current + by >= 0 && current + by < count) this.chooseEvent(current + by);
  }

  // From its publication on, so slowly that one sees it spread.
  watch(story) {
    const lasts = this._lastHeard(story) - story.published;
    this.clock.seek(story.published);
    this.clock.setSpeed(SPEEDS.findLast((speed) => speed <= Math.max(0.01, lasts / 4)) ?? 0.01);
    this.clock.playing = false;
    this.toggle();
  }

  clear() {
    if (this.view.node >= 0) this.chooseNode(-1);
    else if (this.view.story) this.chooseEvent(-1);
  }
}
