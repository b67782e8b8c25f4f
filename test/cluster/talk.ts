import { WebSocket } from "ws";
import { setTimeout } from "node:timers/promises";
import { PATIENCE_MS } from "../support/until.ts";

/** How many chunks an answer has, and what it is whole. */
export const CHUNKS = 60;
export const WHOLE = Array.from({ length: CHUNKS }, (_, chunk) => `x.${chunk} `).join("");

/** Somebody who asks one question on a real socket, and notes what they see. */
export interface Asker {
  readonly name: string;
  /** The text so far, in the order in which it came. */
  readonly seen: () => string;
  readonly closed: () => number | undefined;
  end(): void;
}

/** Asks the agent called `name` for {@link CHUNKS} chunks, `delay` ms apart. */
export async function ask(url: string, name: string, delay = 15): Promise<Asker> {
  const ws = new WebSocket(`${url.replace("http", "ws")}/agents/bench-think/${name}`);
  let seen = "";
  let closed: number | undefined;
  ws.on("error", () => {});
  ws.on("close", (code) => (closed = code));
  ws.on("message", (data) => {
    const frame = JSON.parse(String(data as Buffer)) as { type: string; body?: string };
    if (frame.type !== "cf_agent_use_chat_response" || frame.body === undefined || frame.body === "") return;
    const chunk = JSON.parse(frame.body) as { type: string; delta?: string };
    if (chunk.type === "text-delta") seen += chunk.delta ?? "";
  });
  await new Promise<void>((resolve, reject) => {
    ws.once("open", () => resolve());
    ws.once("error", reject);
  });
  const text = `go chunks=${CHUNKS} delay=${delay}`;
  const messages = [{ id: `u-${name}`, role: "user", parts: [{ type: "text", text }] }];
  const body = JSON.stringify({ messages });
  ws.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: `q-${name}`, init: { method: "POST", body } }));
  return { name, seen: () => seen, closed: () => closed, end: () => ws.terminate() };
}

/** What the agent has stored as its answer; undefined while nobody can say. */
export async function answerOf(url: string, name: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/agents/bench-think/${name}/get-messages`);
    if (!response.ok) return undefined;
    const messages = (await response.json()) as { role: string; parts: { type: string; text?: string }[] }[];
    const last = messages.at(-1);
    if (last?.role !== "assistant") return "";
    return last.parts.map(({ type, text }) => (type === "text" ? (text ?? "") : "")).join("");
  } catch {
    return undefined;
  }
}

/** Waits until the answer is whole. @returns what it is in the end */
export async function wholeAnswer(url: string, name: string): Promise<string | undefined> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await answerOf(url, name);
    if (answer === WHOLE || Date.now() > end) return answer;
    await setTimeout(50);
  }
}
