import type { LanguageModel } from "ai";
import { errorText } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { renameSession } from "../session/session-changes.ts";
import type { SessionGround } from "../session/session-ground.ts";
import { isReadable, toEntry } from "../session/path-window.ts";
import { cleanTitle, titlePrompt, titleTriesKey } from "../session/titles.ts";
import type { UIMessage } from "../message/types.ts";
import { deleteCell, readCell, writeCell } from "../store/cell.ts";
import { messagesUp } from "../store/message.ts";
import { readOwnerLine, readSessionLine, type SessionLine } from "../store/session.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import { askWith } from "../model/summary-call.ts";

/** How sessions are named. */
export interface TitleOptions {
  /** Finds a better name than the first words. Default: what `getTitleModel()` says. */
  readonly model?: LanguageModel;
  /** After how many answers it is asked. Default 1. */
  readonly after?: number;
}

/** What titles need of the agent. */
interface TitleDeps {
  readonly host: AgentHost;
  ground(): SessionGround;
  ledger(): Ledger;
  options(): TitleOptions | boolean;
  /** Whether {@link TitleDeps.model} may say anything at all: then nothing is looked for where nobody could be asked. */
  hasModel(): boolean;
  model(): LanguageModel | undefined | Promise<LanguageModel | undefined>;
  classify(error: unknown): Promise<ChatErrorClassification>;
}

/** How often a model is asked for the title of one session before the first words stay for good. */
const MAX_TRIES = 3;
/** How much a model may say: some think first. */
const MAX_OUTPUT_TOKENS = 1_000;
/** The most of a conversation that it is shown, in messages. */
const MAX_MESSAGES = 12;

/** Lets a model find names for sessions, in the background. What a person wrote is never replaced. */
export class Titles {
  readonly #deps: TitleDeps;
  readonly #busy = new Map<string, Promise<string | null>>();
  readonly #abort = new AbortController();

  constructor(deps: TitleDeps) {
    this.#deps = deps;
  }

  /** A turn was answered. Never throws. */
  answered(session: string): void {
    const options = this.#deps.options();
    const own = typeof options === "object" ? options.model : undefined;
    if (options === false || (own === undefined && !this.#deps.hasModel())) return;
    const row = this.#owner(session);
    if (row === undefined || row.namedBy === "user" || row.namedBy === "model") return;
    const { after = 1 } = typeof options === "object" ? options : {};
    const messages = this.#messages(session);
    const answers = messages.filter(({ role }) => role === "assistant").length;
    if (answers < Math.min(after, MAX_MESSAGES / 2) || this.#tries(row.id) >= MAX_TRIES) return;
    void this.#deps.host.keepAwake(this.#find(row.id, session).catch(() => {}));
  }

  /** Asks now, whoever named the session but a person. @returns its name. Never throws but for the signal of this life. */
  async ask(session: string): Promise<string | null> {
    const row = this.#owner(session);
    if (row === undefined || row.namedBy === "user") return row?.name ?? null;
    return this.#find(row.id, session);
  }

  halt(reason: unknown): void {
    this.#abort.abort(reason);
  }

  #find(owner: string, session: string): Promise<string | null> {
    const known = this.#busy.get(owner);
    if (known !== undefined) return known;
    const work = this.#improve(owner, session).finally(() => this.#busy.delete(owner));
    this.#busy.set(owner, work);
    return work;
  }

  async #improve(owner: string, session: string): Promise<string | null> {
    const { host } = this.#deps;
    const options = this.#deps.options();
    const own = typeof options === "object" ? options.model : undefined;
    const nameNow = () => this.#owner(owner)?.name ?? null;
    const fail = (thrown: unknown) => {
      host.emit("session:title_failed", { session: owner, error: errorText(thrown) });
      host.report(thrown, { stage: "title" });
      return nameNow();
    };
    let model: LanguageModel | undefined;
    try {
      model = own ?? (await this.#deps.model());
    } catch (thrown) {
      return fail(thrown);
    }
    const messages = this.#messages(session);
    if (model === undefined || messages.length === 0) return nameNow();
    // Before it is paid for: a try that a crash cuts counts too.
    writeCell(host, titleTriesKey(owner), String(this.#tries(owner) + 1));
    const ask = askWith({
      ...{ host, ledger: this.#deps.ledger(), payers: undefined, session: owner, turn: undefined, step: 0, model },
      ...{ maxOutput: MAX_OUTPUT_TOKENS, signal: this.#abort.signal, purpose: "title" },
      classify: (error) => this.#deps.classify(error),
    });
    let title: string | undefined;
    try {
      const answer = await ask({ ...titlePrompt(messages), maxOutputTokens: MAX_OUTPUT_TOKENS });
      if (answer.kind !== "text")
        return fail(answer.kind === "failed" ? answer.error : "The conversation is too long.");
      title = cleanTitle(answer.text);
    } catch (thrown) {
      if (this.#abort.signal.aborted) throw thrown;
      return fail(thrown);
    }
    const row = this.#owner(owner);
    // Deleted or named meanwhile.
    if (row === undefined || row.namedBy === "user") return row?.name ?? null;
    if (title === undefined) return fail("The model gave no title.");
    deleteCell(host, titleTriesKey(owner));
    renameSession(this.#deps.ground(), owner, title, "model");
    return title;
  }

  #owner(session: string): SessionLine | undefined {
    const { host } = this.#deps;
    return host.blank ? undefined : readOwnerLine(host, session);
  }

  #tries(owner: string): number {
    return Number(readCell(this.#deps.host, titleTriesKey(owner)) ?? 0);
  }

  /** The end of the conversation, oldest first. While it has no name, that is most of it. */
  #messages(session: string): UIMessage[] {
    const { host } = this.#deps;
    const leaf = readSessionLine(host, session)?.leaf ?? null;
    const rows = leaf === null ? [] : messagesUp(host, leaf, MAX_MESSAGES);
    return rows
      .flatMap((row) => {
        const entry = toEntry(row);
        return isReadable(entry) ? [entry.message] : [];
      })
      .reverse();
  }
}
