// Starts the page. `roamcast` is there for tests, benchmarks and the curious.

function legend(runs) {
  const any = (test) => runs.some(test), { about } = runs[0];
  const roles = new Set(runs.flatMap((run) => run.about.kinds.map(({ role }) => role)));
  for (const item of document.querySelectorAll("[data-role]")) item.hidden = !roles.has(item.dataset.role);
  const has = {
    building: about.buildings.length,
    relevance: about.regions.some(({ kind }) => kind === "relevance"),
    interest: about.regions.some(({ kind }) => kind === "interest"),
    frames: any((run) => run.frame.start.length),
  };
  for (const name of ["tree", "relay", "forwarder", "kept", "away"]) has[name] = any((run) => run.spans[name].one.length);
  for (const item of document.querySelectorAll("[data-if]")) item.hidden = !has[item.dataset.if];
}

function title(runs) {
  const { name, protocol, seed, nodes, duration } = runs[0].about;
  const names = [...new Set(runs.map((run) => run.about.name))];
  document.getElementById("name").textContent = names.join(" and ");
  const own = runs.length > 1 ? [] : [protocol];
  document.getElementById("about").textContent = [...own, `${nodes} nodes`, `${duration} s`, `seed ${seed}`].join(" · ");
  const missing = [...new Set(runs.flatMap((run) => run.about.missing))];
  const lacking = document.getElementById("missing");
  lacking.hidden = !missing.length;
  const again = missing.map((field) => `--set ${field}=true`).join(" ");
  const which = runs.length > 1 ? "A run" : "This run";
  lacking.textContent = `${which} did not record all that can be shown: run it again with ${again}`;
}

// Where each run is shown: what the page has for the first, and copies of it for a second.
function places(labels) {
  const containers = ["stages", "about-node", "about-event", "timelines"].map((id) => document.getElementById(id));
  document.body.classList.toggle("two", labels.length > 1);
  return labels.map((label, i) => {
    if (i) for (const container of containers) container.append(copy(container.firstElementChild));
    const [figure, node, event, timeline] = containers.map((container) => container.children[i]);
    for (const place of [figure, timeline]) place.querySelector("figcaption").textContent = label ?? "";
    return { canvas: figure.querySelector("canvas"), timeline: timeline.querySelector("canvas"), node, event };
  });
}

function copy(original) {
  const made = original.cloneNode(true);
  for (const named of made.querySelectorAll("[id]")) named.removeAttribute("id");
  return made;
}

async function start() {
  const runs = [];
  for (const data of [...document.querySelectorAll("script.data")]) runs.push(new Run(await Columns.read(data)));
  title(runs);
  legend(runs);
  const labels = runs.map((run) => (runs.length > 1 ? run.about.label : null));
  const player = new Player(runs, places(labels), labels);
  window.roamcast = player;
  document.documentElement.dataset.ready = "true";
  return player;
}

start().catch((problem) => {
  document.getElementById("about").textContent = `The page cannot be shown: ${problem.message}`;
  throw problem;
});
