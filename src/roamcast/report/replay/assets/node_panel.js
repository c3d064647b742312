// What is known of one node at the time of the clock.

const MOST_LISTED = 40;

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
    this._cells = null;
    if (node >= 0) this._times = this._counted(node);
  }

  // Only what has changed is put in anew: a button that is replaced while it is pressed is not clicked, and what was typed
  // would be gone.
  show(time) {
    if (!this._cells) this._make();
    if (this._node < 0) return;
    for (const [name, text, content] of this._now(time)) {
      const cell = this._cells.get(name);
      if (!cell || cell.text === text) continue;
      cell.text = text;
      cell.place.replaceChildren(...(content ?? [text]));
    }
  }

  // The panel without its values: `_cells` has the place for each by name.
  _make() {
    const node = this._node, first = this._root.previousElementSibling === null;
    this._cells = new Map();
    if (node < 0) {
      const ask = [element("p", { class: "muted" }, "Click a node in the picture, or type its number:"), this._search()];
      this._root.replaceChildren(...(first ? ask : []));
      return;
    }
    const { tree, relay, forwarder } = this._run.spans;
    const links = [tree.one.length && "Tree", relay.one.length && "Relays", forwarder.one.length && "Forwards"].filter(Boolean);
    const common = [
      element("h2", {}, `Node ${node}`, this._cell("away")),
      element(
        "p",
        { class: "buttons" },
        element("button", { click: () => this._actions.follow(node) }, "Follow (f)"),
        element("button", { click: () => this._actions.node(-1) }, "Close (Esc)"),
      ),
      facts(["Place", "Range", "Neighbours"].map((name) => [name, this._cell(name)])),
    ];
    this._root.replaceChildren(...[
      ...(first ? common : []),
      this._label ? element("h2", { class: "of" }, this._label) : null,
      facts(["Wants", ...links, "Keeps"].map((name) => [name, this._cell(name)])),
      element("h3", {}, "Until now"),
      table(["frames and events", "count"], [...this._times.keys()].sort().map((what) => [what, this._cell(what)])),
    ].filter(Boolean));
  }

  _cell(name) {
    const place = element("span");
    this._cells.set(name, { place, text: "" });
    return place;
  }

  // The values at a time: name, text, and the elements that show it if they are more than the text.
  _now(time) {
    const node = this._node, run = this._run, { x, y, range } = run.movement;
    const place = run.about.placed ? `${x[node].toFixed(1)} m, ${y[node].toFixed(1)} m` : "no position: nodes have links";
    const filters = run.wants(node).map((which) => run.about.filters[which]);
    return [
      ["away", run.spans.away.of(node).length ? " (away)" : ""],
      ["Place", place],
      ["Range", run.about.placed ? `${range[node].toFixed(0)} m` : "–"],
      this._list("Neighbours", this._neighbours(node), "none", (other) => this._actions.node(other)),
      ["Wants", filters.length ? filters.join("; ") : "nothing"],
      ...this._links(node),
      this._list("Keeps", run.spans.kept.of(node), "nothing", (event) => this._actions.event(event), (event) => run.about.events[event][0]),
      ...[...this._times].map(([what, times]) => [what, `${upperBound(times, time)}`]),
    ];
  }

  _list(name, numbers, none, act, title = (number) => `${number}`) {
    if (!numbers.length) return [name, none];
    const buttons = numbers.slice(-MOST_LISTED).flatMap((number) =>
      [" ", element("button", { class: "link", click: () => act(number) }, title(number))]);
    return [name, `${numbers.length}: ${numbers.join()}`, [`${numbers.length}:`, ...buttons]];
  }

  _search() {
    const input = element("input", { type: "number", min: 0, max: this._run.nodes - 1, "aria-label": "Number of a node" });
    input.addEventListener("change", () => {
      if (input.value) this._actions.node(clamp(Math.floor(input.value), 0, this._run.nodes - 1));
    });
    return input;
  }

  _neighbours(node) {
    const { contact } = this._run.spans, near = [];
    for (let i = 0; i < contact.count; i++) {
      const span = contact.at(i);
      if (contact.one[span] === node) near.push(contact.other[span]);
      else if (contact.other[span] === node) near.push(contact.one[span]);
    }
    return near.sort((a, b) => a - b);
  }

  _links(node) {
    const { tree, relay, forwarder } = this._run.spans, joined = [...tree.of(node)], groups = forwarder.of(node);
    for (let i = 0; i < tree.count; i++) if (tree.other[tree.at(i)] === node) joined.push(tree.one[tree.at(i)]);
    return [
      ["Tree", joined.length ? `joined with ${joined.join(", ")}` : "no link"],
      ["Relays", relay.of(node).join(", ") || "none"],
      ["Forwards", groups.length ? `group ${groups.join(", ")}` : "nothing"],
    ];
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
}
