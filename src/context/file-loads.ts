import type { Experimental_DownloadFunction as DownloadFunction, ModelMessage } from "ai";
import { errorText, PerdureError } from "../base/error.ts";
import type { Clock } from "../base/time.ts";

/** How long one file may take. Without a bound an address that never answers would hold the turn. */
const LOAD_TIMEOUT_MS = 60_000;

type Loaded = Exclude<Awaited<ReturnType<DownloadFunction>>[number], null>;
type Load = (file: { url: URL; abortSignal?: AbortSignal }) => Promise<Loaded>;
type Content = Exclude<ModelMessage["content"], string>[number];
type Output = Extract<Content, { type: "tool-result" }>["output"];
type OutputPart = Extract<Output, { type: "content" }>["value"][number];

/** Files that models cannot fetch themselves, for one attempt of a turn. One that fails is not retried: the model is told. */
export class FileLoads {
  readonly #clock: Clock;
  readonly #failed: (url: string, error: PerdureError) => void;
  readonly #load: Load;
  readonly #lost = new Map<string, unknown>();

  /** @param failed hears of each file that is lost. Must not throw. */
  constructor(clock: Clock, failed: (url: string, error: PerdureError) => void, load: Load) {
    this.#clock = clock;
    this.#failed = failed;
    this.#load = load;
  }

  /** Makes a call with its files loaded, again with texts for those that fail to load. @throws what the call throws */
  async within<T>(
    messages: ModelMessage[],
    signal: AbortSignal,
    call: (messages: ModelMessage[], download: DownloadFunction) => Promise<T>,
  ): Promise<T> {
    const loaded = new Map<string, Loaded>();
    for (;;) {
      try {
        return await call(this.#told(messages), (files) => this.#all(files, loaded, signal));
      } catch (thrown) {
        // Each time there are fewer files to load.
        if (!(thrown instanceof LostFiles)) throw thrown;
      }
    }
  }

  async #all(
    files: Parameters<DownloadFunction>[0],
    loaded: Map<string, Loaded>,
    signal: AbortSignal,
  ): Promise<(Loaded | null)[]> {
    const wanted = files.filter((file) => !file.isUrlSupportedByModel).map(({ url }) => url);
    for (const { href } of wanted) if (this.#lost.has(href)) throw this.#lost.get(href);
    const before = this.#lost.size;
    const addresses = new Map(wanted.map((url) => [url.href, url]));
    await Promise.all(
      [...addresses].map(async ([href, url]) => {
        if (loaded.has(href)) return;
        try {
          loaded.set(href, await this.#one(url, signal));
        } catch (thrown) {
          signal.throwIfAborted();
          this.#lose(url, thrown);
        }
      }),
    );
    if (this.#lost.size > before) throw new LostFiles();
    return files.map(({ url, isUrlSupportedByModel }) =>
      isUrlSupportedByModel ? null : (loaded.get(url.href) ?? null),
    );
  }

  async #one(url: URL, signal: AbortSignal): Promise<Loaded> {
    const late = new AbortController();
    const inTime = this.#clock.after(LOAD_TIMEOUT_MS, () =>
      late.abort(new Error(`it took over ${LOAD_TIMEOUT_MS} ms`)),
    );
    try {
      return await this.#load({ url, abortSignal: AbortSignal.any([signal, late.signal]) });
    } finally {
      inTime();
    }
  }

  #lose(url: URL, thrown: unknown): void {
    this.#lost.set(url.href, thrown);
    const text = `A file could not be loaded, and the model is told so: ${errorText(thrown)}`;
    this.#failed(url.href, new PerdureError("not_found", text, { cause: thrown }));
  }

  /** The messages with texts where files are lost. */
  #told(messages: ModelMessage[]): ModelMessage[] {
    if (this.#lost.size === 0) return messages;
    return messages.map((message) => {
      switch (message.role) {
        case "user":
          if (typeof message.content === "string") return message;
          return { ...message, content: message.content.map((part) => this.#userPart(part)) };
        case "assistant":
          if (typeof message.content === "string") return message;
          return { ...message, content: message.content.map((part) => this.#resultPart(part)) };
        case "tool":
          return { ...message, content: message.content.map((part) => this.#resultPart(part)) };
        default:
          return message;
      }
    });
  }

  #userPart<P extends Content>(part: P): P | { type: "text"; text: string } {
    if (part.type === "image") return this.#isLost(part.image) ? note(part) : part;
    if (part.type === "file") return this.#isLost(part.data) ? note(part) : part;
    return part;
  }

  #resultPart<P extends Content>(part: P): P {
    if (part.type !== "tool-result" || part.output.type !== "content") return part;
    const value = part.output.value.map((item): OutputPart => (this.#isLost(addressIn(item)) ? note(item) : item));
    return { ...part, output: { ...part.output, value } };
  }

  #isLost(data: unknown): boolean {
    const address = typeof data === "object" && data !== null && "url" in data ? data.url : data;
    if (typeof address !== "string" && !(address instanceof URL)) return false;
    // Megabytes of base64 are no address.
    if (typeof address === "string" && address.startsWith("data:")) return false;
    const url = URL.parse(address);
    return url !== null && this.#lost.has(url.href);
  }
}

/** Some files could not be loaded, and are known now. */
class LostFiles extends Error {}

function addressIn(item: OutputPart): unknown {
  if (item.type === "file") return item.data;
  return item.type === "file-url" || item.type === "image-url" ? item.url : undefined;
}

function note(part: object): { type: "text"; text: string } {
  const fields: { filename?: unknown; mediaType?: unknown } = part;
  const name = typeof fields.filename === "string" ? ` ${fields.filename}` : "";
  const type = typeof fields.mediaType === "string" ? ` (${fields.mediaType})` : "";
  return { type: "text", text: `[The file${name}${type} could not be loaded.]` };
}
