// The run: its columns by table, and what follows from them once and for all.

class Run {
  constructor(columns) {
    this.about = columns.about;
    this.nodes = this.about.nodes;
    const table = (name, ...fields) => Object.fromEntries(fields.map((field) => [field, columns.get(`${name}.${field}`)]));
    this.frame = table("frame", "start", "end", "sender", "to", "kind", "event", "size");
    this.reception = table("reception", "first", "node", "outcome");
    this.event = table("event", "time", "node", "deadline");
    this.deliver = table("deliver", "first", "time", "node", "code");
    this.decision = table("decision", "first", "time", "node", "code", "to");
    this.pair = table("pair", "first", "node", "possible", "cause");
    this.series = table("series", "packets", "lost", "received");
    this.movement = new Movement(columns, this.nodes);
    this.spans = {};
    for (const name of ["contact", "tree", "relay", "forwarder", "kept", "away", "wish"]) {
      this.spans[name] = new Spans(columns, name);
    }
    this.framesByEvent = grouped(this.frame.event, this.event.time.length);
    this.publishes = new Uint8Array(this.nodes);
    for (const node of this.event.node) this.publishes[node] = 1;
    this.missedOf = new Int32Array(this.event.time.length); // how many subscribers missed each event
    for (let event = 0; event < this.missedOf.length; event++) {
      for (let i = this.pair.first[event]; i < this.pair.first[event + 1]; i++) {
        if (this.pair.cause[i] >= 0) this.missedOf[event]++;
      }
    }
    this.busiest = this.series.packets.reduce((most, packets) => Math.max(most, packets), 0); // packets a second
    // When a frame ends is not in order, but none lasts longer than this.
    this.longest = 0;
    for (let i = 0; i < this.frame.start.length; i++) {
      this.longest = Math.max(this.longest, this.frame.end[i] - this.frame.start[i]);
    }
  }

  seek(time) {
    this.movement.seek(time);
    for (const spans of Object.values(this.spans)) spans.seek(time);
  }

  role(frame) {
    return this.about.kinds[this.frame.kind[frame]].role;
  }

  wants(node) {
    return this.spans.wish.of(node);
  }

  // Events of the warm-up are played and not counted.
  inWarmup(event) {
    return this.event.time[event] < this.about.warmup;
  }

  eventTitle(event) {
    const [name, type] = this.about.events[event];
    return type ? `${name} ${type}` : name;
  }

  // What a frame is and what became of it, in one line.
  frameText(frame) {
    const kind = this.about.kinds[this.frame.kind[frame]].name, to = this.frame.to[frame], event = this.frame.event[frame];
    const counts = this.about.outcomes.map(() => 0);
    for (let i = this.reception.first[frame]; i < this.reception.first[frame + 1]; i++) counts[this.reception.outcome[i]]++;
    const became = this.about.outcomes.map((outcome, i) => [words(outcome), counts[i]]).filter(([, count]) => count);
    return [
      `${kind} of node ${this.frame.sender[frame]} ${to < 0 ? "to all" : `to node ${to}`}`,
      ...(event >= 0 ? [`event ${this.about.events[event][0]}`] : []),
      `${this.frame.size[frame]} bytes`,
      ...(became.length ? became.map(([outcome, count]) => `${outcome} ${count}`) : ["nobody in range"]),
    ].join(" · ");
  }
}
