import { nextRequest } from "../turn/step/prepare.ts";
import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import { DEFAULT_SYSTEM_PROMPT } from "../context/capabilities.ts";
import type { LiveState } from "../context/carried.ts";
import type { CompactionInfo, ContextReport, DraftCompaction } from "../wire/session-types.ts";
import { defaultModelLimits } from "../context/default-model-limits.ts";
import type { ModelLimitsTable } from "../context/model-limits.ts";
import type { ContextOverflow } from "../context/overflow.ts";
import type { TextCounter } from "../context/token-counters.ts";
import type { Budgets } from "../ledger/budget.ts";
import type { LedgerEntry } from "../ledger/charge.ts";
import { defaultPrices } from "../ledger/default-prices.ts";
import type { Ledger, UsageTotals } from "../ledger/ledger.ts";
import type { PriceTable } from "../ledger/prices.ts";
import type { MediaRetention } from "../media/media.ts";
import type { MessageInput } from "../message/input.ts";
import type { UIMessage } from "../message/types.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import type { AgentEnv, AgentHost, HostedAgentClass } from "../port.ts";
import type { ActionAuthorization, ActionAuthorizationContext } from "../tool/action-authorize.ts";
import { type ActionRecord, RECLAIM_AFTER_MS } from "../tool/action-ledger.ts";
import type { AnyAction } from "../tool/action.ts";
import type { PendingApproval, ReturnedCall } from "../tool/call-book.ts";
import type * as calls from "../tool/call-hooks.ts";
import type { FileDownloadOptions } from "../toolbox/egress/file-download.ts";
import type { ExtensionManager, ExtensionManagerOptions } from "../toolbox/extension/manager.ts";
import type { ExtensionDeclaration } from "../toolbox/extension/manifest.ts";
import type { SkillScriptRunner, SkillSource } from "../toolbox/skill/types.ts";
import type { BashToolOptions } from "../toolbox/workspace/bash-tool.ts";
import { sharedWorkspace } from "../toolbox/workspace/remote.ts";
import { callWorkspace, type WorkspaceAccess } from "../toolbox/workspace/serve.ts";
import type { WorkspaceToolsOptions } from "../toolbox/workspace/tools/create-workspace-tools.ts";
import type { PointChange, RestoreResult, WorkspaceFiles, WorkspaceLike } from "../toolbox/workspace/types.ts";
import { Workspace } from "../toolbox/workspace/workspace.ts";
import type { WorkspaceOptions } from "../toolbox/workspace/workspace-options.ts";
import { type ChatAnswer, ORDINARY_TURN, type OrdinaryTurn } from "../turn/engine/by-stream.ts";
import * as inbox from "../turn/intake/inbox.ts";
import type { SaveMessagesResult, StepPolicy } from "../turn/policy.ts";
import { readReceipt, type SteerReceipt } from "../turn/intake/steer.ts";
import * as submissions from "../turn/intake/submissions.ts";
import type { BackgroundCall } from "../turn/step/background-note.ts";
import type * as step from "../turn/step/config.ts";
import type { ScheduledTasks } from "../work/task-types.ts";
import { ChatAgent } from "./chat-agent.ts";
import { parts } from "../parts/part.ts";
import { DEFAULT_MAX_BACKGROUND } from "../parts/think-parts.ts";
import type { AppliedCompaction } from "../parts/window.ts";
import { ThinkParts } from "../parts/think-parts.ts";
import * as turns from "../parts/run-turn.ts";

type Maybe<T> = T | Promise<T>;
/** What a hook may say, or not. */
type Said<T> = Maybe<T | void>;

const DEFAULT_MAX_STEPS = 10;
/** How many compactions are listed when nothing is said. */
const LISTED = 100;

/** Whose session it is about; by default that of the running turn, else the current one. */
interface OfSession {
  readonly session?: string;
}

/** How it is summarised. */
interface Compacting extends OfSession {
  readonly focus?: string;
  readonly preview?: boolean;
}

/** Who answered, and whether the turn goes on by itself. */
interface ExecutionAnswer {
  readonly approver?: string;
  readonly identity?: Identity;
  readonly autoContinue?: boolean;
  readonly session?: string;
}

/**
 * The opinionated chat agent: override {@link Think.getModel} and it is complete. It asks the model step by step and runs the
 * tools itself, each call and result stored before anything builds on it: a crash costs at most the model call under way.
 *
 * Hooks fire on every turn, whatever started it. One that throws ends the turn with that error; if it only watches, the error
 * goes to `onError`.
 */
export class Think<Env extends object = AgentEnv, State = unknown, Props extends object = object>
  extends ChatAgent<Env, State, Props>
  implements StepPolicy
{
  /** @internal */
  declare readonly [parts]: ChatAgent<Env, State, Props>[typeof parts] & { readonly think: ThinkParts };

  constructor(host: AgentHost) {
    super(host);
    const own = this[parts] as ChatAgent<Env, unknown, Props>[typeof parts];
    this.workspace = new Workspace({ host });
    Object.assign(own, { think: new ThinkParts(own, own.chat, this, Think.prototype) });
  }

  // Settings

  /** The most model calls in one turn. {@link Think.getMaxSteps} may say otherwise. */
  maxSteps = DEFAULT_MAX_STEPS;
  /** Whether clients see the model's reasoning. */
  sendReasoning = true;
  /** Limits in tokens and dollars, with what runs below use. A hard limit pauses the answer; a soft one asks a person. */
  budgets: Budgets = {};
  /** As of `ChatAgent`. The model reads what was taken out as if it still stood in the message. */
  override mediaRetention: MediaRetention | boolean = {};
  /** What models cost. Replace it with your own table or function. */
  prices: PriceTable = defaultPrices;

  /** The model, or several that are tried in order. Asked for every turn. */
  getModel(): Maybe<LanguageModel | readonly LanguageModel[]> {
    throw new PerdureError("bad_config", `${this.constructor.name} must override getModel() and return a model.`);
  }

  /** Who the agent is. What its tools allow is added to it. Keep it the same from turn to turn: caches depend on it. */
  getSystemPrompt(): string | Promise<string> {
    return DEFAULT_SYSTEM_PROMPT;
  }

  /** The tools of the agent. Those of the client are added; they replace none of these. */
  getTools(): ToolSet | Promise<ToolSet> {
    return {};
  }
  getMaxSteps(): number {
    return this.maxSteps;
  }

  /**
   * The conversation as the model reads it, without what the turn under way adds. Must depend on what is stored alone: provider
   * caches hold only while its beginning stays the same.
   */
  assembleContext(context: {
    readonly messages: readonly UIMessage[];
    readonly tools: ToolSet;
  }): ModelMessage[] | Promise<ModelMessage[]> {
    return this[parts].think.messages.of(context.messages, context.tools);
  }

  /**
   * Full control: return what your own model streams, as in `AIChatAgent`; then there are no steps, hooks or budgets. Return
   * `super.onChatMessage(options)` to run step by step as usual. After a crash it is asked again.
   */
  onChatMessage(_options: step.ChatTurnOptions): Maybe<ChatAnswer | OrdinaryTurn | undefined> {
    return ORDINARY_TURN;
  }

  // Hooks

  /** Before the first model call, and again when a turn is carried on after a crash. */
  beforeTurn(_context: step.TurnContext): Said<step.TurnConfig> {}
  /** Before each model call, each try of it included. */
  beforeStep(_context: step.PrepareStepContext): Said<step.StepConfig> {}
  /** Before a server tool runs: let it, change its input, or answer instead. What it throws is the error of that call. */
  beforeToolCall(_context: calls.ToolCallContext): Said<calls.ToolCallDecision> {}
  /**
   * A tool has run, or `beforeToolCall` answered for it. The result is stored but unread: what this returns may replace or
   * withhold it. A throw goes to `onError` and withholds it. After a crash it may be asked again; the tool does not run again.
   */
  afterToolCall(_context: calls.ToolCallResultContext): Said<calls.ToolResultDecision> {}
  /** A model call and the tools it asked for are settled. Only watches. */
  onStepFinish(_context: step.StepContext): Said<undefined> {}
  /** The AI SDK's newer name of {@link Think.onStepFinish}; both are called. */
  onStepEnd(_context: step.StepContext): Said<undefined> {}
  /** Each piece of the model's stream. Only watches; it is called for every token, so it must be quick. */
  onChunk(_context: step.ChunkContext): Said<undefined> {}
  /** What went wrong with a turn or a request. Return what the user reads, or the error itself for a plain explanation. */
  onChatError(error: unknown, _context: step.ChatErrorContext): unknown {
    return error;
  }
  /** What kind of error a provider gave; nothing: it is recognised by its status and text. */
  classifyChatError(_error: unknown, _context: step.ChatClassifyContext): Said<ChatErrorClassification> {}

  // Turns

  /** Runs a turn and streams what it says to `callback`. Resolves when it is over, however it ended. */
  async chat(
    message: turns.TurnInput,
    callback: turns.StreamCallback,
    options: turns.ChatOptions = {},
  ): Promise<SaveMessagesResult> {
    return turns.chat(this[parts].chat.room, this[parts].think.brought, message, callback, options);
  }

  /** Stops a turn of {@link Think.chat} for good. False when no turn of that id is under way. */
  cancelChat(requestId: string, _reason?: string): boolean {
    return this.abortRequest(requestId);
  }

  /** Stops every turn that runs or waits. */
  cancelAllChats(): void {
    this.abortAllRequests();
  }

  /** One way for all: wait for the answer (default), stream it, or submit it and go on. */
  runTurn(options: turns.SubmitTurnOptions): Promise<submissions.SubmitResult>;
  runTurn<OUTPUT>(
    options: (turns.WaitTurnOptions | turns.StreamTurnOptions) & turns.WithOutput<OUTPUT>,
  ): Promise<SaveMessagesResult<OUTPUT>>;
  runTurn(options: turns.WaitTurnOptions | turns.StreamTurnOptions): Promise<SaveMessagesResult>;
  runTurn(options: turns.RunTurnOptions): Promise<SaveMessagesResult | submissions.SubmitResult>;
  async runTurn(options: turns.RunTurnOptions): Promise<SaveMessagesResult | submissions.SubmitResult> {
    return turns.runTurn(this[parts].chat, this[parts].think.brought, options);
  }

  /** Adds messages without a turn. With `mode: "append"` existing ones are left as they are. */
  async addMessages(
    messages: MessageInput | ((messages: UIMessage[]) => MessageInput),
    options: turns.AddMessagesOptions = {},
  ): Promise<void> {
    turns.addMessages(this[parts].chat.chat, messages, options);
    await this[parts].host.durable();
  }

  /** What a tool returned before `afterToolCall` changed or withheld it; undefined if shown as it was, or long ago. */
  originalToolResult(toolCallId: string, messageId?: string): ReturnedCall | undefined {
    return this[parts].think.book.original(toolCallId, messageId);
  }

  /** Tool calls that wait for a person. Answer them with `answerApproval`. */
  pendingApprovals(): PendingApproval[] {
    return this[parts].think.book.pendingApprovals();
  }

  // What was used

  /** Tokens and dollars of a turn, or of all that the agent ever did, runs of agents below included. */
  usage(scope: { readonly turn: string } | "agent" = "agent"): UsageTotals {
    return this[parts].think.ledger.totals(scope);
  }

  /** The model calls, newest first. Those of agents below have the purpose `agent-tool`. */
  listUsage(filter: Parameters<Ledger["list"]>[0] = {}): LedgerEntry[] {
    return this[parts].think.ledger.list(filter);
  }

  /**
   * What a model would be sent now besides the conversation: the instructions, and the tools by their names. Without what a client
   * or `beforeTurn` would add. @throws what `getSystemPrompt`, `getTools` and the like throw
   */
  async nextRequest(session = this.session.id): Promise<{ instructions: string; tools: Record<string, unknown> }> {
    const think = this[parts].think;
    const { instructions, tools } = await nextRequest(think, session);
    return { instructions, tools: await think.requests.toolsOf(tools) };
  }

  // Scheduled tasks

  /**
   * Recurring prompts and handlers, by id. Asked at every start. If it throws, that is reported and earlier ones stay, but wait
   * until it is asked again and returns.
   */
  getScheduledTasks(): ScheduledTasks | Promise<ScheduledTasks> {
    return {};
  }

  /** The time zone of tasks that name a time of day but no zone. */
  getDefaultTimezone(): string | undefined {
    return undefined;
  }

  /** Asks for the tasks again, when what {@link Think.getScheduledTasks} reads has changed. @throws PerdureError `bad_config` */
  async reconcileScheduledTasks(): Promise<void> {
    return this[parts].stored(await this[parts].think.tasks.reconcile());
  }

  /** The same as {@link Think.reconcileScheduledTasks}. */
  internal_reconcileScheduledTasks(): Promise<void> {
    return this.reconcileScheduledTasks();
  }

  // Its window

  /**
   * What is done when a conversation outgrows the model: by default it is compacted before a request that would not fit, when a
   * provider refuses one, and when one used more than fits. `false`: nothing.
   */
  contextOverflow: ContextOverflow | boolean = {};
  /** How much models can read. Replace it with your own table or function. */
  modelLimits: ModelLimitsTable = defaultModelLimits;

  /** The model that summarises. Nothing: the one that reads the summary. */
  getCompactionModel(): LanguageModel | undefined | Promise<LanguageModel | undefined> {
    return undefined;
  }

  /**
   * Counts texts as a model (`provider/modelId`) does. Must be quick. Nothing: they are estimated, and it is asked again. A
   * counter is used while the agent is in memory; if it fails, `chat:counter:failed` tells, and texts are estimated.
   */
  countTokens(_model: string): TextCounter | undefined {
    return undefined;
  }

  /** What must survive a summary word for word, such as a plan. Added to what Perdure carries over by itself. Must be quick. */
  getLiveState(): LiveState {
    return {};
  }

  /**
   * Lets the model read a summary instead of the older messages, which stay. With `preview` nothing is stored: edit the text and
   * give it to {@link Think.applyCompaction}. @throws PerdureError `bad_state` when it would not help, failed, or a turn is
   * running.
   */
  compact(options: Compacting & { readonly preview: true }): Promise<DraftCompaction>;
  compact(options?: Compacting & { readonly preview?: false }): Promise<CompactionInfo>;
  compact(options?: Compacting): Promise<CompactionInfo | DraftCompaction>;
  async compact({ focus, preview = false, session = this.session.id }: Compacting = {}) {
    if (preview) return this[parts].think.window.preview(session, focus);
    return this[parts].stored(await this[parts].think.window.compact(session, focus));
  }

  /**
   * Lets the model read a note in place of superseded and old tool outputs, as before a summary, but not in the user's last two
   * turns, nor in the newest {@link PRUNE_PROTECT} tokens of outputs before them (less in a small window). A compaction of kind
   * `prune`; undefined, and nothing changed, if it would free less than {@link PRUNE_MINIMUM} tokens.
   * @throws PerdureError `bad_state` while a turn is running.
   */
  async prune({ session = this.session.id }: OfSession = {}): Promise<CompactionInfo | undefined> {
    return this[parts].stored(await this[parts].think.window.prune(session));
  }

  /** Makes a compaction of a text that you wrote, or changed. @throws PerdureError `bad_state` as {@link Think.compact} */
  async applyCompaction(draft: AppliedCompaction & OfSession): Promise<CompactionInfo> {
    const { session = this.session.id, ...text } = draft;
    return this[parts].stored(await this[parts].think.window.apply(session, text));
  }

  /**
   * Takes back the compaction in effect: the model reads the messages again, with all that was said since.
   * @throws PerdureError `not_found`; `bad_state` when it is not in effect, or a turn is running; `limit`, with the tokens too
   * many.
   */
  async undoCompaction(id: string, { session }: OfSession = {}): Promise<CompactionInfo> {
    return this[parts].stored(await this[parts].think.window.undo(id, session));
  }

  /** The compactions of a session, newest first, with those that came to nothing. */
  listCompactions({ session = this.session.id, limit = LISTED }: { readonly limit?: number } & OfSession = {}) {
    return this[parts].think.window.list(session, limit);
  }

  /** What fills the model's window: of the last request, or of the next one if none was made since the agent woke. */
  contextReport({ session = this.session.id }: OfSession = {}): Promise<ContextReport> {
    return this[parts].think.window.report(session);
  }

  /** Where files may be loaded from for models that do not load them. Default: public addresses, after name resolution. */
  fileDownloads: FileDownloadOptions = {};

  // Submissions

  /** Accepts a text or messages for a later turn, once per key, and returns as soon as that is stored. */
  submitMessages(messages: MessageInput, options: submissions.SubmitOptions = {}): Promise<submissions.SubmitResult> {
    return turns.submit(this[parts].chat, messages, options);
  }
  inspectSubmission(submissionId: string): submissions.Submission | undefined {
    return submissions.inspectSubmission(this[parts].chat.chat, submissionId);
  }
  listSubmissions(filter?: Parameters<typeof submissions.listSubmissions>[1]): submissions.Submission[] {
    return submissions.listSubmissions(this[parts].chat.chat, filter);
  }
  cancelSubmission(submissionId: string, reason?: string): boolean {
    return submissions.cancelSubmission(this[parts].chat.chat, submissionId, reason);
  }
  deleteSubmission(submissionId: string): boolean {
    return submissions.deleteSubmission(this[parts].chat.chat, submissionId);
  }
  deleteSubmissions(filter: Parameters<typeof submissions.deleteSubmissions>[1]): number {
    return submissions.deleteSubmissions(this[parts].chat.chat, filter);
  }

  /** Messages that were accepted and have not started. */
  listInbox(): inbox.InboxItem[] {
    return inbox.listInbox(this[parts].chat.chat);
  }
  editInbox(requestId: string, content: string | readonly unknown[]): "edited" | inbox.NotWaiting {
    return inbox.editInbox(this[parts].chat.chat, requestId, content);
  }
  moveInbox(requestId: string, before: string | null): "moved" | inbox.NotWaiting {
    return inbox.moveInbox(this[parts].chat.chat, requestId, before);
  }
  withdrawInbox(requestId: string): inbox.Withdrawal {
    return inbox.withdrawInbox(this[parts].chat.chat, requestId);
  }

  /** Which model call read a message that was taken into a running turn. */
  steerReceipt(requestId: string): SteerReceipt | undefined {
    return readReceipt(this[parts].chat.chat, requestId);
  }

  // Files

  /**
   * The agent's files: stored with it, and on hand in every turn as tools. Replace it to keep large files elsewhere ({@link
   * Think.createWorkspace}), to use a folder of the machine, or the files of a parent.
   */
  workspace: WorkspaceFiles;
  /** How the model is given files; `false`: not at all. */
  workspaceTools: Omit<WorkspaceToolsOptions, "bash"> | boolean = {};
  /** Whether there is a tool `bash` beside them, and how it runs commands. It needs the package `just-bash`. */
  workspaceBash: boolean | BashToolOptions = true;

  /** What file tools work on; `null`: there are none. Asked for every turn. Default: {@link Think.workspace}. */
  getWorkspace(): WorkspaceLike | null {
    return this.workspace;
  }

  /** A workspace in this agent's store with settings of your own: `override workspace = this.createWorkspace({ … })`. */
  protected createWorkspace(options: Omit<WorkspaceOptions, "host"> = {}): Workspace {
    return new Workspace({ ...options, host: this[parts].host });
  }

  /** What children may do with this agent's files; `false`: nothing. See {@link Think.parentWorkspace}. */
  shareWorkspace: WorkspaceAccess | false = false;

  /** Does on the files what a child asks for. @throws PerdureError `not_allowed`, `read_only`, and as the workspace does */
  async callWorkspace(operation: string, args: readonly unknown[]): Promise<unknown> {
    const workspace = this.getWorkspace();
    if (this.shareWorkspace !== false && workspace !== null)
      return callWorkspace(workspace, operation, args, this.shareWorkspace);
    throw new PerdureError(
      "not_allowed",
      `${this.constructor.name} shares no files. Set shareWorkspace = "read-write".`,
    );
  }

  /** The files of the parent, for a child that works on them: `override workspace = this.parentWorkspace(Parent)`. */
  protected parentWorkspace(cls: HostedAgentClass<Think<object>>): WorkspaceFiles {
    return sharedWorkspace((operation, args) => this.parentAgent(cls).callWorkspace(operation, args));
  }

  /**
   * Restores all files as at a message: before a question was answered, after an answer. Undo: `workspace.restore(undo)`. @throws
   * PerdureError `not_found`; `bad_state` when the files are not in the agent's own store
   */
  async restoreFiles(messageId: string): Promise<RestoreResult> {
    const result = this[parts].think.points.restore(messageId);
    await this[parts].host.durable();
    return result;
  }

  /** What changed in the files between two messages, or since one. @throws as {@link Think.restoreFiles} */
  diffFiles(from: string, to?: string): Promise<PointChange[]> {
    return this[parts].think.points.diff(from, to);
  }

  /** With `restoreFiles`, the files are made what they were there. Without, they stay what they are. */
  override switchBranch(
    messageId: string,
    { session, restoreFiles = false }: { readonly session?: string; readonly restoreFiles?: boolean } = {},
  ): string {
    const { host } = this[parts];
    const go = () => super.switchBranch(messageId, session === undefined ? {} : { session });
    if (!restoreFiles) return go();
    // Together or not at all.
    return host.tx(() => {
      const leaf = go();
      this[parts].think.points.restore(leaf);
      return leaf;
    });
  }

  // Skills

  /** Where skills come from; of equal names the first counts. Asked every turn. A source that fails is skipped and reported. */
  getSkills(): Maybe<readonly SkillSource[]> {
    return [];
  }

  /** What runs the scripts of skills (`skills.runner({ … })`); `null`: skills are instructions and files only. */
  getSkillScriptRunner(): Maybe<SkillScriptRunner | null> {
    return null;
  }

  // Extensions

  /** What extensions run in; `true`: the sandbox that all agents of the process share. Without it there are none. */
  extensionLoader: ExtensionManagerOptions["loader"] | undefined = undefined;

  /** Extensions that the app brings, in the order in which their hooks are told. Asked for every turn. */
  getExtensions(): Maybe<readonly ExtensionDeclaration[]> {
    return [];
  }

  /** The agent's extensions. @throws PerdureError `bad_config` without {@link Think.extensionLoader} */
  get extensions(): ExtensionManager {
    const { extensions } = this[parts].think.kit;
    if (extensions !== undefined) return extensions;
    throw new PerdureError("bad_config", `${this.constructor.name} loads no extensions. Set extensionLoader = true.`);
  }

  // Tools in the background

  /** How many tool calls may go on without their turns at one time. See `durableTool(…, { background })`. */
  maxBackgroundCalls = DEFAULT_MAX_BACKGROUND;

  /** Tool calls that go on without their turns, the oldest first; of one session and its views, if it is named. */
  listBackgroundCalls({ session }: { readonly session?: string } = {}): BackgroundCall[] {
    return this[parts].think.background.list(session);
  }

  /** Stops such a call for good; the model is told. False when none of that id goes on. */
  async stopBackgroundCall(
    toolCallId: string,
    options: { readonly session?: string; readonly reason?: string } = {},
  ): Promise<boolean> {
    const stopped = this[parts].think.background.stop(toolCallId, options);
    await this[parts].host.durable();
    return stopped;
  }

  // MCP servers

  /** Whether the tools of the agent's MCP servers are on hand in its turns. */
  includeMcpTools = true;
  /** Whether turns wait for MCP servers that are being connected, and for how long (default 10 s). */
  waitForMcpConnections: boolean | { readonly timeout?: number } = false;

  // Actions

  /** Milliseconds after which a cut action with a key of its own may begin anew. `false`: never. */
  actionLedgerPendingRetryLeaseMs: number | boolean = RECLAIM_AFTER_MS;

  /** Tools for work that must not happen twice, by name; see `action()`. Asked for every turn. */
  getActions(): Maybe<Record<string, AnyAction>> {
    return {};
  }

  /** What the actions of a turn may do: everything (`true`), nothing, or what is named. If it throws, the turn ends. */
  authorizeTurn(_context: step.TurnContext): Maybe<ActionAuthorization> {
    return true;
  }

  /** Decides on one call of an action; nothing: what the turn was granted decides. A throw is a no. */
  authorizeAction(_context: ActionAuthorizationContext): Maybe<ActionAuthorization | void> {}

  /** The newest actions: what was done under which key, and what was begun and not finished. */
  listActions(limit?: number): ActionRecord[] {
    return this[parts].think.actionLedger.list(limit);
  }

  /** Forgets an action, so that its key may be used again. False when there is none. */
  forgetAction(key: string): boolean {
    return this[parts].think.actionLedger.forget(key);
  }

  /** Says yes to a call that waits, from wherever it is known: `pendingApprovals()` lists them. False when it does not wait. */
  approveExecution(toolCallId: string, options: ExecutionAnswer = {}): boolean {
    return this.answerApproval(toolCallId, true, options);
  }

  /** Says no to a call that waits; the model is told the reason. False when it does not wait. */
  rejectExecution(toolCallId: string, reason?: string, options: ExecutionAnswer = {}): boolean {
    return this.answerApproval(toolCallId, false, { ...options, ...(reason !== undefined && { reason }) });
  }

  // Settings that the agent keeps for itself

  /** Stores private settings. For what clients should see, use `state`. @throws PerdureError `bad_input` */
  configure<Config>(config: Config): Promise<void> {
    return this[parts].think.configure(config);
  }

  /** What {@link Think.configure} stored last; undefined when nothing was. */
  getConfig<Config = unknown>(): Config | undefined {
    return this[parts].think.config as Config | undefined;
  }

  /** The whole output of a tool that was cut for the model, by the name in its preview. */
  async readToolOutput(name: string): Promise<string | undefined> {
    const bytes = await this[parts].host.blobs.get(name);
    return bytes && new TextDecoder().decode(bytes);
  }
}
