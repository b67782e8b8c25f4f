import { isTerminalCloseEvent } from "agents/client";
import { expect, test } from "vitest";
import { closeCode, isTerminalCloseCode, isUnknownSession, refusalCode, UNKNOWN_SESSION } from "./close-code.ts";

test("terminal codes are those that the public client gives up on", () => {
  const codes = [...Object.values(closeCode), 1002, 1003, 3000, 3999, 4000, 4401, 4999, 5000];
  for (const code of codes) {
    const event = Object.assign(new Event("close"), { code, reason: "", wasClean: true });
    expect([code, isTerminalCloseCode(code)]).toEqual([code, isTerminalCloseEvent(event)]);
  }
  expect(codes.filter(isTerminalCloseCode)).toEqual([1008, 4400, 4404, 4000, 4401, 4999]);
});

test.each([
  [400, 4400],
  [401, 4401],
  [403, 4403],
  [404, 4404],
  [499, 4499],
  [200, 1011],
  [302, 1011],
  [500, 1011],
  [503, 1011],
  [399, 1011],
  [404.5, 1011],
  [Number.NaN, 1011],
])("status %d closes with %d", (status, code) => {
  expect(refusalCode(status)).toBe(code);
});

test("a session that is not there is told from other things that are not", () => {
  expect(isUnknownSession({ code: closeCode.unknownSession, reason: UNKNOWN_SESSION })).toBe(true);
  expect(isUnknownSession({ code: closeCode.unknownSession, reason: "no such agent" })).toBe(false);
  expect(isUnknownSession({ code: 1000, reason: UNKNOWN_SESSION })).toBe(false);
  expect(isUnknownSession(new Event("close"))).toBe(false);
});
