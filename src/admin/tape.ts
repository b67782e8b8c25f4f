import { isTerminal, isToolPart, type Part, toolName, type UIMessage } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import { tryParseJson } from "../base/json.ts";
import { findRequest, showRequest } from "../model/read-request.ts";
import { type TapeEvent, type TapeHead, type TapeSaid, tapeWriter } from "../model/tape.ts";
import type { Sql } from "../port.ts";
import { requestsOfTurn } from "../store/frame.ts";
import { readMessage } from "../store/message.ts";
import { callsOfTurn, toolCallsOf } from "../store/tool-call.ts";
import { answeredTurns, messageIdsOf, type TurnRow } from "../store/turn.ts";

/** What reads an agent's rows, and wakes nobody. */
type Look = <T>(read: (rows: Sql) => T) => T;

/** Makes a tape of a session from its rows: all turns that are remembered, without what is still under way. */
export async function* tapeOf(look: Look, agent: string, session: string): AsyncIterable<object> {
  const head: TapeHead = { tape: 1, agent, session };
  yield head;
  const write = tapeWriter();
  const turns = look((rows) => answeredTurns(rows, session));
  for (const [i, turn] of turns.entries()) for (const event of await eventsOf(look, turn, i + 1)) yield write(event);
}

async function eventsOf(look: Look, row: TurnRow, turn: number): Promise<TapeEvent[]> {
  const { messages, answer, calls, tools, later } = look((rows) => ({
    messages: messageIdsOf(row).flatMap((id) => readIn(rows, id) ?? []),
    answer: row.answerId === null ? undefined : readIn(rows, row.answerId),
    calls: requestsOfTurn(rows, row.id).filter(({ purpose, status }) => purpose === "turn" && status === "ok"),
    tools: callsOfTurn(rows, row.id),
    // A call that waited for a person has ended in a later turn.
    later: new Set(
      (row.answerId === null ? [] : toolCallsOf(rows, row.answerId)).flatMap(({ toolCallId, turnId }) =>
        turnId === row.id ? [] : [toolCallId],
      ),
    ),
  }));
  const events: TapeEvent[] = [];
  for (const { toolCallId, decidedAt, status } of tools) {
    if (decidedAt === null || row.trigger !== "continuation") continue;
    events.push({ t: "answer", turn, toolCallId, approved: status !== "denied" && status !== "expired" });
  }
  events.push({ t: "turn", turn, trigger: row.trigger, messages });
  const steps = stepsIn(answer?.parts.slice(row.baseParts) ?? []);
  // What was asked before this turn, and ended in it.
  const earlier = answer?.parts.slice(0, row.baseParts) ?? [];
  const ran = new Set(tools.map(({ toolCallId }) => toolCallId));
  events.push(
    ...endsOf(
      earlier.filter((part) => isToolPart(part) && ran.has(part.toolCallId)),
      turn,
    ),
  );
  for (const [i, call] of calls.entries()) {
    const found = look((rows) => findRequest(rows, call.id));
    if (found === undefined) continue;
    const {
      step,
      attempt,
      model,
      proof,
      instructions,
      tools: shown,
      settings,
      messages: sent,
    } = await showRequest(found);
    events.push({
      ...{ t: "call", turn, step, try: attempt, model, proof, instructions, messages: sent },
      ...{ tools: shown as Record<string, unknown>, settings: settings as Record<string, unknown> },
    });
    const parts = steps[i] ?? [];
    events.push({ ...saidIn(parts), t: "said", turn, step, usage: usageOf(call) });
    events.push(
      ...endsOf(
        parts.filter((part) => !isToolPart(part) || !later.has(part.toolCallId)),
        turn,
      ),
    );
  }
  events.push({ t: "end", turn, status: row.status });
  return events;
}

function readIn(rows: Sql, id: string): UIMessage | undefined {
  const body = readMessage(rows, id)?.body;
  return body === undefined ? undefined : parseMessage(tryParseJson(body));
}

/** The parts of an answer by steps. */
function stepsIn(parts: readonly Part[]): Part[][] {
  const steps: Part[][] = [];
  for (const part of parts) {
    if (part.type === "step-start") steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

function saidIn(parts: readonly Part[]): Pick<TapeSaid, "text" | "reasoning" | "toolCalls"> {
  const of = (type: "text" | "reasoning") => parts.map((part) => (part.type === type ? part.text : "")).join("");
  const [text, reasoning] = [of("text"), of("reasoning")];
  const toolCalls = parts.flatMap((part) =>
    isToolPart(part) ? [{ toolCallId: part.toolCallId, toolName: toolName(part), input: part.input }] : [],
  );
  return {
    ...(reasoning !== "" && { reasoning }),
    ...(text !== "" && { text }),
    ...(toolCalls.length > 0 && { toolCalls }),
  };
}

function endsOf(parts: readonly Part[], turn: number): TapeEvent[] {
  return parts.flatMap((part): TapeEvent[] => {
    if (!isToolPart(part) || !isTerminal(part) || part.state === "output-denied") return [];
    const call = { toolCallId: part.toolCallId, toolName: toolName(part), input: part.input };
    const end = part.state === "output-error" ? { error: part.errorText } : { output: part.output };
    return [{ t: "tool", turn, ...call, ...(end as { output?: unknown; error?: string }) }];
  });
}

function usageOf({ input, output }: { readonly input: number | null; readonly output: number | null }) {
  return { ...(input !== null && { inputTokens: input }), ...(output !== null && { outputTokens: output }) };
}
