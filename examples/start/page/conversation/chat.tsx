import "./dock.css";
import { type AgentClient, useAgentChat } from "perdure/react";
import { type ReactNode, useCallback, useMemo } from "react";
import { Composer } from "../composer/composer.tsx";
import { IconButton } from "../control/icon-button.tsx";
import { type FilePart, filesOf } from "../message/parts.ts";
import type { MessageHandlers } from "../message/message.tsx";
import { Speaker } from "../message/speaker.ts";
import { goTo, pathOf, type Step } from "../route/route.ts";
import { UnboundRuns } from "../run/run-calls.tsx";
import { RunsProvider } from "../run/runs.tsx";
import { Announcer } from "./announcer.tsx";
import { EmptyState } from "./empty-state.tsx";
import { Hints } from "./hints.tsx";
import { KeepPlace } from "./keep-place.tsx";
import { Loading } from "./loading.tsx";
import { MessageList } from "./message-list.tsx";
import { ModelNote } from "./model-note.tsx";
import { Older } from "./older.tsx";
import { answerHere } from "./page-tools.ts";
import { type BarProps, Topbar } from "./topbar.tsx";
import { useEscape } from "./use-escape.ts";
import { useIsLoaded } from "./use-is-loaded.ts";
import { useOffline } from "../control/use-offline.ts";
import { useScroll } from "./use-scroll.ts";
import { viewOf } from "./view.ts";

interface Props {
  readonly id: string;
  readonly chain: readonly Step[];
  readonly agent: AgentClient;
  readonly bar: BarProps;
}

/** The chat of one conversation. */
export function Chat({ id, chain, agent, bar }: Props): ReactNode {
  // The messages come with the connection, so nothing has to be loaded first and one can write while it is away.
  const chat = useAgentChat({ agent, getInitialMessages: null, onToolCall: answerHere });
  const { messages, sendMessage, regenerate, stop, addToolApprovalResponse } = chat;
  const view = viewOf(chat);
  const first = messages[0]?.id;
  const { outer, inner, isAway, toEnd } = useScroll();
  const isOffline = useOffline(agent.readyState === 1);
  const isLoaded = useIsLoaded(id, chat.isLoaded || messages.length > 0);
  useEscape(view.isBusy ? stop : undefined);
  const isHelper = chain.length > 0;
  const openHelper = useCallback((step: Step) => goTo(id, "push", [...chain, step]), [id, chain]);

  const send = (text: string, files: readonly FilePart[] = []) => {
    void sendMessage(text === "" ? { files } : { text, files });
    toEnd();
  };
  const handlers = useMemo<MessageHandlers>(
    () => ({
      answer: (approvalId, approved) => addToolApprovalResponse({ id: approvalId, approved }),
      regenerate: () => void regenerate(),
      edit: (message, text) =>
        void sendMessage({ parts: [...filesOf(message), { type: "text", text }], messageId: message.id }),
    }),
    [addToolApprovalResponse, regenerate, sendMessage],
  );
  return (
    <Speaker value={isHelper ? bar.title : "Assistant"}>
      <RunsProvider agent={agent} canStop={!isHelper} onOpen={openHelper}>
        <Topbar {...bar} onClear={messages.length > 0 ? chat.clearHistory : undefined} />
        <div ref={outer} className="scroll" tabIndex={0} role="region" aria-label="Conversation">
          <KeepPlace box={outer} first={first} />
          <div ref={inner} className="column">
            {chat.hasOlder && (
              <Older first={first} isLoading={chat.isLoadingOlder} onLoad={() => void chat.loadOlder()} />
            )}
            {!isLoaded && <Loading />}
            {isLoaded && messages.length === 0 && !isHelper && <EmptyState onSend={send} />}
            <MessageList messages={messages} view={view} handlers={handlers} />
            <UnboundRuns />
            <Hints chat={chat} view={view} isOffline={isOffline} onRetry={handlers.regenerate} />
          </div>
        </div>
        <div className="dock">
          {isAway && (
            <IconButton
              icon="down"
              label="Jump to the latest message"
              className="jump"
              onClick={toEnd}
              data-testid="jump"
            />
          )}
          <div className="dock-column">
            {isOffline && (
              <p className="offline" role="status" data-testid="offline">
                Offline. What you send goes out when the connection is back.
              </p>
            )}
            <Composer
              conversation={isHelper ? pathOf(id, chain) : id}
              placeholder={isHelper ? `Write to ${bar.title}` : "Write a message"}
              busy={view.isBusy}
              onSend={send}
              onStop={() => void stop()}
            />
            <ModelNote />
          </div>
        </div>
        <Announcer messages={messages} isBusy={view.isBusy} />
      </RunsProvider>
    </Speaker>
  );
}
