import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { PerdureError } from "../../base/error.ts";
import { pause } from "../../base/time.ts";
import type {
  Channel,
  Content,
  Cursor,
  FileRef,
  MessengerEvent,
  Place,
  Press,
  Self,
  Sent,
  SentFile,
} from "../../messenger/channel.ts";
import { ChannelError } from "../../messenger/channel.ts";

/** A message as people at the network see it, with all that it ever showed. */
export interface MemoryMessage {
  readonly id: string;
  readonly thread: string;
  readonly from: "agent" | "person";
  text: string;
  readonly versions: string[];
  buttons: { readonly label: string; readonly data: string }[];
  readonly key?: string;
  /** What it is a message of, if it is one. The bytes are Base64. */
  readonly file?: { readonly name: string; readonly mediaType: string; readonly base64: string };
  deleted: boolean;
}

/** What goes wrong with a call, on purpose. */
export type MemoryFault =
  /** It is not done. */
  | { readonly kind: "unsent" | "refused" | "auth" | "format" | "gone" }
  | { readonly kind: "rate"; readonly retryAfterMs: number }
  /** It is done, and nobody hears of it. */
  | { readonly kind: "lost-answer" }
  /** It is done when the promise resolves. */
  | { readonly kind: "held"; readonly until: Promise<unknown> };

/** Who says something. */
export interface MemoryPerson {
  readonly id: string;
  readonly name: string;
  readonly isBot?: boolean;
}

/** How the network is. */
export interface MemoryNetworkOptions {
  /** A file that outlives the process: for tests that kill it. */
  readonly file?: string;
  /** Whether it can be asked for a message by its key. Default false. */
  readonly finds?: boolean;
  /** Default 4,096. */
  readonly textLimit?: number;
  readonly editable?: boolean;
  readonly buttonData?: number;
  /** Between two calls at one place. Default 0. */
  readonly paceMs?: number;
  readonly perSecond?: number;
  /** The largest file that it takes, in bytes; 0: it takes and gives none. Default: any. */
  readonly fileBytes?: number;
}

interface Stored {
  next: number;
  updates: { readonly at: number; readonly event: MessengerEvent }[];
  messages: MemoryMessage[];
  told: { readonly press: string; readonly text: string }[];
  calls: { readonly op: string; readonly thread: string; readonly at: number }[];
  /** What people sent, as Base64. */
  files: Record<string, string>;
}

/** Files come in pieces of this. */
const PIECE = 16_384;
const AGAIN_MS = 50;
const SELF: Self = { id: "bot", userName: "memory_bot" };

/**
 * A whole messenger in memory: people say things and press buttons, the agent reads and answers through
 * {@link MemoryNetwork.channel}, and {@link MemoryNetwork.seen} is what stands there. For tests of agents that talk at a
 * messenger, without one.
 */
export class MemoryNetwork {
  readonly #options: MemoryNetworkOptions;
  readonly #faults: { op: string; fault: MemoryFault; skip: number }[] = [];
  #state: Stored = { next: 1, updates: [], messages: [], told: [], calls: [], files: {} };
  #woken = Promise.withResolvers<void>();

  constructor(options: MemoryNetworkOptions = {}) {
    this.#options = options;
    const { file } = options;
    if (file !== undefined && existsSync(file)) this.#state = JSON.parse(readFileSync(file, "utf8")) as Stored;
  }

  /** What stands in a thread now, oldest first. */
  seen(thread: string, from?: MemoryMessage["from"]): MemoryMessage[] {
    return this.#state.messages.filter(
      (one) => one.thread === thread && !one.deleted && (from === undefined || one.from === from),
    );
  }

  /** The calls that the agent made, in order. `at` is the time of the machine. */
  get calls(): readonly Stored["calls"][number][] {
    return this.#state.calls;
  }

  /** What people were told who pressed a button. */
  get told(): readonly Stored["told"][number][] {
    return this.#state.told;
  }

  /** What goes wrong with the next call of this kind, after `skip` others. `file`: one is sent, `fetch`: one is read. */
  plan(op: "create" | "edit" | "find" | "acknowledge" | "file" | "fetch", fault: MemoryFault, skip = 0): void {
    this.#faults.push({ op, fault, skip });
  }

  // What people do

  says(thread: string, author: MemoryPerson, text: string, more: Partial<MessengerEvent> = {}): MessengerEvent {
    const id = this.#id("m");
    this.#state.messages.push({
      ...{ id, thread, from: "person", text, versions: [text], buttons: [] },
      deleted: false,
    });
    return this.#offer({
      ...{ kind: "message", keys: [`update:${id}`], thread, dm: true, messageId: id, text },
      ...{ author: { isBot: false, ...author }, mentioned: text.includes(`@${SELF.userName}`), files: [], ...more },
    });
  }

  /** Somebody sends files, with words or without. */
  sends(
    thread: string,
    author: MemoryPerson,
    files: readonly SentFile[],
    text = "",
    more: Partial<MessengerEvent> = {},
  ): MessengerEvent {
    const refs = files.map(({ name, mediaType, bytes }): FileRef => {
      const id = this.#id("f");
      this.#state.files[id] = Buffer.from(bytes).toString("base64");
      return { name, mediaType, id, size: bytes.length };
    });
    return this.says(thread, author, text, { files: refs, ...more });
  }

  /** Presses the button that says `label` under a message of the agent. @throws when there is none */
  presses(
    thread: string,
    author: MemoryPerson,
    messageId: string,
    label: string,
    more: Partial<MessengerEvent> = {},
  ): MessengerEvent {
    const button = this.#find(messageId)?.buttons.find((one) => one.label === label);
    if (button === undefined) throw new PerdureError("not_found", `There is no button "${label}" under ${messageId}.`);
    const id = this.#id("press");
    return this.#offer({
      ...{ kind: "press", keys: [`update:${id}`], thread, dm: true, messageId, text: "", mentioned: false, files: [] },
      ...{ author: { isBot: false, ...author }, press: { id, data: button.data, messageId }, ...more },
    });
  }

  /** Tells of something once more, as networks do when they are not sure. */
  repeats(event: MessengerEvent): void {
    this.#offer(event);
  }

  /** Somebody deletes a message of the agent. */
  deletes(messageId: string): void {
    const message = this.#find(messageId);
    if (message !== undefined) message.deleted = true;
    this.#save();
  }

  // The agent's side

  /** A way to the network for an agent. */
  channel(): Channel {
    const { textLimit = 4096, editable = true, buttonData = 64, paceMs = 0, perSecond = 1000, finds } = this.#options;
    const { fileBytes = Number.POSITIVE_INFINITY } = this.#options;
    return {
      provider: "memory",
      limits: { text: textLimit, buttonData, editable, ...(Number.isFinite(fileBytes) && { file: fileBytes }) },
      pace: { perPlaceMs: () => paceMs, perSecond },
      self: () => Promise.resolve(SELF),
      parse: (input) => [input as MessengerEvent],
      listen: (accept, cursor, signal) => this.#listen(accept, cursor, signal),
      create: (place, content, key, signal) => this.#create(place, content, key, signal),
      edit: (place, id, content, signal) => this.#edit(place, id, content, signal),
      ...(fileBytes > 0 && {
        sendFile: (place: Place, file: SentFile, key: string, signal: AbortSignal) =>
          this.#sendFile(place, file, key, signal),
        fetchFile: (file: FileRef, signal: AbortSignal) => this.#fetchFile(file, signal),
      }),
      ...(finds === true && {
        find: (place: Place, key: string, _since: number, signal: AbortSignal) =>
          this.#call<Sent | "none">("find", place, signal, () => {
            const found = this.#state.messages.find((one) => one.key === key);
            return found === undefined ? "none" : { id: found.id };
          }),
      }),
      acknowledge: (press: Press, text: string, signal: AbortSignal) =>
        this.#call("acknowledge", { thread: "", dm: true }, signal, () => {
          this.#state.told.push({ press: press.id, text });
        }),
    };
  }

  async #listen(accept: (input: unknown) => Promise<void>, cursor: Cursor, signal: AbortSignal): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    /** What is given to the agent and not stored, and what is stored behind such: the cursor waits for it. */
    const taken = new Map<number, "under way" | "stored" | "failed">();
    let from = Number(cursor.read() ?? 0);
    while (!signal.aborted) {
      const woken = this.#woken.promise;
      const ends = this.#state.updates
        .filter(({ at }) => at > from && (taken.get(at) ?? "failed") === "failed")
        .map(async ({ at, event }) => {
          taken.set(at, "under way");
          const end = await accept(event).then(
            () => "stored" as const,
            () => "failed" as const,
          );
          taken.set(at, end);
          // Whoever is slow to be stored holds up nobody else.
          this.#wake();
        });
      if (ends.length > 0) await Promise.race([Promise.all(ends), pause(AGAIN_MS, signal)]);
      const stored = from;
      while (taken.get(from + 1) === "stored") taken.delete(++from);
      if (from > stored && !signal.aborted) cursor.write(String(from));
      if ([...taken.values()].includes("failed")) await pause(AGAIN_MS, signal);
      else if (from === stored || taken.size > 0) await Promise.race([woken, gone]);
    }
  }

  #create(place: Place, content: Content, key: string, signal: AbortSignal): Promise<Sent> {
    return this.#call("create", place, signal, () => {
      this.#check(content);
      const id = this.#id("a");
      const { text, buttons = [] } = content;
      const { thread } = place;
      this.#state.messages.push({
        ...{ id, thread, from: "agent", text, versions: [text], buttons: [...buttons], key, deleted: false },
      });
      return { id };
    });
  }

  #sendFile(place: Place, { name, mediaType, bytes }: SentFile, key: string, signal: AbortSignal): Promise<Sent> {
    return this.#call("file", place, signal, () => {
      if (bytes.length > (this.#options.fileBytes ?? Number.POSITIVE_INFINITY))
        throw new ChannelError("refused", "The file is too large.");
      const id = this.#id("a");
      const file = { name, mediaType, base64: Buffer.from(bytes).toString("base64") };
      this.#state.messages.push({
        ...{ id, thread: place.thread, from: "agent", text: "", versions: [], buttons: [], key, file, deleted: false },
      });
      return { id };
    });
  }

  #fetchFile({ id = "" }: FileRef, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#call("fetch", { thread: "", dm: true }, signal, () => {
      const base64 = this.#state.files[id];
      if (base64 === undefined) throw new ChannelError("gone", "There is no such file.");
      const bytes = new Uint8Array(Buffer.from(base64, "base64"));
      return new ReadableStream<Uint8Array>({
        start(stream) {
          for (let at = 0; at < bytes.length; at += PIECE) stream.enqueue(bytes.subarray(at, at + PIECE));
          stream.close();
        },
      });
    });
  }

  #edit(place: Place, id: string, content: Content, signal: AbortSignal): Promise<void> {
    return this.#call("edit", place, signal, () => {
      this.#check(content);
      const message = this.#find(id);
      if (message === undefined || message.deleted) throw new ChannelError("gone", "There is no such message.");
      const { text, buttons = [] } = content;
      if (message.text === text && JSON.stringify(message.buttons) === JSON.stringify(buttons))
        throw new ChannelError("same", "The message shows this already.");
      message.text = text;
      message.versions.push(text);
      message.buttons = [...buttons];
    });
  }

  async #call<T>(op: string, { thread }: Place, signal: AbortSignal, work: () => T): Promise<T> {
    await Promise.resolve();
    signal.throwIfAborted();
    this.#state.calls.push({ op, thread, at: Date.now() });
    const fault = this.#takeFault(op);
    if (fault?.kind === "held") await fault.until;
    if (fault !== undefined && fault.kind !== "held" && fault.kind !== "lost-answer") {
      this.#save();
      const retryAfterMs = fault.kind === "rate" ? { retryAfterMs: fault.retryAfterMs } : {};
      throw new ChannelError(fault.kind, `The network says: ${fault.kind}.`, retryAfterMs);
    }
    const result = work();
    this.#save();
    if (fault?.kind === "lost-answer") throw new ChannelError("unknown", "No answer came.");
    return result;
  }

  #takeFault(op: string): MemoryFault | undefined {
    const at = this.#faults.findIndex((one) => one.op === op);
    const planned = this.#faults[at];
    if (planned === undefined) return undefined;
    if (planned.skip-- > 0) return undefined;
    this.#faults.splice(at, 1);
    return planned.fault;
  }

  #check({ text, buttons = [] }: Content): void {
    const { textLimit = 4096, buttonData = 64 } = this.#options;
    if (text === "" || text.length > textLimit) throw new ChannelError("refused", "The text is empty or too long.");
    if (buttons.some(({ data }) => data.length > buttonData))
      throw new ChannelError("refused", "A button holds too much.");
  }

  #find(id: string): MemoryMessage | undefined {
    return this.#state.messages.find((one) => one.id === id);
  }

  #id(prefix: string): string {
    return `${prefix}${this.#state.next++}`;
  }

  #offer(event: MessengerEvent): MessengerEvent {
    this.#state.updates.push({ at: this.#state.updates.length + 1, event });
    this.#save();
    this.#wake();
    return event;
  }

  #wake(): void {
    const { resolve } = this.#woken;
    this.#woken = Promise.withResolvers<void>();
    resolve();
  }

  #save(): void {
    const { file } = this.#options;
    if (file === undefined) return;
    writeFileSync(`${file}.new`, JSON.stringify(this.#state));
    renameSync(`${file}.new`, file);
  }
}

/** A messenger in memory: see {@link MemoryNetwork}. */
export function memoryChannel(options: MemoryNetworkOptions = {}): MemoryNetwork {
  return new MemoryNetwork(options);
}
