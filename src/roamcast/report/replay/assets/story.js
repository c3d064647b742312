// The way of one event: who passed it on to whom and when, who heard it and stayed silent, where copies were lost.

class Story {
  constructor(run, event) {
    this.event = event;
    this.publisher = run.event.node[event];
    this.published = run.event.time[event];
    this.from = new Int32Array(run.nodes).fill(-1); // who a node first heard it from
    this.heard = new Float64Array(run.nodes).fill(Infinity); // and when
    this.sent = new Float64Array(run.nodes).fill(Infinity); // when it first sent it
    this.hop = new Int32Array(run.nodes); // how many transmissions it took to a node
    this.hops = []; // by hop: {senders, fresh, repeated, lost}, of copies
    this.lost = []; // {time, sender, node, outcome}
    this.steps = []; // {frame, time, sender, fresh, repeated, lost}
    this.heard[this.publisher] = this.published;
    const { first, rows } = run.framesByEvent;
    for (let i = first[event]; i < first[event + 1]; i++) this._take(run, rows[i]);
    this.delivered = new Map(); // node -> {time, hops}
    for (let i = run.deliver.first[event]; i < run.deliver.first[event + 1]; i++) {
      const node = run.deliver.node[i], time = run.deliver.time[i];
      if (!this.delivered.has(node)) this.delivered.set(node, { time, hops: run.deliver.code[i] });
      if (time < this.heard[node]) this.heard[node] = time; // without frames, this is all that is known
    }
    this.decided = []; // {time, node, decision, to}
    for (let i = run.decision.first[event]; i < run.decision.first[event + 1]; i++) {
      const { time, node, code, to } = run.decision;
      this.decided.push({ time: time[i], node: node[i], decision: run.about.decisions[code[i]], to: to[i] });
    }
    this.pairs = []; // the subscribers that wanted it: {node, possible, cause, why}
    for (let i = run.pair.first[event]; i < run.pair.first[event + 1]; i++) {
      const cause = run.pair.cause[i];
      const named = cause < 0 ? null : run.about.causes[cause];
      this.pairs.push({ node: run.pair.node[i], possible: run.pair.possible[i], cause: named, why: run.about.why[i] });
    }
  }

  // When it was last heard, delivered or lost.
  get end() {
    let last = this.published;
    for (const time of this.heard) if (Number.isFinite(time)) last = Math.max(last, time);
    for (const { time } of [...this.lost, ...this.delivered.values()]) last = Math.max(last, time);
    return last;
  }

  get missed() {
    return this.pairs.filter((pair) => !this.delivered.has(pair.node));
  }

  _take(run, frame) {
    if (run.role(frame) !== "data") return;
    const sender = run.frame.sender[frame], start = run.frame.start[frame], end = run.frame.end[frame];
    this.sent[sender] = Math.min(this.sent[sender], start);
    const step = { frame, time: start, sender, fresh: [], repeated: 0, lost: [] };
    for (let i = run.reception.first[frame]; i < run.reception.first[frame + 1]; i++) {
      const node = run.reception.node[i], outcome = run.reception.outcome[i];
      if (outcome > 0) {
        step.lost.push({ node, outcome });
        this.lost.push({ time: end, sender, node, outcome });
      } else if (end < this.heard[node]) {
        this.heard[node] = end;
        this.from[node] = sender;
        this.hop[node] = this.hop[sender] + 1;
        step.fresh.push(node);
      } else step.repeated++;
    }
    this.steps.push(step);
    const hop = (this.hops[this.hop[sender]] ??= { senders: new Set(), fresh: 0, repeated: 0, lost: 0 });
    hop.senders.add(sender);
    hop.fresh += step.fresh.length;
    hop.repeated += step.repeated;
    hop.lost += step.lost.length;
  }
}
