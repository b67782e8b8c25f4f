import {
  type Channel,
  ChannelError,
  type ChannelErrorKind,
  type MessengerEvent,
  type Place,
  type SentFile,
} from "../../messenger/channel.ts";
import { ensure, eventually, same } from "../conformance/ensure.ts";
import type { ConformanceCase } from "../host-conformance.ts";

/** What is sent and fetched: more than a piece of it, and no text. */
const FILE: SentFile = {
  ...{ name: "a b.bin", mediaType: "application/octet-stream" },
  bytes: Uint8Array.from({ length: 100_000 }, (_, i) => (i * 31 + (i >> 8)) % 256),
};

/** A network and a way to it, with one person who talks with the agent alone. */
export interface ConformanceNetwork {
  readonly channel: Channel;
  /** Where the person is. */
  readonly place: Place;
  says(text: string): void;
  /** Presses the button that says `label`. */
  presses(messageId: string, label: string): void;
  deletes(messageId: string): void;
  /** The person sends a file, with these words. Absent: the network has no files. */
  sendsFile?(file: SentFile, text: string): void;
  /** What the person sees of the agent's messages, without its form; the bytes of those that are a file. */
  seen(): readonly { readonly id: string; readonly text: string; readonly file?: SentFile }[];
  /** What the person was told after pressing. */
  told(): readonly string[];
  /** How many messages the network was asked to make. */
  creates(): number;
  /** What happens to the next message that is to be made. `lost-answer`: it is made, and nobody hears of it. */
  breaks(how: "rate" | "refused" | "lost-answer" | "unsent"): void | Promise<void>;
  close(): void | Promise<void>;
}

type Run = (network: ConformanceNetwork) => Promise<void>;

/**
 * What every {@link Channel} must do, as cases for any test runner. `open` is called once per case.
 *
 *     test.for(channelConformance(open))("$name", ({ run }) => run());
 */
export function channelConformance(
  open: () => ConformanceNetwork | Promise<ConformanceNetwork>,
): readonly ConformanceCase[] {
  return Object.entries(CASES).map(([name, run]) => ({
    name,
    async run() {
      const network = await open();
      try {
        await run(network);
      } finally {
        await network.close();
      }
    },
  }));
}

const CASES: Readonly<Record<string, Run>> = {
  async "what a person says is read, by a name that stays the same"(network) {
    const events = listenTo(network);
    network.says("hello");
    await eventually(() => events.got.length > 0, "what was said comes");
    const [event] = events.got;
    ensure(event?.kind === "message" && event.text === "hello", "it is a message with the words");
    same([event.thread, event.dm], [network.place.thread, true], "where it was said");
    ensure(event.keys.length > 0 && event.messageId !== "", "it has names");
    await events.stop();
  },

  async "what was not stored comes again, what was stored does not"(network) {
    const refusing = listenTo(network, { refuses: true });
    network.says("one");
    await eventually(() => refusing.got.length > 0, "what was said comes");
    await refusing.stop();
    const events = listenTo(network, { cursor: refusing.cursor });
    await eventually(() => events.got.length === 1, "it comes again");
    same(events.got[0]?.keys, refusing.got[0]?.keys, "its names");
    network.says("two");
    await eventually(() => events.got.length === 2, "what is said next comes");
    same(
      events.got.map(({ text }) => text),
      ["one", "two"],
      "each once",
    );
    await events.stop();
  },

  async "a message is made, and changed by its id"({ channel, place, ...network }) {
    const { id } = await channel.create(place, { text: "Hello **you**" }, "key-1", signal());
    same(
      network.seen().map((one) => one.id),
      [id],
      "what is there",
    );
    ensure(network.seen()[0]?.text.includes("you") === true, "it shows the words");
    await channel.edit(place, id, { text: "Goodbye" }, signal());
    same(network.seen(), [{ id, text: "Goodbye" }], "what is there then");
  },

  async "a change to what it shows already is none"({ channel, place, ...network }) {
    const { id } = await channel.create(place, { text: "Hello" }, "key-1", signal());
    const kind = await kindOf(channel.edit(place, id, { text: "Hello" }, signal()));
    ensure(kind === undefined || kind === "same", `it is done, or fails as "same", not as "${kind}"`);
    same(network.seen().length, 1, "messages");
  },

  async "a change to what somebody deleted fails as gone"({ channel, place, ...network }) {
    const { id } = await channel.create(place, { text: "Hello" }, "key-1", signal());
    network.deletes(id);
    same(await kindOf(channel.edit(place, id, { text: "Goodbye" }, signal())), "gone", "how it fails");
  },

  async "a text of the longest length is there whole; a longer one is refused, not cut"({
    channel,
    place,
    ...network
  }) {
    const { text: limit } = channel.limits;
    await channel.create(place, { text: "x".repeat(limit) }, "key-1", signal());
    same(
      network.seen().map(({ text }) => text.length),
      [limit],
      "its length",
    );
    same(
      await kindOf(channel.create(place, { text: "x".repeat(limit + 1) }, "key-2", signal())),
      "refused",
      "a longer",
    );
    same(network.seen().length, 1, "messages");
  },

  async "marks of Markdown are not shown where the network has form, and all are where it is sent plain"(network) {
    const { channel, place } = network;
    const text = "a **b** `c` [d](https://e.example) 😀 _f_\n\n```js\n1 * 2\n```\n- g";
    await channel.create(place, { text }, "key-1", signal());
    for (const word of ["a", "b", "c", "d", "😀", "f", "1 * 2", "g"])
      ensure(network.seen()[0]?.text.includes(word) === true, `it shows ${word}`);
    await channel.create(place, { text, plain: true }, "key-2", signal());
    same(network.seen()[1]?.text, text, "what is sent plain");
  },

  async "a button brings back what it holds, and who pressed is told"(network) {
    const { channel, place } = network;
    if (channel.limits.buttonData === 0) return;
    const data = "d".repeat(Math.min(40, channel.limits.buttonData));
    const { id } = await channel.create(place, { text: "Well?", buttons: [{ label: "Yes", data }] }, "key-1", signal());
    const events = listenTo(network);
    network.presses(id, "Yes");
    await eventually(() => events.got.some(({ kind }) => kind === "press"), "the press comes");
    const { press } = events.got.find(({ kind }) => kind === "press") ?? {};
    ensure(press?.data === data, "it has the data");
    await channel.acknowledge?.(press, "Thank you", signal());
    if (channel.acknowledge !== undefined) same(network.told(), ["Thank you"], "what the person was told");
    await channel.edit(place, id, { text: "Well.", buttons: [] }, signal());
    let isThere = true;
    try {
      network.presses(id, "Yes");
    } catch {
      isThere = false;
    }
    ensure(!isThere, "a change without buttons takes them away");
    await events.stop();
  },

  async "a network that says when to come again is heard, and called once"({ channel, place, ...network }) {
    await network.breaks("rate");
    const error = await errorOf(channel.create(place, { text: "Hello" }, "key-1", signal()));
    same(error?.kind, "rate", "how it fails");
    ensure((error?.retryAfterMs ?? 0) > 0, "it says when");
    same([network.creates(), network.seen().length], [1, 0], "calls and messages");
  },

  async "a lost answer is unknown, and is not asked for again"({ channel, place, ...network }) {
    await network.breaks("lost-answer");
    same(await kindOf(channel.create(place, { text: "Hello" }, "key-1", signal())), "unknown", "how it fails");
    same([network.creates(), network.seen().length], [1, 1], "calls and messages");
    const found = await channel.find?.(place, "key-1", 0, signal());
    if (found === undefined || found === "unknown") return;
    ensure(typeof found === "object" && found.id === network.seen()[0]?.id, "it is found by its key");
    same(await channel.find?.(place, "key-2", 0, signal()), "none", "what was never made");
  },

  async "what never left is unsent"({ channel, place, ...network }) {
    await network.breaks("unsent");
    same(await kindOf(channel.create(place, { text: "Hello" }, "key-1", signal())), "unsent", "how it fails");
  },

  async "what the network will not do is refused"({ channel, place, ...network }) {
    await network.breaks("refused");
    same(await kindOf(channel.create(place, { text: "Hello" }, "key-1", signal())), "refused", "how it fails");
    same(network.seen().length, 0, "messages");
  },

  async "a file that a person sends is told with the words, and its bytes are read by what it is told as"(network) {
    const { channel } = network;
    if (channel.fetchFile === undefined || network.sendsFile === undefined) return;
    const events = listenTo(network);
    network.sendsFile(FILE, "look");
    await eventually(() => events.got.length > 0, "what was sent comes");
    const [event] = events.got;
    same([event?.kind, event?.text], ["message", "look"], "it is a message with the words");
    const [told, ...more] = event?.files ?? [];
    same([told?.name, told?.mediaType, told?.size, more.length], [FILE.name, FILE.mediaType, 100_000, 0], "the file");
    ensure(told?.id !== undefined, "it has a name to fetch it by");
    // It is stored, and may be asked for in another life.
    const stored = JSON.parse(JSON.stringify(told)) as typeof told;
    same([...(await readAll(await channel.fetchFile(stored, signal())))], [...FILE.bytes], "its bytes");
    await events.stop();
  },

  async "a file that is not there any more fails, and no words of it hold an address"({ channel }) {
    if (channel.fetchFile === undefined) return;
    const file = { name: "gone", mediaType: "text/plain", id: "none-of-this-name" };
    const failed = await errorOf(channel.fetchFile(file, signal()).then(readAll));
    ensure(
      failed?.kind === "gone" || failed?.kind === "refused",
      `it fails as gone or refused, not as ${failed?.kind}`,
    );
    ensure(!/https?:/.test(failed?.message ?? ""), "its words hold no address");
  },

  async "a file is sent whole, by its name, and found by its key where the network can be asked"(network) {
    const { channel, place } = network;
    if (channel.sendFile === undefined) return;
    const { id } = await channel.sendFile(place, FILE, "key-1", signal());
    const [seen, ...more] = network.seen();
    same([seen?.id, seen?.file?.name, more.length], [id, FILE.name, 0], "what is there");
    same([...(seen?.file?.bytes ?? [])], [...FILE.bytes], "its bytes");
    const found = await channel.find?.(place, "key-1", 0, signal());
    if (typeof found === "object") same(found.id, id, "what is found");
  },

  async "a file whose sending was given up is not there"({ channel, place, ...network }) {
    const over = AbortSignal.abort(new Error("given up"));
    let failed = false;
    await channel.sendFile?.(place, FILE, "key-1", over).catch(() => (failed = true));
    same([failed, network.seen().length], [channel.sendFile !== undefined, 0], "whether it fails, and messages");
  },

  async "a call that was given up does nothing"({ channel, place, ...network }) {
    const over = AbortSignal.abort(new Error("given up"));
    let failed = false;
    await channel.create(place, { text: "Hello" }, "key-1", over).catch(() => (failed = true));
    same([failed, network.seen().length], [true, 0], "whether it fails, and messages");
  },
};

function signal(): AbortSignal {
  return new AbortController().signal;
}

async function readAll(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  return new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).bytes();
}

async function errorOf(work: Promise<unknown>): Promise<ChannelError | undefined> {
  try {
    await work;
  } catch (thrown) {
    ensure(thrown instanceof ChannelError, `failures are ChannelErrors, not ${String(thrown)}`);
    return thrown;
  }
  return undefined;
}

async function kindOf(work: Promise<unknown>): Promise<ChannelErrorKind | undefined> {
  return (await errorOf(work))?.kind;
}

function listenTo({ channel }: ConformanceNetwork, more: { refuses?: boolean; cursor?: Map<string, string> } = {}) {
  const { refuses = false, cursor = new Map<string, string>() } = more;
  const got: MessengerEvent[] = [];
  const over = new AbortController();
  const accept = async (input: unknown) => {
    got.push(...channel.parse(input, await channel.self(over.signal)));
    if (refuses) throw new Error("not stored");
  };
  const stored = {
    read: () => cursor.get("at"),
    write: (value: string) => void cursor.set("at", value),
  };
  const listening = Promise.resolve(channel.listen?.(accept, stored, over.signal)).catch((thrown: unknown) => {
    if (!over.signal.aborted && !refuses) throw thrown;
  });
  return {
    got,
    cursor,
    async stop() {
      over.abort(new Error("The case is over."));
      await listening;
    },
  };
}
