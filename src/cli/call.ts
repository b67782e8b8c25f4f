import { PerdureError, type PerdureErrorCode } from "../base/error.ts";
import { isRecord } from "../base/json.ts";
import { harmless, harmlessJson } from "./table.ts";
import { type Target, Unreached } from "./target.ts";

/** An object of an answer. */
export type Item = Readonly<Record<string, unknown>>;

/** What was asked about is not so: an agent that cannot be read, a host that is not well. */
export class NotHeld extends Error {}

/** A command with what it was given. */
export interface Call {
  /** What it is about, opened when it is first asked. */
  readonly target: () => Promise<Target>;
  /** The directory that it is about, unless it is about a URL. */
  readonly dir: string;
  /** It is about a URL. */
  readonly isElsewhere: boolean;
  readonly operands: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly json: boolean;
}

/** A command. */
export interface Command {
  readonly name: string;
  /** `<x>` must be given, `[x]` may be. */
  readonly operands: readonly string[];
  readonly options: readonly string[];
  readonly what: string;
  readonly run: (call: Call) => Promise<void> | void;
}

/** The place of the agent that a command is about. */
export function agent({ operands }: Call): string {
  return `agents/${encodeURIComponent(operands[0] ?? "")}`;
}

/** Options as the query of an address. */
export function query({ values }: Call, names: readonly string[]): string {
  const given = names.flatMap((name) =>
    typeof values[name] === "string" ? [[name, values[name]] as [string, string]] : [],
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given).toString()}`;
}

/** Asks for something to be done, and says that it was. */
export async function done(call: Call, method: string, place: string, word: string, body?: object): Promise<void> {
  const item = await one(call, method, place, body);
  print(call, [item], () => harmless(`${word} ${call.operands.join(" ")}`));
}

/** What something is answered that shows no token, or a wrong one. */
const UNAUTHORIZED = 401;

/** An answer that is none of an error. @throws PerdureError, NotHeld, Unreached */
export async function answered(
  { target }: Call,
  ...[method, place, body, signal]: Parameters<Target["ask"]>
): Promise<Response> {
  const host = await target();
  const response = await host.ask(method, place, body, signal);
  if (response.ok) return response;
  if (response.status === UNAUTHORIZED)
    throw new PerdureError(
      "bad_config",
      "The host knows no such token. Set PERDURE_TOKEN to one of its `admin.token`.",
    );
  const text = await response.text();
  let told: unknown;
  try {
    told = (JSON.parse(text) as Item)["error"];
  } catch {
    // Something else answers there.
  }
  if (isRecord(told)) throw toError(told, host.isAtRest);
  throw new NotHeld(
    `What answers there is no host that is open to operators: ${response.status}. See \`perdure docs operate\`.`,
  );
}

/** What a host has answered as an error. */
export function toError({ code, message }: Item, isAtRest: boolean): Error {
  if (isAtRest && code === "bad_state") return new Unreached(String(message as string));
  return new PerdureError(code as PerdureErrorCode, String(message as string));
}

/** One object. */
export async function one(call: Call, method: string, place: string, body?: object): Promise<Item> {
  return (await (await answered(call, method, place, body)).json()) as Item;
}

/** All pages of a list. */
export async function all(call: Call, place: string): Promise<Item[]> {
  const items: Item[] = [];
  const more = typeof call.values["class"] === "string" ? { class: call.values["class"] } : {};
  for (let after = ""; ;) {
    const { pathname, search } = new URL(place, "http://x");
    const asked = new URLSearchParams([...new URLSearchParams(search), ...Object.entries(more), ["after", after]]);
    const page = await one(call, "GET", `${pathname.slice(1)}?${asked.toString()}`);
    items.push(...(page["items"] as Item[]));
    if (typeof page["next"] !== "string") return items;
    after = page["next"];
  }
}

/** The lines of an answer as they come. @throws Unreached when the host goes away */
export async function* linesOf(response: Response): AsyncIterable<string> {
  let rest = "";
  try {
    for await (const text of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } catch {
    throw new Unreached("The host has gone away.");
  }
}

/** Data for people, or as JSON. @param none what people are told, beside the data, where there is none */
export function print(
  { json }: Call,
  items: readonly Item[],
  toText: (items: readonly Item[]) => string,
  none = "",
): void {
  if (items.length === 0) {
    if (none !== "" && !json) console.error(none);
    return;
  }
  const text = json ? items.map((item) => harmlessJson(JSON.stringify(item))).join("\n") : toText(items);
  process.stdout.write(`${text}\n`);
}
