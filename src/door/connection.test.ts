import { expect, test } from "vitest";
import type { Socket } from "../port.ts";
import { Connection, Connections } from "./connection.ts";

function fakeSocket(): Socket & { readonly sent: unknown[] } {
  const sent: unknown[] = [];
  return {
    id: "me",
    uri: "http://host/agents/a/b?x=1",
    tags: ["red"],
    attachment: undefined,
    memo: undefined,
    open: true,
    dismissed: false,
    sent,
    join: () => undefined,
    send: (data) => void sent.push(data),
    sendAll: (frames) => void sent.push(...frames),
    close: (code, reason) => void sent.push({ code, reason }),
  };
}

test("what is kept with it is a copy, and lives with the socket, not with the object", () => {
  const socket = fakeSocket();
  const first = new Connection<{ list: number[] }>(socket);
  expect(first.state).toBeNull();
  const mine = { list: [1] };
  expect(first.setState(mine)).toEqual({ list: [1] });
  mine.list.push(2);
  const second = new Connection<{ list: number[] }>(socket);
  expect(second.state).toEqual({ list: [1] });
  second.setState((previous) => ({ list: [...(previous?.list ?? []), 3] }));
  expect(first.state).toEqual({ list: [1, 3] });
  first.setState(null);
  expect(second.state).toBeNull();
});

test("the app's value and the framework's flags do not touch each other", () => {
  const connection = new Connection(fakeSocket());
  connection.setState({ isReadonly: false });
  connection.isReadonly = true;
  connection.isQuiet = true;
  connection.setState({ other: 1 });
  expect([connection.isReadonly, connection.isQuiet, connection.state]).toEqual([true, true, { other: 1 }]);
});

test("a value that JSON cannot hold is refused, and the old one stays", () => {
  const connection = new Connection<unknown>(fakeSocket());
  connection.setState({ kept: true });
  const ring: { self?: unknown } = {};
  ring.self = ring;
  expect(() => connection.setState(ring)).toThrow(/The connection's state/);
  expect(connection.state).toEqual({ kept: true });
});

test.each([0, 999, 1002 - 3, 1004, 1005, 1006, 1015, 2999, 5000, 1.5, Number.NaN])(
  "%d is no code to close with",
  (code) => {
    const socket = fakeSocket();
    expect(() => new Connection(socket).close(code)).toThrow(/is not a close code/);
    expect(socket.sent).toEqual([]);
  },
);

test.each([1000, 1001, 1008, 1011, 1013, 3000, 4999])("%d is one", (code) => {
  const socket = fakeSocket();
  new Connection(socket).close(code, "why");
  expect(socket.sent).toEqual([{ code, reason: "why" }]);
});

test("the same socket has the same connection", () => {
  const connections = new Connections();
  const socket = fakeSocket();
  expect(connections.of(socket)).toBe(connections.of(socket));
  expect(connections.of(fakeSocket())).not.toBe(connections.of(socket));
});
