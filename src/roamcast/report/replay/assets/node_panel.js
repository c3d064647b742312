// What is known of one node at the time of the clock.

class NodePanel {
  constructor(root, run, label, actions) {
    this._root = root;
    this._run = run;
    this._label = label;
    this._actions = actions;
    this._node = -1;
  }

  choose(node) {
    this._node = node;
    if (node >= 0) this._times = this._counted(node);
  }

  show(time) {
    const node = this._node, run = this._run;
    const first = this._root.previousElementSibling === null;
    if (node < 0) {
      if (first) this._root.replaceChildren(element("p", { class: "muted" }, "Click a node in the picture, or type its number:"), this._search());
      else this._root.replaceChildren();
      return;
    }
    const gone = run.spans.away.of(node).length > 0;
    const place = run.about.placed
      ? `${run.movement.x[node].toFixed(1)} m, ${run.movement.y[node].toFixed(1)} m`
      : "no position: nodes have links";
    const filters = run.wants(node).map((which) => run.about.filters[which]);
    const common = [
      element("h2", {}, `Node ${node}`, gone ? " (away)" : ""),
      element(
        "p",
        { class: "buttons" },
        element("button", { click: () => this._actions.follow(node) }, "Follow (f)"),
        element("button", { click: () => this._actions.node(-1) }, "Close (Esc)"),
      ),
      facts([
        ["Place", place],
        ["Range", run.about.placed ? `${run.movement.range[node].toFixed(0)} m` : "–"],
        ["Neighbours", this._neighbours(node)],
      ]),
    ];
    this._root.replaceChildren(...[
      ...(first ? common : []),
      this._label ? element("h2", { class: "of" }, this._label) : null,
      facts([
        ["Wants", filters.length ? filters.join("; ") : "nothing"],
        ...this._links(node),
        ["Keeps", this._kept(node)],
      ]),
      element("h3", {}, "Until now"),
      table(["frames", "count"], this._counts(time)),
    ].filter(Boolean));
  }

  _search() {
    const input = element("input", { type: "number", min: 0, max: this._run.nodes - 1, "aria-label": "Number of a node" });
    input.addEventListener("change", () => this._actions.node(clamp(Math.floor(input.value), 0, this._run.nodes - 1)));
    return input;
  }

  _neighbours(node) {
    const { contact } = this._run.spans, near = [];
    for (let i = 0; i < contact.count; i++) {
      const span = contact.at(i);
      if (contact.one[span] === node) near.push(contact.other[span]);
      else if (contact.other[span] === node) near.push(contact.one[span]);
    }
    near.sort((a, b) => a - b);
    const buttons = near.map((other) => element("button", { class: "link", click: () => this._actions.node(other) }, other));
    return near.length ? element("span", {}, `${near.length}: `, ...buttons) : "none";
  }

  _links(node) {
    const { tree, relay, forwarder } = this._run.spans, rows = [];
    if (tree.one.length) {
      const joined = [...tree.of(node)];
      for (let i = 0; i < tree.count; i++) if (tree.other[tree.at(i)] === node) joined.push(tree.one[tree.at(i)]);
      rows.push(["Tree", joined.length ? `joined with ${joined.join(", ")}` : "no link"]);
    }
    if (relay.one.length) rows.push(["Relays", relay.of(node).join(", ") || "none"]);
    if (forwarder.one.length) {
      const groups = forwarder.of(node);
      rows.push(["Forwards", groups.length ? `group ${groups.join(", ")}` : "nothing"]);
    }
    return rows;
  }

  _kept(node) {
    const events = this._run.spans.kept.of(node);
    if (!events.length) return "nothing";
    const buttons = events.slice(-40).map((event) =>
      element("button", { class: "link", click: () => this._actions.event(event) }, this._run.about.events[event][0]));
    return element("span", {}, `${events.length} events: `, ...buttons);
  }

  // The times of all that was sent, received and lost here: counted by looking a time up in them.
  _counted(node) {
    const { frame, reception, about } = this._run, times = new Map();
    const add = (what, time) => {
      if (!times.has(what)) times.set(what, []);
      times.get(what).push(time);
    };
    for (let i = 0; i < frame.sender.length; i++) {
      if (frame.sender[i] === node) add(`sent: ${about.kinds[frame.kind[i]].name}`, frame.start[i]);
      for (let r = reception.first[i]; r < reception.first[i + 1]; r++) {
        if (reception.node[r] !== node) continue;
        const outcome = about.outcomes[reception.outcome[r]];
        add(outcome === "received" ? outcome : `lost: ${words(outcome)}`, frame.end[i]);
      }
    }
    const { deliver } = this._run;
    for (let i = 0; i < deliver.node.length; i++) if (deliver.node[i] === node) add("events delivered", deliver.time[i]);
    for (const found of times.values()) found.sort((a, b) => a - b);
    return times;
  }

  _counts(time) {
    const rows = [...this._times].sort(([a], [b]) => (a < b ? -1 : 1));
    return rows.map(([what, times]) => [what, upperBound(times, time)]);
  }
}
