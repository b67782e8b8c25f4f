import "./dock.css";
import { type AgentClient, useAgentChat } from "perdure/react";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { Composer } from "../composer/composer.tsx";
import { ContextMeter } from "../context/context-meter.tsx";
import { SummariesContext } from "../context/summary-line.tsx";
import { IconButton } from "../control/icon-button.tsx";
import { Deliveries } from "../delivery/deliveries.tsx";
import { type FilePart, filesOf } from "../message/parts.ts";
import { MarksContext } from "../message/marks.ts";
import type { MessageHandlers } from "../message/message.tsx";
import { FilesAddress } from "../message/files.ts";
import { Speaker } from "../message/speaker.ts";
import { goTo, pathOf, type Step } from "../route/route.ts";
import { UnboundRuns } from "../run/run-calls.tsx";
import { RunsProvider } from "../run/runs.tsx";
import { SearchDialog } from "../search/search-dialog.tsx";
import { Announcer } from "./announcer.tsx";
import { EmptyState } from "./empty-state.tsx";
import { Hints } from "./hints.tsx";
import { KeepPlace } from "./keep-place.tsx";
import { Loading } from "./loading.tsx";
import { MessageList } from "./message-list.tsx";
import { ModelNote } from "./model-note.tsx";
import { Older } from "./older.tsx";
import { answerHere } from "./page-tools.ts";
import { tabStorage } from "./tab-storage.ts";
import { filesOfConversation } from "./files-address.ts";
import { type BarProps, Topbar } from "./topbar.tsx";
import { useCopies } from "./use-copies.ts";
import { useEscape } from "./use-escape.ts";
import { useIsLoaded } from "./use-is-loaded.ts";
import { useMarks } from "./use-marks.ts";
import { useOffline } from "../control/use-offline.ts";
import { useReveal } from "./use-reveal.ts";
import { useScroll } from "./use-scroll.ts";
import { useSearchKey } from "./use-search-key.ts";
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
  const copies = useCopies(agent, pathOf(id, chain));
  const chat = useAgentChat({
    session: copies.session,
    agent,
    getInitialMessages: null,
    onToolCall: answerHere,
    rememberBranch: tabStorage,
  });
  const { messages, sendMessage, regenerate, stop, addToolApprovalResponse } = chat;
  const view = viewOf(chat);
  const first = messages[0]?.id;
  const { outer, inner, isAway, toEnd, toMessage } = useScroll();
  const { found, isLooking, reveal } = useReveal(chat, { show: toMessage, goTo: copies.goTo });
  const { marks, summaries, problem, clearProblem } = useMarks(chat, view.isBusy, reveal, copies.choose);
  const [isSearching, setIsSearching] = useState(false);
  const openSearch = useCallback(() => setIsSearching(true), []);
  const onSearch = messages.length > 0 ? openSearch : undefined;
  useSearchKey(onSearch);
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
        <Topbar
          {...bar}
          onClear={messages.length > 0 ? chat.clearHistory : undefined}
          onSearch={onSearch}
          copies={copies}
        />
        <div ref={outer} className="scroll" tabIndex={0} role="region" aria-label="Conversation">
          <KeepPlace box={outer} first={first} />
          <div ref={inner} className="column">
            {chat.hasOlder && (
              <Older first={first} isLoading={chat.isLoadingOlder} onLoad={() => void chat.loadOlder()} />
            )}
            {!isLoaded && <Loading />}
            {isLoaded && messages.length === 0 && !isHelper && <EmptyState onSend={send} />}
            <MarksContext value={marks}>
              <SummariesContext value={summaries}>
                <FilesAddress value={isHelper ? undefined : filesOfConversation(id)}>
                  <MessageList messages={messages} view={view} handlers={handlers} found={found} />
                </FilesAddress>
              </SummariesContext>
            </MarksContext>
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
            {isLooking && (
              <p className="looking" role="status" data-testid="looking">
                Going to the message…
              </p>
            )}
            {problem !== undefined && (
              <p className="offline" role="alert" data-testid="problem">
                {problem}{" "}
                <button type="button" className="text-button" onClick={clearProblem}>
                  Dismiss
                </button>
              </p>
            )}
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
            <div className="note-row">
              <ModelNote />
              {bar.from !== undefined && <Deliveries agent={agent} from={bar.from} busy={view.isBusy} />}
              <ContextMeter chat={chat} busy={view.isBusy} />
            </div>
          </div>
        </div>
        {isSearching && (
          <SearchDialog
            search={chat.search}
            speaker={isHelper ? bar.title : "Assistant"}
            onOpen={reveal}
            onClose={() => setIsSearching(false)}
          />
        )}
        <Announcer messages={messages} isBusy={view.isBusy} />
      </RunsProvider>
    </Speaker>
  );
}
