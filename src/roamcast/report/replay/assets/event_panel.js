// The story of one event in words and numbers, and the list to pick one from.

const LISTED = 150, STEPS = 120;

class EventPanel {
  constructor(root, run, label, palette, actions) {
    this._root = root;
    this._run = run;
    this._label = label; // null: the only run
    this._palette = palette;
    this._actions = actions;
    this._story = null;
    this._search = "";
    this._missedOnly = false;
  }

  choose(name, story) {
    this._story = story;
    const first = this._root.previousElementSibling === null;
    if (story) this._tell(story, first);
    else if (name) this._root.replaceChildren(element("h2", { class: "of" }, this._label), element("p", {}, `Event ${name} was not published in this run.`));
    else if (first) this._list();
    else this._root.replaceChildren();
  }

  show(time) {
    if (this._story) this._chart.draw(this._story, time);
  }

  // --- The list ---

  _list() {
    const search = element("input", { type: "search", placeholder: "Search: 3:7, offer, jazz …", "aria-label": "Search events", value: this._search });
    const missed = element("input", { type: "checkbox", checked: this._missedOnly });
    const list = element("ul", { class: "events" }), note = element("p", { class: "muted" });
    const fill = () => {
      this._search = search.value;
      this._missedOnly = missed.checked;
      const found = this._found();
      list.replaceChildren(...found.slice(0, LISTED).map((event) => element("li", {}, this._line(event))));
      note.textContent = found.length > LISTED ? `${LISTED} of ${found.length} events` : `${found.length} events`;
    };
    search.addEventListener("input", fill);
    missed.addEventListener("change", fill);
    fill();
    this._root.replaceChildren(search, element("label", {}, missed, " only those that somebody missed"), note, list);
  }

  _found() {
    const wanted = this._search.toLowerCase(), found = [];
    this._run.about.events.forEach((event, number) => {
      if (this._missedOnly && !this._actions.fates(event[0]).some(({ missed }) => missed)) return;
      if (event.some((text) => text.toLowerCase().includes(wanted))) found.push(number);
    });
    return found;
  }

  _line(event) {
    const [name, type, content] = this._run.about.events[event];
    const fates = this._actions.fates(name).map(({ label, missed, text }) =>
      element("span", { class: missed ? "bad" : "muted" }, label ? `${label}: ${text}` : text));
    return element(
      "button",
      { click: () => this._actions.event(event), class: fates.length > 1 && "several" },
      element("b", {}, `${name} ${type}`),
      ...fates,
      element("small", {}, `${clockText(this._run.event.time[event], 2)} ${content}`),
    );
  }

  // --- The story ---

  _tell(story, first) {
    const run = this._run, [name, type, content] = run.about.events[story.event];
    const canvas = element("canvas", { class: "chart", role: "img", "aria-label": "Delivery over time, beside what was possible" });
    this._chart = new DeliveryChart(canvas, this._palette);
    const got = story.pairs.length - story.missed.length;
    const common = [
      element("h2", {}, `Event ${name}`),
      element("p", {}, `${[type, content].filter(Boolean).join(": ")}${type || content ? ". " : ""}Published by `, this._node(story.publisher), ` at ${clockText(story.published, 3)}.`),
      element(
        "p",
        { class: "buttons" },
        element("button", { click: () => this._actions.watch() }, "Watch it"),
        element("button", { click: () => this._actions.event(-1) }, "All events"),
      ),
    ];
    this._root.replaceChildren(...[
      ...(first ? common : []),
      this._label ? element("h2", { class: "of" }, this._label) : null,
      element("h3", {}, story.pairs.length ? `Delivered to ${got} of ${story.pairs.length}` : this._uncounted(story)),
      story.pairs.length ? canvas : null,
      story.pairs.length ? element("p", { class: "muted key" }, element("i", { class: "accent" }), "delivered ", element("i", { class: "dashed" }), "possible by contacts alone") : null,
      ...this._missed(story),
      ...this._reached(story),
      ...this._hops(story),
      ...this._way(story),
    ].filter(Boolean));
  }

  _uncounted({ event }) {
    return this._run.inWarmup(event) ? "Published in the warm-up: its deliveries are not counted" : "Nobody else wanted it";
  }

  _node(node) {
    return element("button", { class: "link", click: () => this._actions.node(node) }, `node ${node}`);
  }

  _missed(story) {
    if (!story.missed.length) return [];
    const items = story.missed.map((pair) =>
      element("li", {}, this._node(pair.node), " ", element("b", { class: "bad" }, pair.cause ? pair.cause[0] : "unknown"), element("p", {}, pair.why || (pair.cause ? `${pair.cause[1]}.` : ""))));
    return [element("h3", {}, "Missed, and why"), element("ul", { class: "missed" }, ...items)];
  }

  _reached(story) {
    const rows = story.pairs.filter(({ node }) => story.delivered.has(node)).map(({ node, possible }) => {
      const { time, hops } = story.delivered.get(node);
      const least = Number.isFinite(possible) ? spanText(possible - story.published) : "–";
      return [this._node(node), spanText(time - story.published), least, `${hops}`];
    });
    return rows.length ? [element("h3", {}, "Delivered"), table(["to", "after", "possible after", "hops"], rows)] : [];
  }

  // A row for each hop, with a bar as wide as there were copies.
  _hops({ hops }) {
    if (!hops.length) return [];
    const said = { fresh: "new", repeated: "had it already", lost: "lost" }, kinds = Object.keys(said);
    const most = Math.max(1, ...hops.map((hop) => hop.fresh + hop.repeated + hop.lost));
    const rows = hops.map((hop, number) => {
      const copies = kinds.map((kind) => `${hop[kind]} ${said[kind]}`).join(", ");
      const bar = element("span", { class: "copies", role: "img", "aria-label": copies, title: copies });
      for (const kind of kinds) bar.append(element("i", { class: kind }));
      kinds.forEach((kind, i) => (bar.children[i].style.width = `${(100 * hop[kind]) / most}%`));
      return [`${number + 1}`, `${hop.senders.size}`, bar, `${hop.fresh}`];
    });
    const key = kinds.flatMap((kind) => [element("i", { class: kind }), `${said[kind]} `]);
    return [element("h3", {}, "Hop by hop"), table(["hop", "senders", "copies", "reached"], rows), element("p", { class: "muted copies-key" }, ...key)];
  }

  _way(story) {
    const lines = [
      ...story.steps.map((step) => [step.time, this._step(step)]),
      ...story.decided.filter(({ decision }) => decision !== "forwarded").map((one) => [one.time, this._decision(one)]),
    ].sort(([a], [b]) => a - b);
    if (!lines.length) return [element("p", { class: "muted" }, "Its way was not recorded: run with --replay.")];
    const items = lines.slice(0, STEPS).map(([time, text]) =>
      element("li", {}, element("button", { class: "link", click: () => this._actions.seek(time) }, `+${spanText(Math.max(0, time - story.published))}`), " ", text));
    const more = lines.length > STEPS ? element("p", { class: "muted" }, `and ${lines.length - STEPS} more`) : null;
    return [element("h3", {}, "Its way"), element("ol", { class: "way" }, ...items), more];
  }

  _step({ sender, fresh, repeated, lost }) {
    const became = [];
    if (fresh.length) became.push(`→ ${fresh.join(", ")}`);
    if (repeated) became.push(repeated > 1 ? `${repeated} nodes had it already` : "one node had it already");
    for (const outcome of [1, 2, 3]) {
      const nodes = lost.filter((one) => one.outcome === outcome).map(({ node }) => node);
      if (nodes.length) became.push(`${words(this._run.about.outcomes[outcome])} at ${nodes.join(", ")}`);
    }
    return element("span", {}, element("b", {}, sender), fresh.length ? " " : ": ", became.join("; ") || "sent it, nobody in range");
  }

  _decision({ node, decision, to }) {
    return element("span", { class: "muted" }, `${node} ${decision}${to >= 0 ? ` (${to})` : ""}`);
  }
}
