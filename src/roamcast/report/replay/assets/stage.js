// The picture of the network at one time.

const NODE = 6, LEAST_NODE = 3; // radius, pixels: with room around the nodes, and in a crowd
const HALF_NUMBER = 5; // half the height of a node's number, pixels
const LABELLED = 26; // pixels that a node must have around it for its number to be shown inside the crowd

class Stage {
  constructor(canvas, run, camera, palette, view) {
    this._canvas = canvas;
    this._context = canvas.getContext("2d");
    this._run = run;
    this._camera = camera;
    this._palette = palette;
    this._view = view; // what is shown: links, ranges, numbers, node, hovered, story
    this._sprites = new Sprites(palette);
    this._transmissions = new Transmissions(run, this._sprites);
    this._places = new Room();
    this._wanting = new Uint8Array(run.nodes);
    this._gone = new Uint8Array(run.nodes);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this._canvas, ratio = devicePixelRatio;
    this._canvas.width = Math.round(width * ratio);
    this._canvas.height = Math.round(height * ratio);
    this._camera.resize(width, height);
  }

  draw(clock) {
    const { time } = clock, [width, height] = this._run.about.area;
    const context = this._context, camera = this._camera, ratio = devicePixelRatio, view = this._view;
    this._room = Math.sqrt((width * height) / this._run.nodes) * camera.scale; // pixels from node to node
    this._node = clamp(this._room / 4, LEAST_NODE, NODE);
    camera.keepUp(this._run.movement);
    this._sprites.begin();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, camera.width, camera.height);
    this._ground(time);
    if (view.links) this._links(this._run.spans.contact, this._palette.contact, 1, 1);
    this._links(this._run.spans.relay, this._palette.relay, 1, 1, [5, 4]); // wider or finer dashes take six times as long
    this._links(this._run.spans.tree, this._palette.tree, 3, 0.75);
    if (view.ranges || view.node >= 0) this._ranges();
    this._transmissions.draw(context, camera, this._palette, clock, view.story);
    if (view.story) this._way(view.story, time);
    this._nodes(time);
  }

  // The node under a point of the picture, or -1.
  nodeAt(px, py) {
    const { movement, nodes } = this._run;
    let best = -1, least = 14;
    for (let node = 0; node < nodes; node++) {
      const x = this._camera.screenX(movement.x[node]), y = this._camera.screenY(movement.y[node]);
      const distance = Math.hypot(x - px, y - py);
      if (distance < least) [best, least] = [node, distance];
    }
    return best;
  }

  _ground(time) {
    const context = this._context, camera = this._camera, [width, height] = this._run.about.area;
    const rectangle = (x, y, w, h) => [camera.screenX(x), camera.screenY(y + h), w * camera.scale, h * camera.scale];
    if (this._run.about.placed) {
      context.fillStyle = this._palette.ground;
      context.fillRect(...rectangle(0, 0, width, height));
    }
    context.fillStyle = this._palette.building;
    for (const building of this._run.about.buildings) context.fillRect(...rectangle(...building));
    for (const kind of ["interest", "relevance"]) this._regions(kind, time);
  }

  // Those in force, each shape once: a hundred events may be about one place. In an event's story, its own alone.
  _regions(kind, time) {
    const context = this._context, story = this._view.story, shapes = new Map();
    for (const { kind: of, event, from, until, shape } of this._run.about.regions) {
      if (of !== kind || time < from || time >= until || (story && event >= 0 && event !== story.event)) continue;
      shapes.set(shape.join(), shape);
    }
    if (!shapes.size) return;
    const path = new Path2D();
    for (const shape of shapes.values()) this._outline(path, shape);
    context.globalAlpha = 0.12;
    context.fillStyle = this._palette[kind];
    context.fill(path);
    context.lineWidth = 1.5;
    stroke(context, path, this._palette[kind], 0.7);
    context.globalAlpha = 1;
  }

  _outline(path, shape) {
    const camera = this._camera;
    if (typeof shape[0] === "number") {
      const x = camera.screenX(shape[0]), y = camera.screenY(shape[1]), radius = shape[2] * camera.scale;
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 2 * Math.PI);
    } else {
      const [[x, y], ...others] = shape;
      path.moveTo(camera.screenX(x), camera.screenY(y));
      for (const [cx, cy] of others) path.lineTo(camera.screenX(cx), camera.screenY(cy));
    }
    path.closePath();
  }

  _links(spans, colour, width, alpha, dashes = []) {
    if (!spans.count) return;
    const context = this._context, camera = this._camera, { x, y } = this._run.movement;
    const lines = new Lines(context, width);
    context.setLineDash(dashes);
    lines.look(colour, alpha);
    for (let i = 0; i < spans.count; i++) {
      const span = spans.at(i), one = spans.one[span], other = spans.other[span];
      lines.add(camera.screenX(x[one]), camera.screenY(y[one]), camera.screenX(x[other]), camera.screenY(y[other]));
    }
    lines.end();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  _ranges() {
    const { movement, nodes } = this._run, camera = this._camera, path = new Path2D();
    for (let node = 0; node < nodes; node++) {
      if (!this._view.ranges && node !== this._view.node) continue;
      const x = camera.screenX(movement.x[node]), y = camera.screenY(movement.y[node]);
      const radius = movement.range[node] * camera.scale;
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 2 * Math.PI);
    }
    this._context.lineWidth = 1;
    stroke(this._context, path, this._palette.muted, 0.6);
    this._context.globalAlpha = 1;
  }

  // Who had the event by now, from whom, and where copies were lost.
  _way(story, time) {
    const context = this._context, camera = this._camera, { x, y } = this._run.movement, path = new Path2D();
    for (let node = 0; node < this._run.nodes; node++) {
      const from = story.from[node];
      if (from < 0 || story.heard[node] > time) continue;
      const fx = camera.screenX(x[from]), fy = camera.screenY(y[from]);
      const tx = camera.screenX(x[node]), ty = camera.screenY(y[node]);
      const length = Math.hypot(tx - fx, ty - fy), ux = (tx - fx) / (length || 1), uy = (ty - fy) / (length || 1);
      const ex = tx - (this._node + 3) * ux, ey = ty - (this._node + 3) * uy;
      path.moveTo(fx, fy);
      path.lineTo(ex, ey);
      path.moveTo(ex - 7 * ux - 4 * uy, ey - 7 * uy + 4 * ux);
      path.lineTo(ex, ey);
      path.lineTo(ex - 7 * ux + 4 * uy, ey - 7 * uy - 4 * ux);
    }
    context.lineWidth = 2;
    stroke(context, path, this._palette.accent, 0.9);
    this._lostCopies(story, time);
    context.globalAlpha = 1;
  }

  // Strong where the node is still without the event; in a crowd, there alone.
  _lostCopies(story, time) {
    const { x, y } = this._run.movement, camera = this._camera, crowd = this._room < LABELLED;
    for (const { time: when, sender, node, outcome } of story.lost) {
      const has = story.heard[node] <= time;
      if (when > time || (crowd && has)) continue;
      this._context.globalAlpha = has ? 0.3 : 1;
      const px = camera.screenX(x[node]), py = camera.screenY(y[node]);
      this._sprites.cross(this._context, outcome, camera.screenX(x[sender]), camera.screenY(y[sender]), px, py);
    }
  }

  _nodes(time) {
    const run = this._run, { away, wish } = run.spans;
    this._gone.fill(0);
    for (let i = 0; i < away.count; i++) this._gone[away.one[away.at(i)]] = 1;
    this._wanting.fill(0);
    for (let i = 0; i < wish.count; i++) this._wanting[wish.one[wish.at(i)]] = 1;
    this._marks(time);
    this._dots(time);
    this._numbers();
  }

  // Rings and other marks beneath the dots.
  _marks(time) {
    const view = this._view, story = view.story, palette = this._palette;
    const wanting = [], missed = [], reached = [];
    for (let node = 0; node < this._run.nodes; node++) if (this._wanting[node]) wanting.push(node);
    this._circles(story && story.pairs.length ? [] : wanting, this._node + 3, palette.subscriber, 2.5);
    if (story) {
      for (const { node } of story.pairs) {
        const got = story.delivered.get(node);
        (got && got.time <= time ? reached : missed).push(node);
      }
      this._circles(reached, this._node + 4, palette.subscriber, 3);
      this._circles(missed, this._node + 4, palette.missed, 3, [3, 3]);
    }
    const forwarders = this._run.spans.forwarder;
    const forwarding = Array.from({ length: forwarders.count }, (_, i) => forwarders.one[forwarders.at(i)]);
    this._circles(forwarding, this._node + 6, palette.tree, 2);
    if (view.node >= 0) this._circles([view.node], this._node + 8, palette.text, 2);
    if (view.hovered >= 0) this._circles([view.hovered], this._node + 8, palette.muted, 1.5);
    this._caches();
  }

  // How much a node keeps: a bar on its right, a step for each document up to ten.
  _caches() {
    const { kept } = this._run.spans, { x, y } = this._run.movement, camera = this._camera;
    if (!kept.count) return;
    const counts = new Int32Array(this._run.nodes);
    for (let i = 0; i < kept.count; i++) counts[kept.one[kept.at(i)]]++;
    this._context.fillStyle = this._palette.relay;
    for (let node = 0; node < counts.length; node++) {
      const height = 1.6 * Math.min(10, counts[node]);
      if (height) this._context.fillRect(camera.screenX(x[node]) + this._node + 6, camera.screenY(y[node]) + 8 - height, 4, height);
    }
  }

  _circles(nodes, radius, colour, width, dashes = []) {
    if (!nodes.length) return;
    const { x, y } = this._run.movement, camera = this._camera, context = this._context;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dashes);
    for (const node of nodes) {
      const px = camera.screenX(x[node]), py = camera.screenY(y[node]);
      if (!camera.sees(px, py, 2 * radius)) continue;
      context.beginPath();
      context.arc(px, py, radius, 0, 2 * Math.PI);
      context.stroke();
    }
    context.setLineDash([]);
  }

  // A dot each, a square for who publishes; in an event's story, filled where the event is. Each is filled by itself:
  // without a graphics card, one path of many dots takes twice as long.
  _dots(time) {
    const { x, y } = this._run.movement, camera = this._camera, context = this._context, palette = this._palette;
    const size = this._node;
    let filled = null;
    context.lineWidth = 2;
    for (let node = 0; node < this._run.nodes; node++) {
      const px = camera.screenX(x[node]), py = camera.screenY(y[node]);
      if (!camera.sees(px, py, 20)) continue;
      context.beginPath();
      if (this._run.publishes[node]) context.rect(px - size, py - size, 2 * size, 2 * size);
      else context.arc(px, py, size, 0, 2 * Math.PI);
      if (this._gone[node]) {
        context.setLineDash([2, 3]);
        context.strokeStyle = palette.muted;
        context.stroke();
        context.setLineDash([]);
        continue;
      }
      const silent = this._silent(node, time);
      const colour = silent ? palette.plain : this._colour(node, time);
      if (colour !== filled) context.fillStyle = filled = colour;
      context.fill();
      if (!silent) continue;
      context.strokeStyle = palette.accent;
      context.stroke();
    }
  }

  // Whether the node has heard the event of the story, and has not passed it on.
  _silent(node, time) {
    const story = this._view.story;
    return story !== null && story.heard[node] <= time && story.sent[node] > time;
  }

  _colour(node, time) {
    const story = this._view.story;
    if (!story) return this._run.publishes[node] ? this._palette.publisher : this._palette.node;
    return story.heard[node] <= time ? this._palette.accent : this._palette.node;
  }

  // Above its node, below, or on a side: where it covers neither a node nor another number; left out if there is no such
  // place, but for the node that the watcher is at.
  _numbers() {
    const { nodes, movement } = this._run, camera = this._camera, view = this._view, size = this._node + 3; // with its ring
    const all = view.numbers && this._room >= LABELLED, shown = [];
    this._places.begin(camera.width, camera.height);
    for (let node = 0; node < nodes; node++) {
      const x = camera.screenX(movement.x[node]), y = camera.screenY(movement.y[node]);
      if (!camera.sees(x, y, 20)) continue;
      this._places.take(x - size, y - size, 2 * size, 2 * size, true);
      const wanted = node === view.node || node === view.hovered;
      if (all || wanted) shown[wanted ? "unshift" : "push"]([node, x, y, wanted]);
    }
    for (const [node, x, y, wanted] of shown) {
      const half = 3.5 * `${node}`.length, across = size + half + 3, up = size + HALF_NUMBER + 1;
      const place = [[0, -up], [0, up], [across, 0], [-across, 0]].find(([dx, dy]) =>
        this._places.take(x + dx - half, y + dy - HALF_NUMBER, 2 * half, 2 * HALF_NUMBER));
      if (!place && !wanted) continue;
      const [dx, dy] = place ?? [0, -up];
      this._sprites.label(this._context, node, x + dx, y + dy);
    }
  }
}
