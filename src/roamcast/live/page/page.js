// The node's own page: status, neighbours, a form to publish, and the events that arrive.
import { Client } from "./roamcast.js";

const client = new Client();
const at = (id) => document.getElementById(id);
const MOST = 100; // events shown
const EVERY_MS = 2000; // between two looks at the status

let listening = new AbortController();

function say(place, words, wrong = false) {
  at(place).textContent = words;
  at(place).classList.toggle("wrong", wrong);
}

function line(...parts) {
  const item = document.createElement("li");
  item.append(...parts);
  return item;
}

function styled(tag, words, name = "") {
  const element = document.createElement(tag);
  element.textContent = words;
  element.className = name;
  return element;
}

async function look() {
  try {
    const status = await client.status();
    at("name").textContent = `Node ${status.node}`;
    const here = status.here ? `at ${status.here.map((metres) => metres.toFixed(0)).join(", ")} m` : "position unknown";
    say("state", `${status.protocol}, ${status.key ? "with a key" : "insecure"}, ${here}`);
    const known = status.neighbours.map(({ node, heard_s_ago: ago }) => line(`${node}, heard ${ago.toFixed(0)} s ago`));
    at("neighbours").replaceChildren(...(known.length ? known : [line(styled("span", "none heard", "quiet"))]));
    return true;
  } catch (problem) {
    if (problem.status === 401) ask(true);
    say("state", problem.message, problem.status !== 401);
    return false;
  }
}

function ask(forToken) {
  at("login").hidden = !forToken;
  at("main").hidden = forToken;
}

// A value is read as JSON, or else is text: 12.5 and true, but also jazz.
function read(text) {
  try {
    const value = JSON.parse(text);
    if (value !== null && (typeof value !== "object" || Array.isArray(value))) return value;
  } catch { /* it is text */ }
  return text;
}

function attributes(text) {
  const named = {};
  for (const each of text.split("\n").filter((words) => words.trim())) {
    const [, name, value] = each.match(/^\s*(.+?)\s*=\s*(.*?)\s*$/) ?? [];
    if (name === undefined) throw new Error(`${each}: expected NAME = VALUE, such as price = 12.5`);
    named[name] = read(value);
  }
  return named;
}

async function publish() {
  try {
    const id = await client.publish({ type: at("type").value, attributes: attributes(at("attributes").value) });
    say("published", `published as ${id}`);
  } catch (problem) {
    say("published", problem.message, true);
  }
}

function show({ event, hops, author, verified }) {
  const named = Object.entries(event.attributes ?? {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const bytes = event.payload.length ? `, ${event.payload.length} bytes` : "";
  const from = `from ${author}${verified ? "" : " (not verified)"}, ${hops} hop${hops === 1 ? "" : "s"}${bytes}`;
  at("events").prepend(
    line(styled("strong", `${event.id} ${event.type ?? ""} `), styled("code", named.join(", ")), styled("div", from, "quiet")),
  );
  while (at("events").children.length > MOST) at("events").lastChild.remove();
}

async function listen() {
  listening.abort();
  const { signal } = (listening = new AbortController());
  say("subscribed", "subscribing …");
  try {
    const events = client.subscribe(at("filter").value.trim() || "true", {
      signal,
      onSubscribed: () => say("subscribed", "listening"),
      onMissed: (count) => say("subscribed", `listening; ${count} missed`),
      onInterrupted: () => say("subscribed", "the node does not answer; trying again", true),
    });
    for await (const message of events) show(message);
  } catch (problem) {
    say("subscribed", problem.message, true);
  }
}

function onSubmit(form, act) {
  at(form).addEventListener("submit", (event) => {
    event.preventDefault();
    act();
  });
}

async function begin() {
  if (!(await look())) return;
  ask(false);
  listen();
}

onSubmit("publish", publish);
onSubmit("subscribe", listen);
onSubmit("login", async () => {
  try {
    await client.logIn(at("token").value);
    at("token").value = "";
    at("logout").hidden = false;
    await begin();
  } catch (problem) {
    say("state", problem.message, true);
  }
});
at("logout").addEventListener("click", async () => {
  listening.abort();
  await client.logOut();
  ask(true);
});
setInterval(() => {
  if (at("login").hidden) (at("main").hidden ? begin : look)();
}, EVERY_MS);
begin();
