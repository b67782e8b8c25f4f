import { expect, test } from "vitest";
import { Audience } from "../live/audience.ts";
import { HostSocket, newSocketMemory, type RawSocket, type SocketMemory } from "./host-socket.ts";

const raw: RawSocket = { buffered: 0, send() {}, sendAll() {}, close() {}, terminate() {} };
const client = { id: "tab", uri: "http://host.invalid/agents/chat/a" };

test("what a host wrote down of a socket makes the same socket again, with its session and its place in the stream", () => {
  let kept = "";
  const open = (memory: SocketMemory) =>
    new HostSocket(client, raw, 100, { memory, save: () => void (kept = JSON.stringify(memory)) });
  const socket = open(newSocketMemory());
  const audience = new Audience(
    () => [socket],
    () => "main",
  );
  socket.join(["a tag"]);
  socket.connected();
  socket.attachment = { state: 7 };
  audience.attach(socket, "fork");
  audience.change(socket, { withheld: "turn", taken: { turn: "earlier", own: true, at: 5 } });

  const again = open(JSON.parse(kept) as SocketMemory);
  const later = new Audience(
    () => [again],
    () => "main",
  );
  expect(again).toMatchObject({ tags: ["a tag"], joined: true, ready: true, attachment: { state: 7 } });
  expect(later.sessionOf(again)).toBe("fork");
  expect(later.withheldFrom("turn")).toEqual([again]);
  expect(later.of(again)).toEqual({
    ...{ withheld: "turn", taken: { turn: "earlier", own: true, at: 5 }, session: "fork" },
    ...{ parked: false, asked: false, gaveUp: false },
  });
});
