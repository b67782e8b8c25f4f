import type { UIMessageChunk } from "ai";
import type { AgentToolEvent, AgentToolEventFrame } from "../../src/wire/agent-tool-frames.ts";

/*
 * What an agent might tell of the runs of its children, by chance but the same for each seed: several runs at once,
 * all kinds of events, repeated frames, and connections that are lost and begin again with a replay. What children
 * say is well-formed and without what only one of the two hooks understands (dynamic tools, preliminary results,
 * texts inside each other).
 */

type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export const EPOCH = 1_790_000_000_000;

/** The frames of one life of a page, in order. */
export function framesOf(seed: number): AgentToolEventFrame[] {
  const random = seeded(seed);
  const below = (n: number) => Math.floor(random() * n);
  const runs = Array.from({ length: 1 + below(5) }, (_, index) => newRun(`run-${index}`, random));
  const heard: AgentToolEventFrame[] = [];
  let connected = true;
  while (runs.some((run) => run.left.length > 0)) {
    const dice = random();
    if (dice < 0.04) connected = false;
    else if (dice < 0.1 && !connected) {
      connected = true;
      for (const run of runs) heard.push(...run.stored.map((frame) => ({ ...frame, replay: true as const })));
    }
    const run = runs[below(runs.length)];
    const event = run?.left.shift();
    if (run === undefined || event === undefined) continue;
    const frame = run.send(event);
    if (connected) heard.push(frame, ...(random() < 0.1 ? [frame] : []));
  }
  for (const run of runs) heard.push(...run.stored.map((frame) => ({ ...frame, replay: true as const })));
  return heard;
}

interface Run {
  readonly left: AgentToolEvent[];
  /** What a replay has: the start, stored chunks, milestones, and the last end. */
  readonly stored: AgentToolEventFrame[];
  send(event: AgentToolEvent): AgentToolEventFrame;
}

function newRun(runId: string, random: Random): Run {
  const parentToolCallId = ["call-a", "call-b", undefined][Math.floor(random() * 3)];
  let next = 0;
  const run: Run = {
    left: [...life(runId, random)],
    stored: [],
    send(event) {
      const unstored = event.kind === "chunk" && (event.unstoredId !== undefined || event.body.includes("data-agent-"));
      const frame: AgentToolEventFrame = {
        type: "agent-tool-event",
        ...(parentToolCallId !== undefined && { parentToolCallId }),
        sequence: next,
        event,
      };
      if (!unstored) next += 1;
      const last = run.stored.at(-1);
      if (last !== undefined && isEnd(last.event)) run.stored.pop();
      if (!unstored || (event.kind === "chunk" && event.body.includes("data-agent-milestone"))) run.stored.push(frame);
      else if (last !== undefined && isEnd(last.event)) run.stored.push(last);
      return frame;
    },
  };
  return run;
}

function isEnd({ kind }: AgentToolEvent): boolean {
  return kind !== "started" && kind !== "chunk";
}

function* life(runId: string, random: Random): Generator<AgentToolEvent> {
  yield {
    kind: "started",
    runId,
    agentType: "Researcher",
    order: Math.floor(random() * 3),
    ...(random() < 0.5 && { inputPreview: { q: runId } }),
    ...(random() < 0.5 && { display: { name: runId, icon: "search" } }),
  };
  let ids = 0;
  let milestones = 0;
  const chunk = (body: object, unstoredId?: string): AgentToolEvent => ({
    kind: "chunk",
    runId,
    body: JSON.stringify(body),
    ...(unstoredId !== undefined && { unstoredId }),
  });
  for (const part of Array.from({ length: Math.floor(random() * 8) }, () => spoken(random, `${runId}-${ids++}`))) {
    for (const one of part) {
      yield chunk(one);
      if (random() < 0.1) {
        const data = { fraction: random(), ...(random() < 0.5 && { phase: "scan", data: { n: ids } }) };
        yield chunk({ type: "data-agent-progress", id: `p${ids++}`, transient: true, data });
      }
      if (random() < 0.07) {
        const at = EPOCH + Math.floor(random() * 100);
        yield chunk({
          type: "data-agent-milestone",
          data: { name: `m${milestones}`, sequence: milestones++, at, message: "there", data: [at] },
        });
      }
      if (random() < 0.05) yield chunk({ type: "data-big", data: { n: ids } }, `u${ids++}`);
    }
  }
  const dice = random();
  if (dice < 0.3) {
    yield { kind: "interrupted", runId, error: "silent", reason: "no-progress", childStillRunning: random() < 0.5 };
    if (random() < 0.5) return;
  }
  if (dice < 0.6) yield { kind: "finished", runId, summary: `done ${runId}` };
  else if (dice < 0.75) yield { kind: "error", runId, error: "boom" };
  else if (dice < 0.9) yield { kind: "aborted", runId, ...(random() < 0.5 && { reason: "enough" }) };
}

function spoken(random: Random, id: string): UIMessageChunk[] {
  const providerMetadata = { p: { id } };
  const head = { toolCallId: id, toolName: "search" };
  const streamed: UIMessageChunk[] = [
    { type: "tool-input-start", ...head, ...(random() < 0.5 && { providerMetadata }) },
    { type: "tool-input-delta", toolCallId: id, inputTextDelta: '{"q":' },
    { type: "tool-input-delta", toolCallId: id, inputTextDelta: '"x"}' },
  ];
  const input: UIMessageChunk[] = [
    ...(random() < 0.5 ? streamed : []),
    { type: "tool-input-available", ...head, input: { q: "x" }, ...(random() < 0.3 && { title: "Search" }) },
  ];
  const approval: UIMessageChunk = { type: "tool-approval-request", toolCallId: id, approvalId: `ok-${id}` };
  const choices: UIMessageChunk[][] = [
    [
      { type: "start-step" },
      { type: "text-start", id },
      { type: "text-delta", id, delta: `text ${id} ` },
      { type: "text-delta", id, delta: "ünïcödé" },
      { type: "text-end", id },
      { type: "finish-step" },
    ],
    [
      { type: "reasoning-start", id },
      { type: "reasoning-delta", id, delta: "hm", providerMetadata },
      { type: "reasoning-end", id, providerMetadata: { q: { id } } },
    ],
    [...input, { type: "tool-output-available", toolCallId: id, output: [id] }],
    [...input, { type: "tool-output-error", toolCallId: id, errorText: "no" }],
    [...input, approval],
    [...input, approval, { type: "tool-output-denied", toolCallId: id }],
    [{ type: "tool-input-error", ...head, input: { q: 1 }, errorText: "bad" }],
    [{ type: "file", url: `data:,${id}`, mediaType: "text/plain" }],
    [{ type: "source-url", sourceId: id, url: "https://example.com", title: "T" }],
    [{ type: "source-document", sourceId: id, mediaType: "text/plain", title: "T", filename: "f.txt" }],
    [
      { type: "data-note", id, data: { n: 1 } },
      { type: "data-note", id, data: { n: 2 } },
      { type: "data-flash", data: 1, transient: true },
    ],
    [{ type: "start", messageId: id }, { type: "message-metadata", messageMetadata: { a: 1 } }, { type: "finish" }],
  ];
  return choices[Math.floor(random() * choices.length)] ?? [];
}
