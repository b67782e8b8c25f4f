import { expect, test } from "vitest";
import { MAX_ID_LENGTH } from "../../src/wire/id.ts";
import { type ParsedFrame, parseFrame } from "../../src/wire/parse.ts";
import { MAX_KNOWN } from "../../src/wire/row-frames.ts";
import { seeded } from "../support/seeded.ts";
import { broken } from "./breaking.ts";
import { goodFrame, type Known } from "./frames.ts";

const known: Known = { fresh: () => "f1", messages: ["m1"], calls: ["c1"], sessions: ["s1"], turns: ["t1"] };

/** What holds for a frame of each kind, however it came about. */
function check(frame: ParsedFrame): boolean {
  const id = (value: string) =>
    typeof value === "string" && value !== "" && value.length <= MAX_ID_LENGTH && value.isWellFormed();
  switch (frame.kind) {
    case "state":
      return frame.state !== undefined;
    case "session":
      return id(frame.id);
    case "session-refused":
      return frame.id !== "" && frame.reason !== "";
    case "rows-subscribe":
      return id(frame.id) && frame.since.size <= MAX_KNOWN;
    case "rows-write":
      return id(frame.txid) && frame.write.changes.length > 0;
    case "rows-unsubscribe":
      return frame.collections === undefined || Array.isArray(frame.collections);
    case "rows-refused":
    case "state-refused":
      return frame.reason !== "";
    case "rpc-refused":
      return typeof frame.id === "string" && frame.reason !== "";
    case "chat-long":
      return id(frame.id) && frame.text !== "";
    case "transcript-long":
      return frame.text !== "";
    case "chat-older":
      return Number.isSafeInteger(frame.before);
    case "rpc":
      return frame.id.length <= MAX_ID_LENGTH && frame.method.length <= MAX_ID_LENGTH && Array.isArray(frame.args);
    case "chat-request":
      return (
        id(frame.id) &&
        Array.isArray(frame.messages) &&
        ["submit-message", "regenerate-message"].includes(frame.trigger) &&
        (frame.body === undefined ||
          Object.keys(frame.body).every((key) => !["messages", "trigger", "clientTools"].includes(key)))
      );
    case "chat-refused":
      return frame.id !== "" && frame.reason !== "";
    case "chat-messages":
      return Array.isArray(frame.messages);
    case "chat-clear":
      return true;
    case "chat-cancel":
    case "resume-ack":
      return id(frame.id);
    case "resume-request":
      return frame.probeId === undefined || id(frame.probeId);
    case "tool-result":
      return id(frame.toolCallId) && typeof frame.toolName === "string" && typeof frame.autoContinue === "boolean";
    case "tool-stop":
      return id(frame.toolCallId);
    case "tool-approval":
      return id(frame.toolCallId) && typeof frame.approved === "boolean" && typeof frame.autoContinue === "boolean";
    case "other":
      return frame.reason === undefined || (frame.reason.length < 200 && frame.reason.length > 0);
    case "refused":
      return frame.reason.length > 0 && frame.reason.length < 200;
  }
}

const ROUNDS = 8_000;
const SEED = 20_260_301;

test("no frame, however broken, throws or changes a prototype", () => {
  const random = seeded(SEED);
  const prototypes = [Object.prototype, Array.prototype, Function.prototype, String.prototype];
  const before = prototypes.map((one) => Reflect.ownKeys(one));
  const kinds = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const good = goodFrame(random, known);
    const text = round % 8 === 0 ? JSON.stringify(good) : broken(random, good);
    let frame: ParsedFrame;
    try {
      frame = parseFrame(text);
      // What passed must be storable: this throws on what is too deep or cyclic.
      expect(JSON.stringify(frame)).not.toContain('"__proto__":');
    } catch (error) {
      throw new Error(`round ${round}: ${text.slice(0, 300)}`, { cause: error });
    }
    if (!check(frame))
      throw new Error(`round ${round} gave ${JSON.stringify(frame).slice(0, 300)} for ${text.slice(0, 300)}`);
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
    // The copy that careless app code makes must not get a strange prototype either.
    expect(Object.getPrototypeOf(Object.assign({}, frame))).toBe(Object.prototype);
    kinds.add(frame.kind);
  }
  expect(prototypes.map((one) => Reflect.ownKeys(one))).toEqual(before);
  expect(kinds.size).toBe(25);
});

test("what a generator makes is understood by the parser, each as what it is", () => {
  const random = seeded(SEED);
  const kinds = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const good = goodFrame(random, known);
    const { kind } = parseFrame(JSON.stringify(good));
    if (kind === "other" || kind.includes("refused")) throw new Error(`${kind}: ${JSON.stringify(good)}`);
    kinds.add(kind);
  }
  expect(kinds.size).toBe(16);
});

test("bytes of every kind are for the app", () => {
  const random = seeded(SEED);
  for (let round = 0; round < 200; round++) {
    const bytes = Uint8Array.from({ length: random(100) }, () => random(256));
    expect(parseFrame(bytes)).toEqual({ kind: "other" });
  }
});
