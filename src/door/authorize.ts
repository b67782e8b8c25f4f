import { errorText, PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { AgentHost, AgentStep } from "../port.ts";
import type { ParsedFrame } from "../wire/parse.ts";
import type { SessionOp, SessionOpName } from "../wire/session-frames.ts";
import { yesOrNo } from "../base/yes-or-no.ts";
import type { Connection } from "./connection.ts";

/*
 * Who may do what
 *
 * All that somebody outside can ask of an agent is an act. Every way in (frames, HTTP, children) names its act and asks here
 * first. `docs/security.md` has the same table for people; a test holds the two together.
 *
 * Not decided here: who somebody is (the host's hooks, `host/route.ts`; a messenger's `allow` list), who may answer a question
 * for approval (`turn/intake/judge-answer.ts`), and what a model may do in somebody's name (`tool/action-authorize.ts`).
 */

/** Somebody for whom something runs, and who may only read as long as this says so. */
export interface Viewer {
  readonly isReadonly: boolean;
}

/**
 * What an act does. `read` changes nothing. `write` changes or costs something. `call` runs app code. Who may only read is
 * refused a `write`, and each write inside a `call`.
 */
export type ActEffect = "read" | "write" | "call";

const SESSION_ACTS: Readonly<Record<SessionOpName, ActEffect>> = {
  sessions: "read",
  attach: "read",
  branches: "read",
  search: "read",
  report: "read",
  create: "write",
  rename: "write",
  delete: "write",
  clear: "write",
  fork: "write",
  // A place of its own is a row as well.
  switchBranch: "write",
  // Also a preview: it costs a model call.
  compact: "write",
  applyCompaction: "write",
  undoCompaction: "write",
  pin: "write",
  unpin: "write",
  title: "write",
};

const OTHER_ACTS = {
  /** Opens a socket, and is sent what the agent sends to its clients: its state, the conversation of the session. */
  connect: "read",
  /** Calls a method that is callable. */
  call: "call",
  /** A frame that is none of the framework's, for `onMessage`. */
  message: "call",
  /** A frame of the framework's that cannot be understood. It does nothing. */
  malformed: "read",
  /** A request that is none of the framework's, for `onRequest`. */
  request: "call",
  /** Goes through this agent to a child of it. */
  "child.reach": "read",
  "state.set": "write",
  /** The conversation, and what runs in it. */
  "chat.read": "read",
  /** The stream of a turn. */
  "chat.follow": "read",
  "chat.submit": "write",
  /** Puts messages into the conversation, without a turn. */
  "chat.push": "write",
  "chat.cancel": "write",
  "chat.clear": "write",
  /** Gives the result of a tool that runs in the client. */
  "tool.answer": "write",
  /** Says yes or no to a call that waits for a person. */
  "tool.approve": "write",
  /** Tool calls that go on without their turns. */
  "background.read": "read",
  "background.stop": "write",
  /** What waits for its turn. */
  "inbox.read": "read",
  "inbox.edit": "write",
  "inbox.withdraw": "write",
  /** What was too large for a message, by the hash of its bytes. */
  "file.read": "read",
  "rows.follow": "read",
  "rows.unfollow": "read",
  "rows.write": "write",
  /** A network delivers what people said there. By itself that changes nothing: what it brings is judged one by one. */
  "messenger.receive": "read",
  /** Comes back from signing in at an MCP server. */
  "mcp.signIn": "write",
} as const satisfies Readonly<Record<string, ActEffect>>;

/** What somebody outside can ask of an agent. */
export type Act = keyof typeof OTHER_ACTS | `session.${SessionOpName}`;

/** All acts, with what each does. */
export const ACTS = {
  ...OTHER_ACTS,
  ...Object.fromEntries(Object.entries(SESSION_ACTS).map(([op, effect]) => [`session.${op}`, effect])),
} as Readonly<Record<Act, ActEffect>>;

/** What somebody may do who has come in by the door of operators. Each role may do what those before it may. */
export type AdminRole = "read" | "operate" | "erase";

const ADMIN_ROLES: readonly AdminRole[] = ["read", "operate", "erase"];

/** What operators can ask of a host, and the role that it takes. Agents are not asked: operators may do everything. */
export const ADMIN_ACTS = {
  /** What the host is and how it is doing. */
  "admin.host": "read",
  /** Which agents there are, and how they are doing. */
  "admin.agents": "read",
  /** One agent: its sessions, turns and children, without what was said. */
  "admin.agent": "read",
  /** What was said. */
  "admin.messages": "read",
  /** The turns of one, with their model calls and tool calls. */
  "admin.turns": "read",
  /** What a model was sent. */
  "admin.request": "read",
  /** A session with all of that, as a file. */
  "admin.tape": "read",
  /** What agents report, as it happens. */
  "admin.events": "read",
  /** Calls that wait for a person. */
  "admin.approvals": "read",
  "admin.cost": "read",
  /** What operators did. */
  "admin.audit": "read",
  /** Whether rows and files are whole. */
  "admin.check": "read",
  /** Talks to an agent. The agent's own `authorize` is asked as well: what is said there is said in a person's name. */
  "admin.chat": "operate",
  /** What a model would be sent now: this wakes the agent and runs its code. */
  "admin.code": "operate",
  /** Says yes or no to a call that waits. */
  "admin.answer": "operate",
  /** Stops a turn for good. */
  "admin.stop": "operate",
  /** Deletes an agent with all below it. */
  "admin.erase": "erase",
  /** Copies all that a host holds, whole and with nothing hidden: so it takes the role that may do everything. */
  "admin.backup": "erase",
  /** The same of one agent. */
  "admin.copy": "erase",
  /** Takes in an agent from a copy. */
  "admin.adopt": "erase",
  /** Brings an agent's rows up to date, which no older version reads then. */
  "admin.migrate": "operate",
} as const satisfies Readonly<Record<string, AdminRole>>;

/** What operators can ask of a host. */
export type AdminAct = keyof typeof ADMIN_ACTS;

/** Whether a role is enough for an act. */
export function authorizeAdmin(role: AdminRole, act: AdminAct): Refusal {
  const needed: AdminRole = ADMIN_ACTS[act];
  if (ADMIN_ROLES.indexOf(role) >= ADMIN_ROLES.indexOf(needed)) return undefined;
  return new PerdureError("not_allowed", `This takes the role "${needed}"; the token given has "${role}".`);
}

/** Whoever sent an HTTP request. */
export interface RequestCaller extends Viewer {
  /** As a connection has one; requests have none, so it is empty. */
  readonly id: "";
  /** The URL of the request. */
  readonly uri: string;
  /** Who it is, as the app established it. */
  readonly identity: Identity | undefined;
  readonly request: Request;
}

/** Whoever asks for something: a connection, or the sender of a request. */
export type Caller = Connection | RequestCaller;

/** What an act is about, as far as that is known. */
export interface ActTarget {
  readonly effect: ActEffect;
  readonly caller: Caller;
  /** The conversation. */
  readonly session?: string;
  /** Of `call`: the method. */
  readonly method?: string;
  /** The request for a turn, by the id that its client gave it. */
  readonly requestId?: string;
  readonly toolCallId?: string;
  /** Of acts on sessions: what is asked, with its arguments. */
  readonly op?: SessionOp;
  readonly collections?: readonly string[];
  /** The hash of a file. */
  readonly file?: string;
  readonly child?: AgentStep;
}

/** An act, and what it is about. */
export interface Ask {
  readonly act: Act;
  readonly on?: Omit<ActTarget, "effect" | "caller">;
}

/** Why not; undefined: it may be done. */
export type Refusal = PerdureError | undefined;

/** What decides about acts beside the rules of this file. */
export interface Judge {
  readonly host: Pick<AgentHost, "emit">;
  /** The rules of the agent's own parts, such as who may be in a session. */
  consents(caller: Caller, ask: Ask): Refusal | Promise<Refusal>;
  /** The app's rule, if it has one. May throw, and return anything. */
  readonly app: ((identity: Identity | undefined, act: Act, on: ActTarget) => unknown) | undefined;
  sessionOf(caller: Caller): string | undefined;
  /** The app has made a mistake: for the log, and for `onError`. */
  readonly failed: (error: unknown, stage: string) => void;
}

/**
 * Decides whether somebody outside may do something. A promise only if the app's hook returns one, so that frames stay in order
 * without waiting. A refusal is told in an event. Never throws or rejects.
 */
export function authorize(judge: Judge, caller: Caller, ask: Ask): Refusal | Promise<Refusal> {
  const tell = (refusal: Refusal) => refusal && tellRefused(judge, caller, ask, refusal);
  const decided = decide(judge, caller, ask);
  return decided instanceof Promise ? decided.then(tell) : tell(decided);
}

/** A slow yes is judged as things are when it comes: refused if read-only by then, decided anew after a move. */
function decide(judge: Judge, caller: Caller, ask: Ask): Refusal | Promise<Refusal> {
  if (ACTS[ask.act] === "write" && caller.isReadonly) return readOnlyError(caller);
  // A chat is not made for a question that nobody has an answer to.
  const isAsked = judge.app !== undefined || ask.on?.op !== undefined;
  const place = () => (isAsked ? judge.sessionOf(caller) : undefined);
  const before = place();
  const next = (consent: Refusal) => consent ?? askApp(judge, caller, ask);
  const consent = judge.consents(caller, ask);
  const said = consent instanceof Promise ? consent.then(next) : next(consent);
  if (!(said instanceof Promise)) return said;
  return said.then((refusal) => {
    if (refusal !== undefined) return refusal;
    if (place() !== before) return decide(judge, caller, ask);
    return ACTS[ask.act] === "write" && caller.isReadonly ? readOnlyError(caller) : undefined;
  });
}

function askApp(judge: Judge, caller: Caller, ask: Ask): Refusal | Promise<Refusal> {
  const { app } = judge;
  const { act, on } = ask;
  // Nothing is done for what is malformed, so there is nothing to decide.
  if (app === undefined || act === "malformed") return undefined;
  const session = on?.session ?? judge.sessionOf(caller);
  const target = { ...on, effect: ACTS[act], caller, ...(session !== undefined && { session }) };
  return askHook(() => app(caller.identity, act, target), "authorize()", ask, judge.failed);
}

/**
 * A hook's answer, which may be slow. Only true is a yes; a PerdureError is a no in its own words. Anything but false and that is
 * a mistake of the app, and a no: its people are told, its callers are not.
 */
export function askHook(
  hook: () => unknown,
  name: string,
  ask: Ask,
  failed: Judge["failed"],
): Refusal | Promise<Refusal> {
  const fail = (thrown: unknown): PerdureError => {
    if (PerdureError.is(thrown) && thrown.code !== "bad_config") return thrown;
    failed(thrown, name);
    if (PerdureError.is(thrown)) return notAllowed(ask);
    return new PerdureError("call_failed", "Something went wrong on the server.");
  };
  const read = (said: unknown): Refusal => {
    try {
      return yesOrNo(said, name) ? undefined : notAllowed(ask);
    } catch (thrown) {
      return fail(thrown);
    }
  };
  try {
    const said = hook();
    return said instanceof Promise ? said.then(read, fail) : read(said);
  } catch (thrown) {
    return fail(thrown);
  }
}

/** Tells that something was not done, in an event. */
export function tellRefused(
  { host }: Pick<Judge, "host">,
  caller: Caller,
  { act, on }: Ask,
  error: PerdureError,
): PerdureError {
  // That something is not there is an answer, and no refusal.
  if (error.code === "not_found") return error;
  host.emit("act:refused", {
    ...{ act, code: error.code, reason: errorText(error) },
    ...(caller.identity !== undefined && { by: caller.identity.id }),
    ...(caller.id !== "" && { connectionId: caller.id }),
    ...(on?.session !== undefined && { session: on.session }),
  });
  return error;
}

/** What a read-only person is told. The public clients know the words for connections. */
export function readOnlyError(who: Viewer): PerdureError {
  const text = "request" in who ? "Whoever sent this request may only read" : "Connection is readonly";
  return new PerdureError("read_only", text);
}

/** What somebody is told who may not. */
function notAllowed({ act, on }: Ask): PerdureError {
  return new PerdureError("not_allowed", `"${on?.op?.op ?? act}" is not allowed here.`);
}

type FrameActs = {
  readonly [KIND in ParsedFrame["kind"]]: (frame: Extract<ParsedFrame, { readonly kind: KIND }>) => Ask;
};

/** Which act a frame is. A kind of frame without a line here does not compile. */
export const FRAME_ACTS: FrameActs = {
  rpc: ({ method }) => ({ act: "call", on: { method } }),
  "rpc-refused": () => ({ act: "malformed" }),
  state: () => ({ act: "state.set" }),
  "state-refused": () => ({ act: "malformed" }),
  other: () => ({ act: "message" }),
  refused: () => ({ act: "malformed" }),
  "chat-request": ({ id }) => ({ act: "chat.submit", on: { requestId: id } }),
  "chat-long": ({ id }) => ({ act: "chat.submit", on: { requestId: id } }),
  "chat-refused": () => ({ act: "malformed" }),
  "chat-messages": () => ({ act: "chat.push" }),
  "transcript-long": () => ({ act: "chat.push" }),
  "chat-clear": () => ({ act: "chat.clear" }),
  "chat-cancel": ({ id }) => ({ act: "chat.cancel", on: { requestId: id } }),
  "chat-older": () => ({ act: "chat.read" }),
  "resume-request": () => ({ act: "chat.follow" }),
  "resume-ack": ({ id }) => ({ act: "chat.follow", on: { requestId: id } }),
  "tool-result": ({ toolCallId }) => ({ act: "tool.answer", on: { toolCallId } }),
  "tool-approval": ({ toolCallId }) => ({ act: "tool.approve", on: { toolCallId } }),
  "tool-stop": ({ toolCallId }) => ({ act: "background.stop", on: { toolCallId } }),
  session: ({ ask }) => ({ act: `session.${ask.op}`, on: { op: ask } }),
  "session-refused": () => ({ act: "malformed" }),
  "rows-subscribe": ({ since }) => ({ act: "rows.follow", on: { collections: [...since.keys()] } }),
  "rows-unsubscribe": () => ({ act: "rows.unfollow" }),
  "rows-write": ({ write }) => ({
    act: "rows.write",
    on: { collections: [...new Set(write.changes.map(({ table }) => table))] },
  }),
  "rows-refused": () => ({ act: "malformed" }),
};

/** The act of a frame. */
export function actOf(frame: ParsedFrame): Ask {
  return (FRAME_ACTS[frame.kind] as (frame: ParsedFrame) => Ask)(frame);
}
