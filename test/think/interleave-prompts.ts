// What must be true of every request that a model got.
import { type Facts, roleOf } from "./interleave-facts.ts";
import { type ModelCall, tagsIn } from "./interleave-record.ts";
import type { Say } from "./interleave-oracle.ts";
import type { World } from "./interleave-world.ts";

interface PromptPart {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
}

/** The messages that the model of a turn read as new: behind the last answer of the turns before it. */
export function answeredBy(calls: readonly ModelCall[]): ReadonlySet<string> {
  const first = calls[0]?.prompt ?? [];
  const last = calls.at(-1)?.prompt ?? [];
  const from = first.findLastIndex((message) => roleOf(message) === "assistant") + 1;
  const tags = last.slice(from).flatMap((message) => (roleOf(message) === "user" ? tagsIn(message) : []));
  return new Set(tags.map(({ tag }) => tag));
}

export function checkPrompts({ record, setup }: World, { calls, turn }: Facts, say: Say): void {
  for (const call of record.calls) {
    checkValid(call, setup.ids === "counted", say);
    const seen = new Set<string>();
    for (const { tag } of call.prompt.filter((message) => roleOf(message) === "user").flatMap(tagsIn)) {
      if (seen.has(tag)) say(`a request of ${call.turn} has ${tag} twice`);
      seen.add(tag);
    }
  }
  const cuts = [...record.requests.values()].filter(({ kind }) => kind === "edit" || kind === "regenerate");
  for (const [id, list] of calls) {
    for (const [i, call] of list.entries()) {
      const before = list[i - 1];
      if (before === undefined) continue;
      // What a conversation was before it was cut off is not stored: another attempt goes on from what there is.
      const asked = record.requests.get(id)?.order ?? 0;
      const cut = cuts.some(({ order }) => order > asked && order < call.order);
      if (cut && (before.life !== call.life || setup.stallMs > 0)) continue;
      if (!before.prompt.every((message, n) => message === call.prompt[n]))
        say(`request ${i} of ${id} does not start with the one before it`);
    }
    checkVersions(record, list, say);
    if (turn.get(id) === undefined) say(`the model was called for turn ${id}, which is not there`);
  }
}

/** A turn that began after a message was changed reads the change. */
function checkVersions(record: World["record"], list: readonly ModelCall[], say: Say): void {
  const [first] = list;
  if (first === undefined) return;
  for (const { tag, version } of tagsIn(first.prompt.join(""))) {
    const sent = [...record.sent.values()].find((one) => one.tag === tag);
    if (sent !== undefined && first.order > sent.versionSince && version < sent.version)
      say(`turn ${first.turn} read ${tag} as it was before it was changed`);
  }
}

/** Providers refuse a call without a result, a result without a call, and a message without content. */
function checkValid({ prompt, turn }: ModelCall, counted: boolean, say: Say): void {
  let open = new Set<string>();
  const known = new Set<string>();
  for (const json of prompt) {
    const { role, content } = JSON.parse(json) as { role: string; content: string | readonly PromptPart[] };
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (parts.length === 0 || parts.some(({ type, text }) => type === "text" && text === ""))
      say(`a request of ${turn} has an empty message`);
    if (role !== "tool" && open.size > 0) say(`a request of ${turn} has a call without a result`);
    for (const { type, toolCallId = "" } of parts) {
      if (type === "tool-call" && !counted && known.has(toolCallId))
        say(`a request of ${turn} has the call ${toolCallId} twice`);
      if (type === "tool-call") open.add(toolCallId);
      if (type === "tool-call") known.add(toolCallId);
      if (type === "tool-result" && !open.delete(toolCallId)) say(`a request of ${turn} has a result without a call`);
    }
    if (role === "tool" && open.size > 0) say(`a request of ${turn} has a call without a result`);
    if (role === "tool") open = new Set();
  }
  if (open.size > 0) say(`a request of ${turn} ends with a call without a result`);
  if (roleOf(prompt.at(-1) ?? "{}") === "system") say(`a request of ${turn} asks nothing`);
}
