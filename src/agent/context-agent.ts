import type { LanguageModel } from "ai";
import type { LiveState } from "../context/carried.ts";
import type { DraftCompaction } from "../context/compaction-job.ts";
import type { ContextReport } from "../context/context-report.ts";
import { defaultModelLimits } from "../context/default-model-limits.ts";
import type { ModelLimitsTable } from "../context/model-limits.ts";
import type { ContextOverflow } from "../context/overflow.ts";
import type { TextCounter } from "../context/token-counters.ts";
import type { AgentEnv } from "../port.ts";
import { sessionServant } from "./chat-agent.ts";
import type { CompactionInfo } from "./compaction-info.ts";
import { parts } from "./parts.ts";
import { SessionAgent } from "./session-agent.ts";
import type { SessionServant } from "./session-frames.ts";
import type { AppliedCompaction, ContextSettings, ThinkContext } from "./think-context.ts";

/** What keeps conversations within the model's window. Under a symbol: every plain name belongs to the user. */
export const windowOf: unique symbol = Symbol("perdure.window-of");

/** How many compactions are listed when nothing is said. */
const LISTED = 100;

/** Whose session it is about; by default, that of the turn that runs, else that of all who name none. */
interface OfSession {
  readonly session?: string;
}

/** What an agent has that sends its conversations to a model by itself: they stay within the model's window. */
export abstract class ContextAgent<Env extends object = AgentEnv, State = unknown, Props extends object = object>
  extends SessionAgent<Env, State, Props>
  implements ContextSettings
{
  /** @internal */
  abstract get [windowOf](): ThinkContext;

  /**
   * What is done when a conversation grows too long for the model: by default it is compacted before a request that would
   * not fit, when a provider says that one did not, and when one has used more than fits. `false`: nothing.
   */
  contextOverflow: ContextOverflow | boolean = {};
  /** How much models can read. Replace it with your own table or function. */
  modelLimits: ModelLimitsTable = defaultModelLimits;

  /** The model that summarises. Nothing: the one that reads the summary. */
  getCompactionModel(): LanguageModel | undefined | Promise<LanguageModel | undefined> {
    return undefined;
  }

  /**
   * Counts texts as a model (`provider/modelId`) does, by a real tokenizer. Nothing: they are estimated, and it is asked
   * again. Must be quick. A counter that was returned is used as long as the agent is in memory; what fails is the event
   * `chat:counter:failed`, and texts are estimated.
   */
  countTokens(_model: string): TextCounter | undefined {
    return undefined;
  }

  /**
   * What is true now and must survive a summary word for word: a plan, what is to be done. Added to what Perdure carries
   * over by itself. Must be quick.
   */
  getLiveState(): LiveState {
    return {};
  }

  /**
   * Lets the model read a summary instead of the older messages, which stay as they are. With `preview` nothing is stored:
   * change the text and give it to {@link ContextAgent.applyCompaction}.
   * @throws PerdureError `bad_state` with the reason, when it would not help, could not be done, or a turn is running.
   */
  compact(options: { readonly focus?: string; readonly preview: true } & OfSession): Promise<DraftCompaction>;
  compact(options?: { readonly focus?: string; readonly preview?: false } & OfSession): Promise<CompactionInfo>;
  compact(
    options?: { readonly focus?: string; readonly preview?: boolean } & OfSession,
  ): Promise<CompactionInfo | DraftCompaction>;
  async compact({
    focus,
    preview = false,
    session = this.session.id,
  }: { readonly focus?: string; readonly preview?: boolean } & OfSession = {}): Promise<
    CompactionInfo | DraftCompaction
  > {
    if (preview) return this[windowOf].preview(session, focus);
    return this.#stored(await this[windowOf].compact(session, focus));
  }

  /**
   * Lets the model read a note in the place of outputs of tools, as it is done before a summary is made: those that newer
   * ones supersede, and old ones, but nothing of the user's last two turns, nor of the newest {@link PRUNE_PROTECT} tokens
   * of outputs before them (in a small window, less). It is a compaction of kind `prune`. Undefined, and nothing has changed, where that would free less than {@link PRUNE_MINIMUM} tokens.
   * @throws PerdureError `bad_state` while a turn is running.
   */
  async prune({ session = this.session.id }: OfSession = {}): Promise<CompactionInfo | undefined> {
    return this.#stored(await this[windowOf].prune(session));
  }

  /** Makes a compaction of a text that you wrote, or changed. @throws PerdureError `bad_state` as {@link ContextAgent.compact} */
  async applyCompaction({
    session = this.session.id,
    ...draft
  }: AppliedCompaction & OfSession): Promise<CompactionInfo> {
    return this.#stored(await this[windowOf].apply(session, draft));
  }

  /**
   * Takes back the compaction in effect: the model reads the messages again, with all that was said since.
   * @throws PerdureError `not_found`; `bad_state` when it is not the one in effect, or a turn is running; `limit` when the
   * conversation would not fit, with the number of tokens that are too many.
   */
  async undoCompaction(id: string, { session }: OfSession = {}): Promise<CompactionInfo> {
    return this.#stored(await this[windowOf].undo(id, session));
  }

  /** The compactions of a session, newest first, with those that came to nothing. */
  listCompactions({ session = this.session.id, limit = LISTED }: { readonly limit?: number } & OfSession = {}) {
    return this[windowOf].list(session, limit);
  }

  /** What fills the model's window: of the last request, or of the next one if none was made since the agent woke. */
  contextReport({ session = this.session.id }: OfSession = {}): Promise<ContextReport> {
    return this[windowOf].report(session);
  }

  /** @internal */
  override get [sessionServant](): SessionServant {
    return {
      ...super[sessionServant],
      contextState: (session) => this[windowOf].state(session),
      report: (session) => this.contextReport({ session }),
      compact: (session, options) => this.compact({ session, ...options }),
      applyCompaction: (session, draft) => this.applyCompaction({ session, ...draft }),
      undoCompaction: (session, id) => this.undoCompaction(id, { session }),
    };
  }

  async #stored<T>(value: T): Promise<T> {
    await this[parts].host.durable();
    return value;
  }
}
