// The way to the service: requests, the token, and the stream of server-sent events with its reconnection.

const TOKEN = "evb-token";
const STALE_S = 4;
const WAITS_S = [0.5, 1, 2, 4, 5];

// The service prints an address that ends with the token. It goes out of sight at once, and never to a server.
const shown = /^#token=(.+)$/.exec(location.hash);
if (shown) {
  sessionStorage.setItem(TOKEN, decodeURIComponent(shown[1]));
  history.replaceState(null, "", location.pathname);
}

let askForToken = null;
let asking = null;
let declined = false;

/** An answer that is an error, with what can be done about it. */
class Refusal extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint ?? "";
    this.status = status;
  }
}

/** Says who asks the viewer for a token: a function that returns a promise of it. */
export const onToken = (ask) => (askForToken = ask);

function headers(extra) {
  const token = sessionStorage.getItem(TOKEN);
  return { ...extra, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
}

async function newToken() {
  const wasWrong = sessionStorage.getItem(TOKEN) !== null;
  asking ??= askForToken(wasWrong).finally(() => (asking = null));
  const token = await asking;
  declined = !token;
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

async function send(path, options) {
  for (;;) {
    const used = sessionStorage.getItem(TOKEN);
    const answer = await fetch(path, {
      cache: "no-store",
      credentials: "same-origin",
      ...options,
      headers: headers(options.headers),
    });
    if (answer.status !== 401 || !askForToken || declined) return answer;
    if (sessionStorage.getItem(TOKEN) === used) await newToken();
    if (sessionStorage.getItem(TOKEN) === null) return answer;
  }
}

async function refusal(answer) {
  const said = await answer.json().catch(() => ({}));
  const message = said.error ?? `The service answered ${answer.status} ${answer.statusText}.`;
  const hint = answer.status === 401 ? "Load the page again to be asked for the token." : said.hint;
  return new Refusal(message, hint, answer.status);
}

async function good(path, options = {}) {
  let answer;
  try {
    answer = await send(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The service does not answer.", "Is evb serve still running?", 0);
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** The JSON at this path. */
export const get = async (path, signal) => (await good(path, { signal })).json();

/** The file at this path. */
export const file = async (path) => (await good(path)).blob();

async function write(method, path, body) {
  const options = { method, headers: { "Content-Type": "application/json", "X-Evb": "1" }, body: JSON.stringify(body) };
  const answer = await good(path, options);
  return answer.json().catch(() => ({}));
}

export const post = (path, body) => write("POST", path, body);
export const put = (path, body) => write("PUT", path, body);

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Cuts the text of a stream into events; gives each to `take`. Returns the rest. */
export function cut(rest, take) {
  const blocks = rest.replace(/\r\n?/g, "\n").split("\n\n");
  for (const block of blocks.slice(0, -1)) {
    let type = "message";
    const data = [];
    for (const line of block.split("\n")) {
      if (line.startsWith("event:")) type = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    if (data.length) take(type, data.join("\n"));
  }
  return blocks[blocks.length - 1];
}

async function read(answer, take) {
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest = cut(rest + decoder.decode(value, { stream: true }), take);
  }
}

/**
 * Follows the stream of events for ever. `handlers` has a function for each type of event, `opened` for each new
 * connection, and `stale(since)` with the time of the last status, or null when a status comes again.
 */
export function stream(handlers) {
  let last = Date.now() / 1000;
  let stale = false;
  let opened = 0;
  let failures = 0;
  let controller = new AbortController();

  function take(type, data) {
    let value;
    try {
      value = JSON.parse(data);
    } catch {
      return;
    }
    if (type === "status") {
      last = Date.now() / 1000;
      failures = 0;
      if (stale) handlers.stale(null);
      stale = false;
    }
    handlers[type]?.(value);
  }

  async function connect() {
    controller = new AbortController();
    opened = Date.now() / 1000;
    const answer = await good("api/events", { signal: controller.signal, headers: { Accept: "text/event-stream" } });
    handlers.opened();
    await read(answer, take);
  }

  setInterval(() => {
    const now = Date.now() / 1000;
    if (now - last > STALE_S && !stale) {
      stale = true;
      handlers.stale(last);
    }
    // A connection that says nothing is given up: the next one may fare better.
    if (now - Math.max(last, opened) > 2 * STALE_S && !asking) controller.abort();
  }, 500);

  (async () => {
    for (;;) {
      await connect().catch((error) => handlers.failed?.(error));
      await pause(WAITS_S[Math.min(failures, WAITS_S.length - 1)]);
      failures += 1;
    }
  })();
}
