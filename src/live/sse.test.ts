import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { appendChunks } from "../store/stream.ts";
import { insertTurn } from "../store/turn.ts";
import { Audience } from "./audience.ts";
import { Broadcast } from "./broadcast.ts";
import { streamTurn } from "./sse.ts";

const never = () => {
  throw new Error("Nothing asks for this.");
};

/** A turn with a log of 12 MB, and somebody who follows it and does not read yet. */
async function follow() {
  const { host } = await probeHost();
  const live = new Broadcast(
    new Audience(
      () => [],
      () => "main",
    ),
    never,
    never,
  );
  const turn = insertTurn(host, {
    id: "r1",
    status: "accepted",
    trigger: "submit",
    continuation: 0,
    messageIds: "[]",
    body: null,
    clientTools: null,
    notBefore: 0,
    session: "main",
    createdAt: 0,
  });
  const body = JSON.stringify({ type: "data-x", data: "x".repeat(100_000) });
  for (let i = 0; i < 120; i++) appendChunks(host, turn.seq, i, [body]);
  await host.durable();
  const response = streamTurn(host, live, turn, 0);
  return { live, turn, body, response };
}

test("a log that is longer than what may wait is given to a reader that has not begun yet", async () => {
  const { live, turn, response } = await follow();
  live.followers.forEach((follower) => follower.ended(turn, { status: "completed" }));
  const text = await response.text();
  expect(text.match(/^id: /gm)).toHaveLength(120);
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  expect(live.followers.size).toBe(0);
});

test("a reader that does not read is let go, and nothing more is kept for it", async () => {
  const { live, turn, body, response } = await follow();
  for (let seq = 120; live.followers.size > 0 && seq < 1000; seq++) {
    live.followers.forEach((follower) => follower.chunks(turn, [{ body, seq }]));
  }
  expect(live.followers.size).toBe(0);
  await expect(response.text()).rejects.toThrow("too slow");
});
