import { PerdureError } from "../../base/error.ts";
import { ChannelError, type MessengerEvent } from "../channel.ts";
import type { SdkAction, SdkCommand, SdkMessage } from "./adapter.ts";
import { bodyFor, commandEvent, messageEvent, pressEvent, type Reader } from "./events.ts";
import type { chatSdkState } from "./state.ts";

type Accept = (input: unknown) => Promise<void>;
type Lazy<T> = T | (() => Promise<T>);

/** A webhook that is being read. */
interface Taking {
  /** What came out of it. */
  readonly ours: Promise<void>[];
  /** What the adapter still does, out of which more may come. */
  readonly theirs: Promise<unknown>[];
  /** Rejects when something could not be stored. */
  readonly failed: PromiseWithResolvers<never>;
}

const nothing = () => Promise.resolve();
const quiet = () => undefined;

/**
 * What an adapter takes for the SDK's `Chat`. `accept` stores what it reads out of a webhook; only then do the calls that
 * reported it resolve, and only after all of them is the webhook answered. A call whose event could not be stored never resolves:
 * the adapter must neither note it as told nor fail unhandled; the webhook fails instead, and comes again.
 */
export class Bridge {
  readonly #reader: Reader;
  readonly #state: ReturnType<typeof chatSdkState>;
  readonly #takings = new Map<object, Taking>();
  readonly #outside = new Outside();
  #accept: Accept = () => Promise.reject(new PerdureError("bad_state", "Nothing was delivered yet."));
  #ready: Promise<void> | undefined;

  constructor(reader: Reader, state: ReturnType<typeof chatSdkState>) {
    this.#reader = reader;
    this.#state = state;
  }

  /** Makes the adapter ready, once per life; one that fails is tried again with the next call. */
  ready(): Promise<void> {
    this.#ready ??= this.#initialize().catch((thrown: unknown) => {
      this.#ready = undefined;
      throw thrown;
    });
    return this.#ready;
  }

  async #initialize(): Promise<void> {
    const { adapter, network } = this.#reader;
    await adapter.initialize(this.instance());
    if (network.needsSelf === true && adapter.botUserId === undefined)
      throw new ChannelError("unsent", `${adapter.name} did not say who we are.`);
  }

  /** Has a webhook read, and what it tells stored. @returns what the network is answered @throws what could not be stored */
  async receive(request: Request, body: Uint8Array, accept: Accept): Promise<Response> {
    this.#accept = accept;
    await this.ready();
    const { adapter } = this.#reader;
    const taking: Taking = { ours: [], theirs: [], failed: Promise.withResolvers<never>() };
    const { promise: failed } = taking.failed;
    failed.catch(quiet);
    const options = { waitUntil: (work: Promise<unknown>) => void taking.theirs.push(work.catch(quiet)) };
    this.#takings.set(options, taking);
    try {
      const { url, method, headers } = request;
      const copy = new Request(url, { method, headers, body: Uint8Array.from(bodyFor(adapter, body)) });
      const answer = await Promise.race([adapter.handleWebhook(copy, options), failed]);
      // What came out of it is all there is to wait for; where nothing has yet, it may still.
      for (let at = 0; taking.ours.length === 0 && at < taking.theirs.length; at++)
        await Promise.race([taking.theirs[at], failed]);
      await Promise.race([Promise.all(taking.ours), failed]);
      return answer;
    } finally {
      this.#takings.delete(options);
    }
  }

  #take(options: object | undefined, read: () => MessengerEvent | undefined | Promise<MessengerEvent | undefined>) {
    // Of a call that does not say what it belongs to, all that are open wait.
    const own = options && this.#takings.get(options);
    const takings = own === undefined ? [...this.#takings.values()] : [own];
    const stored = (async () => {
      const event = await read();
      if (event !== undefined) await this.#outside.run(() => this.#accept(event));
    })();
    return new Promise<void>((resolve) => {
      const ours = stored.then(resolve, (thrown: unknown) => {
        for (const { failed } of takings) failed.reject(thrown);
      });
      for (const taking of takings) taking.ours.push(ours);
    });
  }

  #said(thread: string, message: Lazy<SdkMessage>, isEdit: boolean, options?: object): Promise<void> {
    return this.#take(options, async () => {
      const told = typeof message === "function" ? await message() : message;
      return messageEvent(this.#reader, thread, told, isEdit);
    });
  }

  /** As the SDK calls its `ChatInstance`. What there is no word for here is passed over. */
  instance() {
    const history = () =>
      new PerdureError("bad_state", "The agent has the history; an adapter has no use for another.");
    return {
      getState: () => this.#state,
      getUserName: () => this.#reader.userName(),
      getLogger: () => QUIET,
      abortTurn: nothing,
      get history(): never {
        throw history();
      },
      get transcripts(): never {
        throw history();
      },
      processMessage: (_adapter: unknown, thread: string, message: Lazy<SdkMessage>, options?: object) =>
        this.#said(thread, message, false, options),
      handleIncomingMessage: (_adapter: unknown, thread: string, message: SdkMessage) =>
        this.#said(thread, message, false),
      processMessageUpdated: (
        { threadId, message }: { readonly threadId: string; readonly message: Lazy<SdkMessage> },
        options?: object,
      ) => this.#said(threadId, message, true, options),
      processAction: (action: SdkAction, options?: object) =>
        this.#take(options, () => pressEvent(this.#reader, action)),
      processSlashCommand: (command: SdkCommand, options?: object) =>
        this.#take(options, () => commandEvent(this.#reader, command)),
      processMessageDeleted: nothing,
      processReaction: nothing,
      processModalSubmit: () => Promise.resolve(undefined),
      processOptionsLoad: () => Promise.resolve(undefined),
      ...{ processModalClose: quiet, processInstalled: quiet, processUninstalled: quiet, processAppHomeOpened: quiet },
      ...{ processAgentSessionStopped: quiet, processAgentSessionTitleChanged: quiet, processAppContextChanged: quiet },
      ...{
        processAssistantContextChanged: quiet,
        processAssistantThreadStarted: quiet,
        processMemberJoinedChannel: quiet,
      },
    };
  }
}

/** Adapters have loggers of their own. */
const QUIET = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: (): object => QUIET };

/**
 * Runs work outside an adapter's own async context. Some post differently while they read a webhook, and what a turn says must
 * not depend on that.
 */
class Outside {
  #waiting: (() => void)[] = [];
  #wake = Promise.withResolvers<void>();

  constructor() {
    void this.#work();
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push(() => void work().then(resolve, reject));
    this.#wake.resolve();
    return promise;
  }

  async #work(): Promise<never> {
    for (;;) {
      await this.#wake.promise;
      this.#wake = Promise.withResolvers<void>();
      for (const work of this.#waiting.splice(0)) work();
    }
  }
}
