// One run as it is shown: its picture, its time axis and its panels. Two stand side by side, with one clock and one camera.

class Side {
  constructor(run, place, label, clock, camera, palette, most, actions) {
    this.run = run;
    this.label = label; // null: the only one
    this.view = { links: true, ranges: false, numbers: true, node: -1, hovered: -1, story: null };
    this.canvas = place.canvas;
    this.stage = new Stage(place.canvas, run, camera, palette, this.view);
    this.timeline = new Timeline(place.timeline, run, clock, palette, this.view, most, actions.seek);
    this.nodePanel = new NodePanel(place.node, run, label, actions);
    this.eventPanel = new EventPanel(place.event, run, label, palette, actions);
    this._numbers = new Map(run.about.events.map(([name], number) => [name, number]));
  }

  draw(clock) {
    this.run.seek(clock.time);
    this.stage.draw(clock);
    this.timeline.draw();
  }

  resize() {
    this.stage.resize();
    this.timeline.resize();
  }

  // An event by its name, which is the same in both runs; null: none.
  tell(name) {
    const number = this._numbers.get(name);
    this.view.story = number === undefined ? null : new Story(this.run, number);
    this.eventPanel.choose(name, this.view.story);
  }

  // What became of an event: whether somebody missed it, and how many.
  fate(name) {
    const event = this._numbers.get(name);
    if (event === undefined) return { missed: 0, text: "not published" };
    const missed = this.run.missedOf[event], wanted = this.run.pair.first[event + 1] - this.run.pair.first[event];
    if (wanted) return { missed, text: missed ? `missed by ${missed} of ${wanted}` : `all ${wanted} got it` };
    return { missed, text: this.run.inWarmup(event) ? "in the warm-up" : "nobody wanted it" };
  }

  // The frames to step through: those of the chosen event, or all. `numbers` null: the place is the number.
  frames() {
    const { start } = this.run.frame, story = this.view.story;
    if (!story) return { numbers: null, times: start };
    const numbers = story.steps.map((step) => step.frame);
    return { numbers, times: numbers.map((frame) => start[frame]) };
  }
}
