import { dataUrlOf, mapMedia, referencesOf, toReference } from "../message/media-ref.ts";
import type { Part, UIMessage } from "../message/types.ts";
import type { Files } from "./files.ts";

/** Messages with what is kept elsewhere put back: a model reads the same wherever it is. Each is cached until it changes. */
export class MediaRestore {
  readonly #files: () => Files;
  readonly #known = new WeakMap<UIMessage, UIMessage>();

  constructor(files: () => Files) {
    this.#files = files;
  }

  /** The same messages, and the same list, where nothing was moved. A file that is gone becomes a text that says so. */
  async of(messages: readonly UIMessage[]): Promise<readonly UIMessage[]> {
    const restored: UIMessage[] = [];
    for (const message of messages) restored.push(this.#known.get(message) ?? (await this.#restore(message)));
    return restored.every((message, at) => message === messages[at]) ? messages : restored;
  }

  async #restore(message: UIMessage): Promise<UIMessage> {
    const references = referencesOf(message);
    const restored = references.length === 0 ? message : await this.#load(message, references);
    this.#known.set(message, restored);
    return restored;
  }

  async #load(message: UIMessage, references: ReturnType<typeof referencesOf>): Promise<UIMessage> {
    const whole = new Map<string, string>();
    for (const { kind, name } of references) {
      const file = await this.#files().read(name);
      if (file === undefined) continue;
      whole.set(name, kind === "text" ? new TextDecoder().decode(file.bytes) : dataUrlOf(file.bytes, file.mediaType));
    }
    const back = mapMedia(message, (text) => {
      const reference = toReference(text);
      return (reference && whole.get(reference.name)) ?? text;
    });
    const parts = back.parts.map((part): Part => {
      if (part.type !== "file" || toReference(part.url) === undefined) return part;
      return { type: "text", text: `[The file ${part.filename ?? part.mediaType} is no longer stored.]` };
    });
    return { ...back, parts };
  }
}
