// Starts the page. `roamcast` is there for tests, benchmarks and the curious.

function legend(run) {
  const roles = [...new Set(run.about.kinds.map(({ role }) => role))];
  for (const item of document.querySelectorAll("[data-role]")) item.hidden = !roles.includes(item.dataset.role);
  const has = {
    tree: run.spans.tree.one.length,
    relay: run.spans.relay.one.length,
    forwarder: run.spans.forwarder.one.length,
    kept: run.spans.kept.one.length,
    away: run.spans.away.one.length,
    building: run.about.buildings.length,
    relevance: run.about.regions.some(({ kind }) => kind === "relevance"),
    interest: run.about.regions.some(({ kind }) => kind === "interest"),
    frames: run.frame.start.length,
  };
  for (const item of document.querySelectorAll("[data-if]")) item.hidden = !has[item.dataset.if];
}

function title(run) {
  const { name, protocol, seed, nodes, duration, missing } = run.about;
  document.getElementById("name").textContent = name;
  document.getElementById("about").textContent = `${protocol} · ${nodes} nodes · ${duration} s · seed ${seed}`;
  const lacking = document.getElementById("missing");
  lacking.hidden = !missing.length;
  const again = missing.map((field) => `--set ${field}=true`).join(" ");
  lacking.textContent = `This run did not record all that can be shown: run it again with ${again}`;
}

async function start() {
  const run = new Run(await Columns.read(document.getElementById("data")));
  title(run);
  legend(run);
  const player = new Player(run);
  window.roamcast = player;
  document.documentElement.dataset.ready = "true";
  return player;
}

start().catch((problem) => {
  document.getElementById("about").textContent = `The page cannot be shown: ${problem.message}`;
  throw problem;
});
