import type { Identity } from "../base/identity.ts";
import { isRecord } from "../base/json.ts";
import type { AgentHost } from "../port.ts";
import type { Messengers } from "../messenger/define.ts";
import type { AgentMessengers, MessengerAgent } from "../messenger/messengers.ts";
import type { MediaMover } from "../media/media.ts";
import type { WorkspaceLike } from "../toolbox/workspace/types.ts";
import { hasAnyDelivery } from "../store/delivery.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import type { Work } from "../work/work.ts";
import { type ChannelHooks, checkChannels } from "../turn/step/channels.ts";
import { authorize, type RequestCaller } from "../door/authorize.ts";
import { runFor } from "./current.ts";
import type { AgentPart, OwnAgent, parts } from "./part.ts";
import { judgeOf, type Judging } from "./authority.ts";
import type { AgentParts } from "./agent-parts.ts";
import { leafOf } from "../wire/agent-path.ts";
import { type Route, type RouteTable, routeTable } from "../door/routes.ts";

/** What an agent says of its messengers, and of who may do what. */
interface MessengerPolicy extends Judging, ChannelHooks {
  readonly [parts]: OwnAgent;
  getMessengers(): Messengers | Promise<Messengers>;
  mayOnlyRead(identity: Identity | undefined): boolean;
  /** Of agents that have files. */
  getWorkspace?(): Pick<WorkspaceLike, "readFileBytes"> | null;
}

/** Bodies of webhooks, read before anybody decides: the signature is over their bytes. */
const bodies = new WeakMap<Request, Uint8Array>();

/** Where networks deliver. What they bring is judged one by one, as acts of those who said it. */
export const MESSENGER_ROUTES: readonly Route<MessengerPart>[] = [
  {
    method: "POST",
    shape: "messengers/{messenger}/webhook",
    acts: ["messenger.receive"],
    reads: "bytes",
    matches: (part, _request, rest) => part.loaded?.findPath(rest) !== undefined,
    ask: async ({ request }) => {
      bodies.set(request, new Uint8Array(await request.arrayBuffer()));
      return { act: "messenger.receive" };
    },
    answer: async ({ request, rest }, part) => {
      const messenger = part.loaded?.findPath(rest);
      const body = bodies.get(request) ?? new Uint8Array();
      const received = messenger === undefined ? undefined : await part.loaded?.receive(messenger, request, body);
      return received ?? new Response("Not Found", { status: 404 });
    },
  },
];

/** Joins messengers to an agent. Loaded once a class declares some or something is to be delivered; else they cost nothing. */
export class MessengerPart implements AgentPart {
  readonly #agent: MessengerPolicy;
  readonly #base: MessengerPolicy;
  readonly #own: AgentParts<unknown>;
  readonly #chat: { readonly chat: Conversations; readonly media: MediaMover };
  #loading: Promise<AgentMessengers> | undefined;
  /** Once they are. */
  loaded: AgentMessengers | undefined;

  /** @param base whose rules and messengers are none: it is not asked */
  constructor(
    own: AgentParts<unknown>,
    agent: MessengerPolicy,
    base: MessengerPolicy,
    chat: { readonly chat: Conversations; readonly media: MediaMover },
  ) {
    this.#own = own;
    this.#agent = agent;
    this.#base = base;
    this.#chat = chat;
  }

  get #declares(): boolean {
    return this.#agent.getMessengers !== this.#base.getMessengers;
  }

  get work(): Work | undefined {
    return this.loaded;
  }

  get routes(): RouteTable | undefined {
    return this.loaded && routeTable(MESSENGER_ROUTES, this);
  }

  started(): void | Promise<void> {
    const { host } = this.#own;
    const declares = this.#declares;
    if (!declares && host.path.length === 1) this.#checkChannels([]);
    if (declares || (!host.blank && hasAnyDelivery(host)))
      return this.load().then((messengers) => messengers.started(declares));
  }

  #checkChannels(messengers: readonly string[]): void {
    if (this.#agent.configureChannels !== this.#base.configureChannels) checkChannels(this.#agent, messengers);
  }

  load(): Promise<AgentMessengers> {
    return (this.#loading ??= import("../messenger/messengers.ts").then(
      ({ AgentMessengers: Loaded }) => (this.loaded = new Loaded(this.#around())),
    ));
  }

  /** Why an answer cannot be delivered there; undefined: it can. */
  async whyNowhere(place: unknown): Promise<string | undefined> {
    const { channel, thread } = isRecord(place) ? place : {};
    if (typeof channel !== "string" || typeof thread !== "string" || thread === "")
      return "`deliverTo` must be { channel, thread }: the messenger's name, and the place there.";
    const messengers = await this.load();
    // Tasks are looked at before messengers are open.
    if (this.#declares) await messengers.define();
    if (await messengers.has(channel)) return undefined;
    return `\`deliverTo\` names "${channel}", and there is no such messenger: getMessengers() names those that there are.`;
  }

  /** A turn has ended, which may have to be told somewhere. */
  turnOver(): void {
    const { host } = this.#own;
    if (this.loaded !== undefined) this.loaded.look();
    else if (!host.blank && hasAnyDelivery(host))
      void host.keepAwake(this.load().then((messengers) => messengers.look()));
  }

  drain(): void {
    this.loaded?.drain();
  }

  halt(reason: unknown): void {
    this.loaded?.halt(reason);
  }

  left(): void {
    this.loaded?.halt(new Error("The life is over."));
  }

  #around(): MessengerAgent {
    const own = this.#own;
    const { host } = own;
    const judge = judgeOf(this.#agent, this.#base, own);
    const nobody = { agent: this.#agent, connection: undefined, request: undefined };
    return {
      host,
      chat: () => this.#chat.chat,
      media: () => this.#chat.media,
      workspaceFile: (path) =>
        runFor(host.context, nobody, undefined, async () => this.#agent.getWorkspace?.()?.readFileBytes(path)),
      renderer: (messenger) => {
        if (this.#agent.configureChannels === this.#base.configureChannels) return undefined;
        const render = this.#agent.configureChannels()[messenger]?.renderAttachment;
        return render && ((attachment) => runFor(host.context, nobody, undefined, () => render(attachment)));
      },
      messengers: async () => {
        const defined = await runFor(host.context, nobody, undefined, () => this.#agent.getMessengers());
        this.#checkChannels(Object.keys(defined));
        return defined;
      },
      authorize: async (identity, act, on) => {
        const caller = callerOf(host, identity, this.#agent.mayOnlyRead(identity));
        const refusal = await authorize(judge, caller, { act, on });
        // The rule itself has failed, and said neither yes nor no.
        if (refusal?.code === "call_failed") throw refusal;
        return refusal?.message;
      },
      classOf: (agentClass) =>
        agentClass === undefined ? leafOf(host.path).className : own.children.nameOf(agentClass),
      admit: (className, name) => own.children.admit({ className, name }),
      changed: () => own.rearm(),
      stopped: () => own.draining,
      failed: (error) => void own.failed(error, { stage: "messenger" }),
      alone: (work) => runFor(host.context, nobody, undefined, work),
    };
  }
}

/** Who said something at a messenger, as the rules see it: as if it had come by HTTP to the agent's own address. */
function callerOf(host: AgentHost, identity: Identity, isReadonly: boolean): RequestCaller {
  const uri = `http://messenger.invalid${host.address}`;
  return { id: "", uri, identity, request: new Request(uri, { method: "POST" }), isReadonly };
}
