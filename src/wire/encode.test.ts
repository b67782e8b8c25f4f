import { expect, test } from "vitest";
import { PerdureError } from "../base/error.ts";
import type { UIMessage } from "../message/types.ts";
import { chunkFrameEncoder, encodeFrame, encodeStateFrame } from "./encode.ts";
import type { ChatResponseFrame, ServerFrame } from "./frames.ts";

const message: UIMessage = { id: "a1", role: "assistant", parts: [{ type: "text", text: "hi \ud800 \u2028" }] };

const frames: ServerFrame[] = [
  { type: "cf_agent_identity", name: "room one", agent: "chat-agent", stateFollows: true },
  { type: "cf_agent_identity", name: "r", agent: "chat-agent" },
  { type: "cf_agent_state", state: { count: 1 } },
  { type: "cf_agent_state", state: null },
  { type: "cf_agent_state", state: 0 },
  { type: "cf_agent_state", state: "" },
  { type: "cf_agent_state", state: false },
  { type: "cf_agent_state_error", error: "Connection is readonly" },
  { type: "cf_agent_mcp_servers", mcp: { servers: {}, tools: [], prompts: [], resources: [] } },
  { type: "rpc", id: "1", success: true, result: null, done: true },
  { type: "rpc", id: "1", success: true, result: ["chunk"], done: false },
  { type: "rpc", id: "1", success: false, error: "Method nope does not exist" },
  { type: "cf_agent_use_chat_response", id: "Y", body: "", done: true, messageIds: ["u1"], outcome: "completed" },
  { type: "cf_agent_use_chat_response", id: "Y", body: "no", done: true, error: true, continuation: true },
  { type: "cf_agent_use_chat_response", id: "Y", body: "", done: false, replay: true, replayComplete: true },
  { type: "cf_agent_chat_messages", messages: [message], connect: true },
  { type: "cf_agent_chat_clear" },
  { type: "cf_agent_message_updated", message },
  { type: "cf_agent_stream_resuming", id: "Y", probeId: "p" },
  { type: "cf_agent_stream_resume_none", reason: "idle", probeId: "p" },
  { type: "cf_agent_stream_pending", id: "Y" },
  { type: "cf_agent_chat_recovering", recovering: false, id: "Y" },
  { type: "agent-tool-event", sequence: 0, event: { kind: "started", runId: "r", agentType: "Researcher", order: 0 } },
];

test.each(frames)("$type comes back as it was", (frame) => {
  expect(JSON.parse(encodeFrame(frame))).toEqual(frame);
});

test("undefined fields are left out", () => {
  expect(encodeFrame({ type: "cf_agent_stream_resuming", id: "Y", probeId: undefined })).toBe(
    '{"type":"cf_agent_stream_resuming","id":"Y"}',
  );
  expect(JSON.parse(encodeFrame({ type: "rpc", id: "1", success: true, result: undefined, done: true }))).toEqual({
    type: "rpc",
    id: "1",
    success: true,
    done: true,
  });
});

test("a stored state needs no second encoding", () => {
  expect(JSON.parse(encodeStateFrame('{"a":[1]}'))).toEqual({ type: "cf_agent_state", state: { a: [1] } });
});

test("what JSON cannot hold is bad input, and says what it was", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const cases: [ServerFrame, string][] = [
    [{ type: "cf_agent_state", state: undefined }, "The state"],
    [{ type: "cf_agent_state", state: () => 1 }, "The state"],
    [{ type: "cf_agent_state", state: { n: 1n } }, "The state"],
    [{ type: "rpc", id: "1", success: true, result: cycle }, "The result"],
    [{ type: "cf_agent_message_updated", message: { ...message, metadata: cycle } }, "cf_agent_message_updated"],
  ];
  for (const [frame, what] of cases) {
    let thrown: unknown;
    try {
      encodeFrame(frame);
    } catch (error) {
      thrown = error;
    }
    expect(PerdureError.is(thrown, "bad_input") && thrown.message).toContain(what);
  }
});

const requestIds = ["Y", 'quote" and \\', "line\nbreak", "\ud800", "日本"];
const bodies = [
  "",
  '{"type":"text-delta","id":"t1","delta":"Hi"}',
  '"',
  "\\",
  "\u2028\u0000",
  "\udc00",
  "x".repeat(100_000),
];

test("chunk frames say the same as the slow way", () => {
  for (const id of requestIds) {
    for (const body of bodies) {
      for (const seq of [undefined, 0, 3]) {
        for (const continuation of [true, undefined] as const) {
          for (const replay of [true, undefined] as const) {
            const frame: ChatResponseFrame = {
              type: "cf_agent_use_chat_response",
              ...{ id, body, done: false, seq, continuation, replay },
            };
            const slow: unknown = JSON.parse(encodeFrame(frame));
            expect(JSON.parse(chunkFrameEncoder(id, continuation === true)(body, seq, replay))).toEqual(slow);
          }
        }
      }
    }
  }
});

test("false flags are left out of chunk frames", () => {
  expect(JSON.parse(chunkFrameEncoder("Y", false)("b", undefined, false))).toEqual({
    type: "cf_agent_use_chat_response",
    id: "Y",
    body: "b",
    done: false,
  });
});
