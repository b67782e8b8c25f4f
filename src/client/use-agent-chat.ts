import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { UIMessage } from "../message/types.ts";
import { AgentChat } from "./agent-chat.ts";
import type { AgentChatOptions } from "./chat-feed.ts";
import type { AgentClient } from "./agent-client.ts";
import { readMessages } from "./agent-messages.ts";
import type { ChatConnection } from "./chat-frames.ts";
import type { ChatInput } from "./chat-input.ts";
import type { ChatHandlers, ChatSnapshot, RequestSettings, SendOptions } from "./chat-types.ts";
import type { AgentConnectionError } from "./connection-error.ts";
import { HISTORY_PAGES, PAGE_MESSAGES, SESSION_PARAM } from "../wire/history.ts";
import { BranchMemory } from "./branch-memory.ts";
import { throttled } from "./throttle.ts";
import type { ToolOutput } from "./tool-runner.ts";

const THROTTLE_MS = 50;

interface Load {
  readonly promise: Promise<void>;
  result: { readonly messages: UIMessage[] } | { readonly error: unknown } | undefined;
}

/** Loads that components wait for. React forgets a waiting component, so loads are kept here until a chat has the messages. */
const loads = new Map<string, Load>();

/** How long a load that failed is not tried again. */
const FAILURE_MS = 500;

/** The part of an `AgentClient` that the hook needs; its types do not matter here. */
export type ChatAgent = Pick<
  AgentClient<unknown, never>,
  keyof ChatConnection | "agent" | "name" | "history" | "fetch" | "close"
>;

/** Options of {@link useAgentChat}. Callbacks may change with every render. */
export interface UseAgentChatOptions<M extends UIMessage = UIMessage>
  extends ChatHandlers<M>, RequestSettings<M>, Omit<AgentChatOptions, "messages" | "loaded"> {
  /** What `useAgent` returned. Two hooks on one agent show the same chat. */
  readonly agent: ChatAgent;
  readonly id?: string;
  /** To begin with, when `getInitialMessages` is `null`. */
  readonly messages?: readonly M[];
  /** Loads the conversation; `null`: do not. Default: asks the agent. The component is suspended meanwhile. */
  readonly getInitialMessages?: null | ((where: { agent: string; name: string; url: string }) => Promise<M[]>);
  /** For the request that loads the conversation. */
  readonly headers?: Record<string, string> | Headers;
  readonly credentials?: RequestCredentials;
  /** Whether the turn goes on by itself once calls are answered. Default true. */
  readonly autoContinueAfterToolResult?: boolean;
  /** Whether leaving the page stops the turn. Default false. */
  readonly cancelOnClientAbort?: boolean;
  /** Whether `setMessages` also tells the agent. Default true. */
  readonly syncMessagesToServer?: boolean;
  /** @deprecated As of the public hook, and always so: `tools` that can be run here are run. */
  readonly experimental_automaticToolResolution?: boolean;
  /** How often a growing answer is drawn at most, in milliseconds; `false`: every chunk. Default 50. */
  readonly throttle?: number | false;
}

/** What can be done with sessions and branches, as of {@link AgentChat}. */
type SessionActions = Pick<AgentChat, (typeof SESSION_ACTIONS)[number]>;

const SESSION_ACTIONS = [
  ...(["listBranches", "switchBranch", "previousBranch", "nextBranch", "fork", "switchTo"] as const),
  ...(["search", "report", "compact", "applyCompaction", "undoCompaction", "pin", "unpin", "title"] as const),
];

/** What {@link useAgentChat} returns. */
export interface UseAgentChat<M extends UIMessage = UIMessage> extends Omit<ChatSnapshot, "messages">, SessionActions {
  readonly id: string;
  readonly messages: M[];
  readonly sendMessage: (input?: ChatInput<M>, options?: SendOptions) => Promise<void>;
  readonly regenerate: (options?: SendOptions & { readonly messageId?: string }) => Promise<void>;
  readonly stop: () => Promise<void>;
  /** Stops a call of `backgroundCalls`; the model is told. */
  readonly stopCall: (toolCallId: string) => void;
  readonly clearHistory: () => void;
  readonly setMessages: (next: readonly M[] | ((messages: M[]) => readonly M[])) => void;
  readonly addToolOutput: (output: ToolOutput) => void;
  /** The older name of `addToolOutput`. */
  readonly addToolResult: (output: ToolOutput & { readonly tool?: string }) => void;
  /** A question that no message here has is not answered: `error` is PerdureError `not_found` then. */
  readonly addToolApprovalResponse: (answer: { readonly id: string; readonly approved: boolean }) => void;
  /** Puts what was said before in front of `messages`. */
  readonly loadOlder: () => Promise<void>;
  readonly resumeStream: () => Promise<void>;
  readonly clearError: () => void;
  readonly connectionError: AgentConnectionError | null;
}

const chats = new WeakMap<ChatAgent, AgentChat>();

/** A chat with an agent: its messages, what is under way, and what can be done. */
export function useAgentChat<_State = unknown, M extends UIMessage = UIMessage>(
  given: UseAgentChatOptions<M>,
): UseAgentChat<M> {
  // The agent stores what the app put there; its parts are the app's types. In here they are those of any message.
  const options = given as unknown as UseAgentChatOptions;
  const { agent, throttle = THROTTLE_MS } = options;
  const key = loadKey(options);
  const chat = chats.get(agent) ?? makeChat(options, key);
  const latest = useRef(options);
  useEffect(() => {
    latest.current = options;
  });
  useEffect(() => void loads.delete(key), [key]);

  const subscribe = useCallback(
    (listener: () => void) => {
      const [draw, stop] = throttled(listener, throttle);
      const unsubscribe = chat.subscribe(draw, () => handlersOf(chat, latest.current));
      return () => {
        stop();
        unsubscribe();
        if (latest.current.cancelOnClientAbort === true) void chat.stopOwn();
      };
    },
    [chat, throttle],
  );
  const getSnapshot = useCallback(() => chat.getSnapshot(), [chat]);
  const wanted = useRef(options.session);
  useEffect(() => {
    if (wanted.current === options.session) return;
    wanted.current = options.session;
    chat.goTo(options.session ?? null);
  }, [chat, options.session]);
  const snapshot = useSyncExternalStore(subscribe, getSnapshot, getSnapshot);

  const actions = useMemo(() => {
    const goesOn = () => latest.current.autoContinueAfterToolResult !== false;
    return {
      sendMessage: (input?: ChatInput<M>, send?: SendOptions) =>
        chat.sendMessage(input as ChatInput, send, latest.current),
      regenerate: (ask?: SendOptions & { readonly messageId?: string }) => chat.regenerate(ask, latest.current),
      setMessages: (next: readonly M[] | ((messages: M[]) => readonly M[])) =>
        chat.setMessages(next as readonly UIMessage[], latest.current.syncMessagesToServer !== false),
      addToolOutput: (output: ToolOutput) => chat.addToolOutput(output, goesOn(), latest.current),
      addToolResult: ({ tool, ...output }: ToolOutput & { readonly tool?: string }) =>
        chat.addToolOutput({ ...(tool !== undefined && { toolName: tool }), ...output }, goesOn(), latest.current),
      addToolApprovalResponse: (answer: { readonly id: string; readonly approved: boolean }) =>
        chat.addToolApprovalResponse(answer, goesOn()),
      resumeStream: async () => chat.resumeStream(),
      ...boundTo(chat, "stop", "stopCall", "clearHistory", "loadOlder", "clearError", ...SESSION_ACTIONS),
    };
  }, [chat]);
  const { connectionError, name } = agent;
  return { ...snapshot, messages: snapshot.messages as M[], ...actions, id: options.id ?? name, connectionError };
}

/** Methods of an object, to be called without it. */
export function boundTo<T, K extends keyof T>(object: T, ...names: K[]): Pick<T, K> {
  const bound = names.map((name) => [name, (object[name] as () => unknown).bind(object)] as const);
  return Object.fromEntries(bound) as unknown as Pick<T, K>;
}

function makeChat(options: UseAgentChatOptions, key: string): AgentChat {
  const { agent, resume, session, rememberBranch } = options;
  const messages = initialMessages(options, key);
  const where = { ...(session !== undefined && { session }), ...(rememberBranch !== undefined && { rememberBranch }) };
  const chat = new AgentChat(agent, { messages, loaded: key !== "", resume, ...where });
  chats.set(agent, chat);
  return chat;
}

function initialMessages(options: UseAgentChatOptions, key: string): readonly UIMessage[] {
  const { agent, getInitialMessages, headers, credentials } = options;
  // On a server, what is loaded for one visitor must not be kept for the next.
  if (getInitialMessages === null || typeof document === "undefined") return options.messages ?? [];
  return loadMessages(key, async () => {
    if (getInitialMessages !== undefined) {
      return getInitialMessages({ agent: agent.agent, name: agent.name, url: agent.getHttpUrl() });
    }
    const init = { ...(headers !== undefined && { headers }), ...(credentials !== undefined && { credentials }) };
    const query = new URLSearchParams();
    const session = firstSession(options);
    if (agent.history === HISTORY_PAGES) query.set("last", String(PAGE_MESSAGES));
    if (session !== undefined) query.set(SESSION_PARAM, session);
    return readMessages(await agent.fetch(`get-messages?${query}`, init));
  });
}

/** Where the chat begins. */
function firstSession({ agent, session, rememberBranch }: UseAgentChatOptions): string | undefined {
  return new BranchMemory(rememberBranch, () => agent.getHttpUrl()).read(session) ?? session ?? agent.session;
}

function loadKey(options: UseAgentChatOptions): string {
  const { agent, getInitialMessages } = options;
  if (getInitialMessages === null || typeof document === "undefined") return "";
  return `${getInitialMessages === undefined ? "" : "own "}${agent.getHttpUrl()} ${firstSession(options) ?? ""}`;
}

/** The options as the chat sees them: tools that answer do so by the options of their own hook. */
function handlersOf(chat: AgentChat, options: UseAgentChatOptions): ChatHandlers {
  const { onToolCall, tools, autoContinueAfterToolResult } = options;
  const addToolOutput = (output: ToolOutput) =>
    chat.addToolOutput(output, autoContinueAfterToolResult !== false, options);
  return { ...options, tools, onToolCall: onToolCall && (({ toolCall }) => onToolCall({ toolCall, addToolOutput })) };
}

/** The messages of `key`, loaded once for all. Throws the promise that React waits for, later what the load failed with. */
function loadMessages(key: string, load: () => Promise<UIMessage[]>): UIMessage[] {
  let entry = loads.get(key);
  if (entry === undefined) {
    const made: Load = {
      promise: load().then(
        (messages) => void (made.result = { messages }),
        (error: unknown) => {
          made.result = { error };
          // Drawn again at once, it must fail again; later, whoever draws it anew wants another try.
          setTimeout(() => loads.get(key) === made && loads.delete(key), FAILURE_MS);
        },
      ),
      result: undefined,
    };
    entry = made;
    loads.set(key, entry);
  }
  const { result, promise } = entry;
  // How a component tells React to wait.
  if (result === undefined) throw promise;
  if ("messages" in result) return result.messages;
  throw result.error;
}
