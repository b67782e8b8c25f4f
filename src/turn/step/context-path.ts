import { project } from "../../context/project.ts";
import type { ContextReader, ContextView, PathNode } from "../../context/view.ts";
import type { UIMessage } from "../../message/types.ts";
import type { ReadableEntry } from "../../session/path-window.ts";
import type { Conversations } from "../engine/conversations.ts";
import { waitingMessages } from "../engine/history.ts";
import { settledParts } from "./answer.ts";

type Reading = Pick<Conversations, "host" | "transcripts" | "turnIn">;

/** The conversation of a turn as the model reads it. */
export interface TurnContextView {
  /** All of it, with what the running turn has said so far. */
  readonly view: ContextView;
  /** What it shows without that. */
  readonly base: readonly UIMessage[];
  /** How many parts of what the running turn has added are covered by a compaction. */
  readonly covered: number;
}

/**
 * The path of a session, newest first, as the model may see it: while a turn of it runs, its answer is as far as its
 * model calls are settled, in the form in which it will be stored, and what waits for a turn of its own is not there.
 */
export function* nodesUp(desk: Reading, session: string, called: number): Generator<PathNode> {
  const { host } = desk;
  const running = desk.turnIn(session);
  const transcript = desk.transcripts.of(session);
  if (running === undefined || running.cutBy === "cleared") {
    yield* transcript.up();
    return;
  }
  const { id } = running.builder;
  const waiting = waitingMessages(host, running.row, () => transcript.unanswered(id));
  for (const entry of transcript.up()) {
    if (waiting.has(entry.id)) continue;
    if (entry.id !== id) yield entry;
    else if (!running.empty)
      yield toNode(entry, [
        ...running.builder.parts.slice(0, running.builder.inherited),
        ...ownParts(desk, session, called),
      ]);
  }
}

/** What the running turn has added, as it will be stored. */
export function ownParts(desk: Reading, session: string, called: number): UIMessage["parts"] {
  const running = desk.turnIn(session);
  if (running === undefined) return [];
  const { builder } = running;
  const parts = settledParts(builder, called);
  return desk.transcripts.of(session).clean({ id: builder.id, role: "assistant", parts }).parts;
}

/** What the model is shown of a session, with what the running turn has added apart. */
export function contextOf(desk: Reading, reader: ContextReader, session: string, called: number): TurnContextView {
  const view = reader.read(nodesUp(desk, session, called), session);
  const running = desk.turnIn(session);
  if (running === undefined) return { view, base: project(view), covered: 0 };
  const { id, inherited } = running.builder;
  const nodes = view.nodes.flatMap((node) => {
    if (node.message.id !== id) return [node];
    const parts = node.message.parts.slice(0, inherited);
    return parts.length > node.from ? [{ ...node, message: { ...node.message, parts } }] : [];
  });
  const from = view.nodes.find(({ message }) => message.id === id)?.from ?? 0;
  return { view, base: project({ ...view, nodes }), covered: Math.max(0, from - inherited) };
}

function toNode({ seq, message, pinned }: ReadableEntry, parts: UIMessage["parts"]): PathNode {
  return { seq, pinned, message: { ...message, parts } };
}
