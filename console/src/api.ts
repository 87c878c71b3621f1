// Owns: asking the server: credentials, commands as bytes, event streams. Does not own: what is shown.
//
// Commands go as Upstash's contract has them, with base64 in answers, so that bytes come as they are. What JSON cannot say goes in
// the path. Credentials are kept in sessionStorage, sent as Authorization, and never stand in an address.

import { asText, ofBase64, type Bytes } from "./bytes";

export type Reply = null | number | string | Bytes | Reply[];
export type Argument = string | number | Bytes;

/** What the server says instead of doing it. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
  get isRight(): boolean {
    return this.status === 403 || this.message.startsWith("NOPERM");
  }
}

/** The server cannot be reached. */
export class Away extends Error {}

const KEY = "weft.authorization";
let authorization = sessionStorage.getItem(KEY) ?? "";
let onAway: (away: boolean) => void = () => {};
let onStranger: () => void = () => {};

export function listen(away: (away: boolean) => void, stranger: () => void): void {
  onAway = away;
  onStranger = stranger;
}

export function useToken(token: string): void {
  keep(token === "" ? "" : `Bearer ${token}`);
}

export function usePassword(user: string, password: string): void {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  keep(`Basic ${btoa(String.fromCharCode(...bytes))}`);
}

export function forget(): void {
  keep("");
}

export function hasCredentials(): boolean {
  return authorization !== "";
}

function keep(value: string): void {
  authorization = value;
  if (value === "") sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, value);
}

/** A request; its answer whatever the status. */
async function ask(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (authorization !== "") headers.set("Authorization", authorization);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    onAway(true);
    throw new Away("the server does not answer");
  }
  onAway(false);
  if (answer.status === 401) {
    onStranger();
    throw new Refusal(await reason(answer), 401);
  }
  return answer;
}

async function reason(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const said = (JSON.parse(text) as { error?: string }).error;
    return said ?? text;
  } catch {
    return text;
  }
}

interface Said {
  result?: unknown;
  error?: string;
}

function decoded(value: unknown, top: boolean): Reply {
  if (Array.isArray(value)) return value.map((item) => decoded(item, false));
  if (typeof value === "string") return top && value === "OK" ? "OK" : ofBase64(value);
  return (value ?? null) as Reply;
}

const BASE64 = { "Upstash-Encoding": "base64" };

/** Runs one command. A reply that is an error is a Refusal. */
export async function call(db: number, words: Argument[], signal?: AbortSignal): Promise<Reply> {
  const texts = words.map((word) => (typeof word === "object" ? asText(word) : String(word)));
  if (texts.every((text) => text !== null)) {
    const [reply] = await pipeline(db, [texts as string[]], signal);
    if (reply instanceof Refusal) throw reply;
    return reply as Reply;
  }
  if (db !== 0) throw new Refusal("what is no text can be written to database 0 only; from a program, to any", 400);
  const last = words[words.length - 1]!;
  const path = words.slice(0, -1).map(escapedWord).join("/");
  const init = { method: "POST", headers: BASE64, body: typeof last === "object" ? last : String(last), signal: signal ?? null };
  const said = (await (await ask(`/${path}`, init)).json()) as Said;
  if (said.error !== undefined) throw new Refusal(said.error, 400);
  return decoded(said.result, true);
}

function escapedWord(word: Argument): string {
  const bytes = typeof word === "object" ? word : new TextEncoder().encode(String(word));
  return Array.from(bytes, (byte) => "%" + byte.toString(16).padStart(2, "0")).join("");
}

/** Runs commands, each by itself: a reply or a Refusal for each. */
export async function pipeline(db: number, commands: Argument[][], signal?: AbortSignal): Promise<(Reply | Refusal)[]> {
  const words = commands.map((command) => command.map((word) => (typeof word === "object" ? asText(word) : String(word))));
  const all = db === 0 ? words : [["SELECT", String(db)], ...words];
  const init = { method: "POST", headers: BASE64, body: JSON.stringify(all), signal: signal ?? null };
  const answer = await ask("/pipeline", init);
  if (!answer.ok) throw new Refusal(await reason(answer), answer.status);
  const said = (await answer.json()) as Said[];
  const replies = said.map((one) => (one.error === undefined ? decoded(one.result, true) : new Refusal(one.error, 200)));
  if (db === 0) return replies;
  const [selected, ...rest] = replies;
  if (selected instanceof Refusal) throw selected;
  return rest;
}

/** Who asks, and the commands that he may run. */
export async function rights(): Promise<{ user: string; commands: string[] }> {
  const answer = await ask("/v1/console/rights", {});
  if (!answer.ok) throw new Refusal(await reason(answer), answer.status);
  return (await answer.json()) as { user: string; commands: string[] };
}

function resource(db: number, key: Bytes): string {
  return `/v1/db/${db}/keys/${escapedWord(key)}`;
}

/** A string with its tag, by which it is replaced only as it was. */
export async function getString(db: number, key: Bytes, signal: AbortSignal): Promise<{ bytes: Bytes; tag: string }> {
  const answer = await ask(resource(db, key), { signal });
  if (!answer.ok) throw new Refusal(await reason(answer), answer.status);
  return { bytes: new Uint8Array(await answer.arrayBuffer()), tag: answer.headers.get("ETag") ?? "*" };
}

/** Replaces a string that still has the tag, and keeps its time. False where somebody has changed it. */
export async function putString(db: number, key: Bytes, bytes: Bytes, tag: string): Promise<boolean> {
  const init = { method: "PUT", headers: { "If-Match": tag }, body: bytes };
  const answer = await ask(`${resource(db, key)}?ttl=keep`, init);
  if (answer.status === 412) return false;
  if (!answer.ok) throw new Refusal(await reason(answer), answer.status);
  return true;
}

/** Follows an event stream until it ends or is given up; EventSource cannot say who asks. */
export async function follow(
  path: string,
  { signal, method = "GET" }: { signal: AbortSignal; method?: string },
  told: (data: string, event: string) => void,
): Promise<void> {
  const answer = await ask(path, { method, signal, headers: { Accept: "text/event-stream" } });
  if (!answer.ok || answer.body === null) throw new Refusal(await reason(answer), answer.status);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const piece = await reader.read().catch(() => {
      if (!signal.aborted) onAway(true);
      return { done: true as const, value: undefined };
    });
    if (piece.done) return;
    kept += piece.value;
    const blocks = kept.split("\n\n");
    kept = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const of = (name: string) => lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
      const data = of("data: ");
      if (data.length > 0) told(data.join("\n"), of("event: ")[0] ?? "message");
    }
  }
}
