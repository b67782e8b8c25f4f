// Reads server-sent events as a client without any library would.
import { onTestFinished } from "vitest";
import { eventually } from "../host/open-host.ts";

/** One event: its id if it has one, and its data, parsed unless it is `[DONE]`. */
export interface ServerEvent {
  readonly id: string | undefined;
  readonly data: { readonly type: string; readonly [field: string]: unknown } | "[DONE]";
}

/** A stream that is being read. */
export interface EventReader {
  readonly response: Response;
  readonly events: readonly ServerEvent[];
  /** How the stream ended, once it has. */
  readonly end: "closed" | "broken" | undefined;
  readonly text: string;
  said(text: string): Promise<void>;
  /** Resolves at the end of the stream, with the data of its `data-turn`. */
  outcome(): Promise<unknown>;
  leave(): Promise<void>;
}

/** Reads a response to its end, in the background. */
export function readEvents(response: Response): EventReader {
  const events: ServerEvent[] = [];
  let end: EventReader["end"];
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  onTestFinished(() => reader?.cancel().catch(() => {}));
  void (async () => {
    let rest = "";
    for (;;) {
      const read = await reader?.read();
      if (read === undefined || read.done) break;
      const texts = (rest + read.value).split("\n\n");
      rest = texts.pop() ?? "";
      for (const text of texts) events.push(toEvent(text));
    }
    end ??= "closed";
  })().catch(() => (end ??= "broken"));
  const all: EventReader = {
    response,
    events,
    get end() {
      return end;
    },
    get text() {
      return events
        .map(({ data }) => (data !== "[DONE]" && data.type === "text-delta" ? String(data.delta) : ""))
        .join("");
    },
    said: async (text) => void (await eventually(() => all.text.endsWith(text), `"${text}" in a stream`)),
    async outcome() {
      await eventually(() => end === "closed", "the end of a stream");
      const last = events.at(-2)?.data;
      return last === undefined || last === "[DONE]" ? undefined : last.data;
    },
    leave: async () => reader?.cancel().catch(() => {}),
  };
  return all;
}

function toEvent(text: string): ServerEvent {
  const field = (name: string) =>
    text
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field("data") ?? "";
  return { id: field("id"), data: data === "[DONE]" ? data : (JSON.parse(data) as { type: string }) };
}
