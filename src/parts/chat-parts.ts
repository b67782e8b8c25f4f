import type { LanguageModel } from "ai";
import type { Identity } from "../base/identity.ts";
import { defaultPrices } from "../ledger/default-prices.ts";
import { Ledger } from "../ledger/ledger.ts";
import { filesOf } from "../media/files.ts";
import { MediaMover, type MediaRetention } from "../media/media.ts";
import { MediaRestore } from "../media/media-restore.ts";
import { asPart, type Part, type ToolPart, type UIMessage } from "../message/types.ts";
import { classifyProviderError } from "../model/provider-error.ts";
import { erase, type EraseReceipt, finishErase } from "../erase/erase.ts";
import { type EraseScope, sessionsIn } from "../erase/erase-plan.ts";
import type { AboutFailure, AgentHost } from "../port.ts";
import type { Session } from "../session/session.ts";
import { SessionManager } from "../session/session-manager.ts";
import { MAIN_SESSION } from "../store/session.ts";
import { openTurns, readTurn, type TurnRow } from "../store/turn.ts";
import type { Answerer, TurnFacts } from "../turn/engine/engine.ts";
import type { Origin, SaveMessagesResult, StepPolicy, TurnAgent, TurnPolicy } from "../turn/policy.ts";
import { classify, type StepParts } from "../turn/step/parts.ts";
import { type AgentSide, type Conversations, sessionNamed } from "../turn/engine/conversations.ts";
import { answerTool, type ToolAnswer } from "../turn/intake/tool-answers.ts";
import type { ContextState, SessionOp } from "../wire/session-frames.ts";
import type { Caller } from "../door/authorize.ts";
import { admitTurn, causeOfTurn, type TurnBounds } from "./cause.ts";
import { type ChatRoom, sessionGround } from "../live/chat-room.ts";
import { ChatPart } from "./chat.ts";
import type { Connection } from "../door/connection.ts";
import { runAs, sessionNow, turnNow, withCause } from "./current.ts";
import type { AgentParts } from "./agent-parts.ts";
import { ChildRuns } from "./runs/child-runs.ts";
import type { AgentToolChildHooks } from "./runs/types.ts";
import { ChatTurns, type RunWording } from "./runs/chat-turns.ts";
import { payersOf } from "./runs/run-payers.ts";
import type { SessionServant, WindowMethods } from "../live/session-frames.ts";
import { type TitleOptions, Titles } from "./titles.ts";
import { PerdureError } from "../base/error.ts";

type Maybe<T> = T | Promise<T>;

/** What the app decides about its conversations, beside its turns: the class that it writes. */
interface ChatPolicy extends TurnPolicy, TurnBounds, AgentToolChildHooks, RunWording {
  readonly mediaRetention: MediaRetention | boolean;
  readonly titles: boolean | TitleOptions;
  getTitleModel(): Maybe<LanguageModel | undefined>;
  configureSession(session: Session): Maybe<Session | void>;
  allowSessionOp(caller: Caller, op: SessionOp): Maybe<boolean>;
  getApprover(connection: Connection | undefined, identity?: Identity): string | undefined;
}

/** What those have besides who run their turns step by step. */
interface StepSide extends Pick<StepParts, "policy" | "ledger"> {
  readonly policy: StepPolicy & WindowMethods;
  readonly window: {
    state(session: string): ContextState | null;
    /** A turn is over: a summary that was made meanwhile may count. */
    ready(session: string): void;
  };
  readonly background: {
    /** Whether calls of a turn go on without it. */
    hasOpen(turnId: string): boolean;
  };
}

/** What an agent that holds conversations is made of. */
export class ChatParts implements TurnAgent {
  readonly #own: AgentParts<unknown>;
  readonly #agent: ChatPolicy;
  readonly #base: ChatPolicy;
  readonly #repair: (part: Part, message: UIMessage) => Part;
  readonly #part: ChatPart;
  readonly titles: Titles;
  readonly restore = new MediaRestore(() => filesOf(this.#own.host));
  /** Set by the class that answers, before anything is asked. */
  answerer: Answerer | undefined;
  /** Parts that keep rows beside turns. */
  readonly facts: TurnFacts[] = [];
  /** What is used by turns that run step by step, and by others for them. */
  steps: StepSide | undefined;
  /** A turn is over, however it ended: for what is told elsewhere. Must not throw. */
  turnOver: (() => void) | undefined;
  /** Why an answer cannot be delivered to a place that somebody names; undefined: it can. Set by the class that has messengers. */
  whyNowhere: (place: unknown) => Promise<string | undefined> = () => Promise.resolve(undefined);
  #runs: ChildRuns | undefined;
  #media: MediaMover | undefined;
  #sessions: SessionManager | undefined;
  #ledger: Ledger | undefined;

  /** @param base the policy that does nothing: a class that has its hooks is not asked. */
  constructor(
    own: AgentParts<unknown>,
    agent: ChatPolicy,
    base: ChatPolicy,
    repair: (part: Part, message: UIMessage) => Part,
  ) {
    this.#own = own;
    this.#agent = agent;
    this.#base = base;
    this.#repair = repair;
    const { host } = own;
    this.#part = new ChatPart(
      own,
      () => this.#side,
      () => this.#servant,
    );
    this.titles = new Titles({
      host,
      ground: () => sessionGround(this.room),
      ledger: () => this.steps?.ledger ?? this.#ownLedger,
      options: () => agent.titles,
      hasModel: () => agent.getTitleModel !== base.getTitleModel,
      model: () => this.as(() => agent.getTitleModel()),
      classify: async (error) => (this.steps ? classify(this.steps, error) : classifyProviderError(error)),
    });
    own.turns = new ChatTurns(agent, this);
    own.parts.push(this.#part);
    if (host.path.length > 1) own.parts.push({ started: () => this.runs.started() });
    own.parts.push({ started: () => this.#lookAfterMedia() });
    own.parts.push({
      started: () => (host.blank ? undefined : finishErasing(() => this.room)),
      halt: (reason) => this.titles.halt(reason),
    });
  }

  get host(): AgentHost {
    return this.#own.host;
  }

  get room(): ChatRoom {
    return this.#part.room;
  }

  get chat(): Conversations {
    return this.#part.room.chat;
  }

  /** The work that the agent does for the one above it. */
  get runs(): ChildRuns {
    return (this.#runs ??= new ChildRuns({
      host: this.host,
      room: () => this.room,
      hooks: this.#agent,
      failed: (error) => void this.#own.failed(error, { stage: "agent tool run" }),
    }));
  }

  /** What takes large things out of messages. */
  get media(): MediaMover {
    return (this.#media ??= new MediaMover({
      host: this.host,
      retention: () => (this.#agent.mediaRetention === true ? {} : this.#agent.mediaRetention),
      changed: () => this.chat.transcripts.reload(),
      failed: (error) => void this.#own.failed(error, { stage: "media" }),
    }));
  }

  get sessions(): SessionManager {
    return (this.#sessions ??= new SessionManager(sessionGround(this.room), (session) =>
      this.as(() => this.#agent.configureSession(session)),
    ));
  }

  /** The session of a name; without one, that of the code that asks. */
  session(id = sessionNow(this.chat)): Session {
    return this.sessions.of(id);
  }

  /** The session that code means. @throws PerdureError `not_found` */
  named(session = sessionNow(this.chat)): string {
    return sessionNamed(this.chat, session);
  }

  /** Answers a call from server code. False when it is unknown or was answered before. */
  answer(given: ToolAnswer, session: string | undefined): boolean {
    const where = session === undefined ? {} : { session: this.named(session) };
    return answerTool(this.chat, { ...given, ...where }, undefined) === true;
  }

  erase(scope: EraseScope): Promise<EraseReceipt> {
    return eraseData({ room: this.room, sessions: this.sessions, media: this.media }, scope);
  }

  /** Resolves with how a turn ended. Aborting the signal stops it. */
  async follow(requestId: string, signal: AbortSignal | undefined): Promise<SaveMessagesResult> {
    return { requestId, ...(await this.chat.settled(requestId, signal)) };
  }

  // The agent, as its turns know it

  /** What the agent brings to its conversations. */
  get #side(): AgentSide {
    // Only a child works for somebody else.
    const facts = this.host.path.length > 1 ? [...this.facts, this.#workForParent] : this.facts;
    return { policy: this.#agent, silent: this.#base, agent: this, answerer: this.answerer as Answerer, facts };
  }

  get #workForParent(): TurnFacts {
    return {
      begun: (turn) => this.runs.begun(turn),
      wanted: async (turn) => {
        if (turn.attempts > 0) await payersOf(this.host, turn.seq)?.recovered(this.steps?.ledger);
        return this.runs.wanted(turn);
      },
    };
  }

  as<T>(work: () => T, turn?: string, identity?: Identity): T {
    const waiting = turn === undefined ? undefined : this.#own.waiting.get(turn);
    const current = {
      ...{ ...this.#own.nobody, ...(turn !== undefined && { turn }) },
      ...(identity !== undefined && { identity }),
      ...(waiting !== undefined && { waiting }),
    };
    return runAs(this.host.context, current, work);
  }

  /** What a hook asks for when a turn is over comes of it, like what its tools ask for. */
  after<T>({ requestId, identity }: { readonly requestId: string; readonly identity?: Identity }, work: () => T): T {
    const who = { ...this.#own.nobody, ...(identity !== undefined && { identity }) };
    return runAs(this.host.context, { ...who, ...withCause(causeOfTurn(this.host, requestId)) }, work);
  }

  failed(error: unknown, about?: Partial<AboutFailure>): void {
    void this.#own.failed(error, { stage: "chat", ...about });
  }

  repair(part: ToolPart, message: UIMessage): Part {
    return this.#repair(asPart(part), message);
  }

  approver(origin: Origin, identity: Identity | undefined): string | undefined {
    return this.#agent.getApprover(origin && this.#own.connections.of(origin), identity);
  }

  admit(counted: boolean): string | null {
    return admitTurn(this.host, this.#agent, counted);
  }

  over(turnId: string): void {
    this.#own.turnOver(turnId);
    const turn = readTurn(this.host, turnId);
    if (turn !== undefined) this.#ended(turn);
  }

  #ended(turn: TurnRow): void {
    if (this.#agent.mediaRetention !== false) this.media.after(turn.session);
    // What an agent above asked for needs no name, and that one would have to pay for it.
    if (turn.status === "completed" && payersOf(this.host, turn.seq) === undefined) this.titles.answered(turn.session);
    this.steps?.window.ready(turn.session);
    this.turnOver?.();
  }

  /** What became of files while the agent was away: their time is over, or its address is another one. */
  #lookAfterMedia(): void {
    const { mediaRetention } = this.#agent;
    if (mediaRetention === false || this.host.blank) return;
    const expires = mediaRetention !== true && mediaRetention.days !== undefined;
    if (expires || this.media.hasMoved) this.media.after(this.chat.transcripts.current);
  }

  /** What the agent can do with its sessions when a client asks. */
  get #servant(): SessionServant {
    const { steps } = this;
    return {
      sessions: this.sessions,
      allow: (caller, op) => this.as(() => this.#agent.allowSessionOp(caller, op)),
      contextState: (session) => steps?.window.state(session) ?? null,
      window: steps?.policy,
      title: (session) => this.titles.ask(session),
    };
  }

  /** For classes that keep no ledger themselves. */
  get #ownLedger(): Ledger {
    if (this.#ledger === undefined) {
      const options = { budgets: () => ({}), prices: () => defaultPrices, session: () => MAIN_SESSION };
      this.#ledger = new Ledger(this.host, options);
      this.#ledger.closeOpen();
    }
    return this.#ledger;
  }
}

/** What erasing takes from the agent around it. */
interface EraseSurroundings {
  readonly room: ChatRoom;
  readonly sessions: SessionManager;
  readonly media: MediaMover;
}

/** Erases a session or a subject's data, after stopping its turns. @throws PerdureError `bad_state` within such a turn */
async function eraseData(around: EraseSurroundings, scope: EraseScope): Promise<EraseReceipt> {
  const { chat } = around.room;
  const { host } = chat;
  const session = turnNow(host)?.session;
  const deps = {
    host,
    async stop(sessions: readonly string[]) {
      if (session !== undefined && sessions.includes(session))
        throw new PerdureError("bad_state", "A session cannot be erased within its own turn. Erase it after the turn.");
      const open = openTurns(host).filter((one) => sessions.includes(one.session));
      for (const { id } of open) chat.cancel(id);
      for (const { id } of open) await chat.settled(id);
      host.tx(() => chat.answerer.steps?.background.drop((call) => sessions.includes(call.session)));
      await around.media.idle();
    },
    erased(sessions: readonly string[]) {
      for (const one of sessions) {
        around.sessions.delete(one);
        chat.transcripts.forget(one);
      }
      chat.transcripts.reload();
      for (const part of chat.facts) part.erased?.();
      for (const one of sessions) {
        chat.output.cleared(one, undefined);
        around.room.live.sessions({ kind: "deleted", session: one });
      }
    },
  };
  // So that what is wrong with the scope is said before anything stops.
  if ("session" in scope && typeof scope.session === "string" && scope.session !== "") sessionsIn(host, scope);
  return host.keepAwake(erase(deps, scope));
}

/** Does the rest of what a crash cut off, in the background. Never throws. */
function finishErasing(room: () => ChatRoom): void {
  const { host, agent } = room().chat;
  void host.keepAwake(finishErase(host)).catch((thrown: unknown) => {
    if (!PerdureError.is(thrown, "agent_gone")) agent.failed(thrown);
  });
}
