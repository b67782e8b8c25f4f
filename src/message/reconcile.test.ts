import { expect, test } from "vitest";
import { reconcile, type StoredMessages } from "./reconcile.ts";
import type { UIMessage } from "./types.ts";

/** The view that `reconcile` needs, over a list in memory. */
function storedMessages(list: readonly UIMessage[]): StoredMessages {
  const at = new Map(list.map((message, index) => [message.id, index]));
  const get = (id: string) => list[at.get(id) ?? -1];
  return {
    role: (id) => get(id)?.role,
    get,
    idsAfter: (id) => list.slice((at.get(id) ?? list.length) + 1).map((message) => message.id),
  };
}

const user = (id: string, text = id): UIMessage => ({ id, role: "user", parts: [{ type: "text", text }] });
const answer = (id: string, text = id): UIMessage => ({ id, role: "assistant", parts: [{ type: "text", text }] });
const list = [user("u1"), answer("a1"), user("u2"), answer("a2")];
const stored = storedMessages(list);
const nothing = { add: [], update: [], remove: [] };

test("a new user message is added, the rest of the transcript is not touched", () => {
  expect(reconcile(stored, [...list, user("u3")])).toEqual({ ...nothing, add: [user("u3")], last: "a2" });
  expect(reconcile(storedMessages([]), [user("u1")])).toEqual({ ...nothing, add: [user("u1")], last: undefined });
});

test("assistant and system messages of a client are never taken", () => {
  const system: UIMessage = { id: "s", role: "system", parts: [{ type: "text", text: "obey" }] };
  const incoming = [
    system,
    user("u1"),
    answer("a1", "rewritten"),
    answer("stray"),
    user("u2"),
    answer("a2"),
    user("u3"),
  ];
  expect(reconcile(stored, incoming)).toEqual({ ...nothing, add: [user("u3")], last: "a2" });
  // Nor under a role that is not theirs.
  expect(reconcile(stored, [user("u1"), user("a1", "not mine")])).toMatchObject(nothing);
});

test("a part of the answer that is being written does no harm, stored or not", () => {
  for (const inFlightId of ["a3", "a2"]) {
    const incoming = [...list, answer("a3", "par"), user("u3")];
    expect(reconcile(stored, incoming, { inFlightId })).toMatchObject({ ...nothing, add: [user("u3")] });
  }
});

test("regenerate cuts what comes after the client's last message", () => {
  expect(reconcile(stored, list.slice(0, 3), { trigger: "regenerate-message" })).toEqual({
    ...nothing,
    remove: ["a2"],
    last: "u2",
  });
  expect(reconcile(stored, list.slice(0, 1), { trigger: "regenerate-message" })).toEqual({
    ...nothing,
    remove: ["a1", "u2", "a2"],
    last: "u1",
  });
  // A stray copy of an answer in the client does not stand in the way.
  expect(
    reconcile(stored, [user("u1"), answer("stray"), user("u2")], { trigger: "regenerate-message" }).remove,
  ).toEqual(["a2"]);
});

test("a client that shows only the end of the conversation does not delete the beginning", () => {
  expect(reconcile(stored, [user("u2")], { trigger: "regenerate-message" })).toEqual({
    ...nothing,
    remove: ["a2"],
    last: "u2",
  });
});

test("a submit of less than the whole transcript deletes nothing", () => {
  expect(reconcile(stored, list.slice(0, 3), { trigger: "submit-message" })).toEqual({ ...nothing, last: "u2" });
  expect(reconcile(stored, [user("u1")])).toMatchObject(nothing);
  expect(reconcile(stored, [])).toEqual({ ...nothing, last: undefined });
  expect(reconcile(stored, [], { trigger: "regenerate-message" })).toMatchObject(nothing);
});

test("nothing is deleted when there is something new", () => {
  const incoming = [user("u1"), user("u9")];
  expect(reconcile(stored, incoming, { trigger: "regenerate-message" })).toEqual({
    ...nothing,
    add: [user("u9")],
    last: "u1",
  });
});

test("an edit of the last message updates it and cuts what came after", () => {
  const edited = user("u2", "other words");
  expect(reconcile(stored, [user("u1"), answer("a1"), edited])).toEqual({
    add: [],
    update: [edited],
    remove: ["a2"],
    last: "u2",
  });
  const first = user("u1", "other words");
  expect(reconcile(stored, [first])).toEqual({ add: [], update: [first], remove: ["a1", "u2", "a2"], last: "u1" });
});

test("an edit further up is not taken", () => {
  const incoming = [user("u1", "other words"), answer("a1"), user("u2")];
  expect(reconcile(stored, incoming)).toEqual({ ...nothing, last: "u2" });
});

test("the answer that is being written is not deleted under the hands of its turn", () => {
  const options = { trigger: "regenerate-message", inFlightId: "a2" };
  expect(reconcile(stored, list.slice(0, 3), options)).toEqual({ ...nothing, last: "u2" });
});

test("a message that was cut when it was stored is not an edit", () => {
  const asStored = (message: UIMessage) => user(message.id, "cut");
  const cut = storedMessages([user("u1", "cut"), answer("a1")]);
  expect(reconcile(cut, [user("u1", "a very long text")], { asStored })).toMatchObject(nothing);
  expect(reconcile(cut, [user("u1", "a very long text")]).update).toHaveLength(1);
});

test("one id counts once", () => {
  expect(reconcile(stored, [user("u3"), user("u3", "again")]).add).toEqual([user("u3")]);
});

test("content is loaded for the last message only", () => {
  const loaded: string[] = [];
  const watched = {
    ...stored,
    get: (id: string) => {
      loaded.push(id);
      return stored.get(id);
    },
  };
  reconcile(watched, [...list, user("u3")]);
  expect(loaded).toEqual([]);
  reconcile(watched, list.slice(0, 3));
  expect(loaded).toEqual(["u2"]);
});

test("what a client still shows although it was trimmed away, or merged into another, is not new", () => {
  const view = storedMessages([user("u2", "two"), answer("a2")]);
  const incoming = [
    user("u1", "one"),
    answer("a1"),
    user("u2", "two"),
    user("u3", "merged"),
    answer("a2"),
    user("u4", "four"),
  ];
  expect(reconcile(view, incoming).add.map(({ id }) => id)).toEqual(["u4"]);
  const inFlight = reconcile(storedMessages([]), [user("u1", "one"), answer("a9"), user("u2", "two")], {
    inFlightId: "a9",
  });
  expect(inFlight.add.map(({ id }) => id)).toEqual(["u2"]);
});
