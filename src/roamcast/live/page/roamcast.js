// The client of a roamcast node's HTTP API, for browsers and Node.js (18 or later): one file, no dependencies.
//
//   import { Client } from "./roamcast.js";
//   const client = new Client("http://127.0.0.1:47475", { token });   // on the node's own page: new Client()
//   const id = await client.publish({ type: "offer", attributes: { price: 12.5 } });   // "7:1"
//   for await (const { event, hops } of client.subscribe("price < 20")) console.log(event.id, event.attributes);
//
// The rules this file owns: OPERATIONS are those of the node's /openapi.json; every error is a ClientError; a
// subscription that is interrupted begins again by itself, a durable one ({ id: 5, durable: true }) where it stopped.

export class ClientError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.name = "ClientError";
    this.status = status; // of HTTP; 0: the node does not answer
  }
}

export const OPERATIONS = {
  status: ["GET", "/status"],
  health: ["GET", "/health"],
  metrics: ["GET", "/metrics"],
  openapi: ["GET", "/openapi.json"],
  publish: ["POST", "/publish"],
  events: ["GET", "/events"],
  poll: ["GET", "/poll"],
  subscriptions: ["GET", "/subscriptions"],
  unsubscribe: ["DELETE", "/subscriptions/{id}"],
  forget_author: ["DELETE", "/authors/{node}"],
  set_here: ["PUT", "/here"],
  set_attributes: ["PUT", "/attributes"],
  log_in: ["POST", "/session"],
  log_out: ["DELETE", "/session"],
};

const RETRY_MS = 2000; // between two attempts to reach a node that has stopped

export class Client {
  constructor(url = "", { token } = {}) {
    this.url = url.replace(/\/$/, "");
    this.headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  }

  status() { return this.#call("status"); }
  health() { return this.#call("health"); }
  openapi() { return this.#call("openapi"); }
  async metrics() { return (await this.#answer("metrics")).text(); }

  // Publishes { type, attributes, payload (Uint8Array), lifetime, relevance, subscription_domain }; gives the id when
  // the node has the event on disk.
  async publish(event) {
    const payload = event.payload === undefined ? {} : { payload: toBase64(event.payload) };
    return (await this.#call("publish", { body: { ...event, ...payload } })).id;
  }

  async subscriptions() { return (await this.#call("subscriptions")).subscriptions; }
  unsubscribe(id) { return this.#call("unsubscribe", { path: { id } }); }
  forgetAuthor(node) { return this.#call("forget_author", { path: { node } }); }
  setHere(here) { return this.#call("set_here", { body: here }); }
  setAttributes(attributes) { return this.#call("set_attributes", { body: attributes }); }
  logIn(token) { return this.#call("log_in", { body: { token } }); }
  logOut() { return this.#call("log_out"); }

  // The next events of a durable subscription: { events, position, missed }. Pass the position on as `after`.
  async poll(id, { filter = "true", after, wait = 20, signal } = {}) {
    const polled = await this.#call("poll", { query: { id, filter, after, wait }, signal });
    return { ...polled, events: polled.events.map(withPayload) };
  }

  // The events that match, as { event, hops, via, author, verified, published, position }; event.payload is a
  // Uint8Array. Options: id, durable, lifetime, interest, publication_domain, after; and signal (an AbortSignal),
  // onSubscribed(id), onMissed(count), onInterrupted(error).
  async *subscribe(filter = "true", { signal, onSubscribed, onMissed, onInterrupted, ...options } = {}) {
    let after = options.after;
    for (let known = false; ; await pause(RETRY_MS, signal)) {
      try {
        const answer = await this.#answer("events", { query: { ...options, filter, after }, signal });
        for await (const { name, data } of serverSentEvents(answer.body)) {
          const message = JSON.parse(data);
          if (name === "over") return;
          if (name === "subscribed") onSubscribed?.(message.subscribed);
          else if (name === "missed") onMissed?.(message.missed);
          else {
            after = message.position ?? after;
            yield withPayload(message);
          }
          known = true;
        }
        onInterrupted?.(new ClientError("the node has stopped"));
      } catch (problem) {
        if (signal?.aborted) return;
        const error = unreachable(this.url, problem);
        if (!known || error.status !== 0) throw error; // it may come back only if it was there
        onInterrupted?.(error);
      }
      if (signal?.aborted) return;
    }
  }

  async #call(name, options) {
    const answer = await this.#answer(name, options);
    try {
      return await answer.json();
    } catch (problem) {
      throw unreachable(this.url, problem);
    }
  }

  async #answer(name, { path = {}, query = {}, body, signal } = {}) {
    const [method, template] = OPERATIONS[name];
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
    const words = given.length ? `?${new URLSearchParams(given)}` : "";
    const place = template.replace(/\{(\w+)\}/, (_, key) => encodeURIComponent(path[key]));
    const headers = { ...this.headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
    let answer;
    try {
      answer = await fetch(this.url + place + words, { method, headers, body: JSON.stringify(body), signal });
    } catch (problem) {
      throw unreachable(this.url, problem);
    }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    throw new ClientError(told.error ?? `it answered ${answer.status}: is it a node?`, answer.status);
  }
}

function unreachable(url, problem) {
  if (problem instanceof ClientError) return problem;
  return new ClientError(`no node answers at ${url || "this address"}: ${problem.cause?.message ?? problem.message}`);
}

// The events of a stream, as { name, data }, by the rules of the HTML standard that a node makes use of.
async function* serverSentEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let unread = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (unread + value).split("\n\n");
      unread = blocks.pop();
      for (const block of blocks) {
        const fields = block.split("\n").map((line) => line.split(/: ?(.*)/s, 2));
        const data = fields.filter(([name]) => name === "data").map(([, text]) => text);
        if (data.length) yield { name: fields.find(([name]) => name === "event")?.[1], data: data.join("\n") };
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // ends the request, and with it the subscription
  }
}

function withPayload(message) {
  return { ...message, event: { ...message.event, payload: fromBase64(message.event.payload ?? "") } };
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function toBase64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
