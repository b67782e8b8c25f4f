import "./search-dialog.css";
import type { UseAgentChat } from "perdure/react";
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Dialog } from "../control/dialog.tsx";
import type { Target } from "../conversation/use-reveal.ts";
import { excerptOf } from "./excerpt.ts";

type Hit = Awaited<ReturnType<UseAgentChat["search"]>>[number];

/** Wait for the rest of the word. */
const PAUSE_MS = 150;
const MAX_HITS = 30;
const HIT = '[data-testid="hit"]';

interface Props {
  readonly search: UseAgentChat["search"];
  /** Who answers here. */
  readonly speaker: string;
  readonly onOpen: (target: Target) => void;
  readonly onClose: () => void;
}

/** Finds messages of this conversation, in all its versions and copies, by words in them. */
export function SearchDialog({ search, speaker, onOpen, onClose }: Props): ReactNode {
  const [query, setQuery] = useState("");
  const { hits, problem } = useHits(search, query.trim());
  const list = useRef<HTMLUListElement>(null);
  const open = ({ messageId, sessionId, excerpt }: Hit) => {
    const words = excerptOf(excerpt).flatMap(({ text, isHit }) => (isHit ? [text] : []));
    onClose();
    onOpen({ id: messageId, session: sessionId, words: [...new Set(words)] });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>(HIT) ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const input = event.currentTarget.querySelector("input");
    if (event.key === "ArrowDown") buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
    else if (event.key === "ArrowUp" && at !== -1) (buttons[at - 1] ?? input)?.focus();
    else if (event.key === "Enter" && at === -1) buttons[0]?.click();
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search in this conversation" className="search-dialog" testId="search-dialog" onClose={onClose}>
      <div className="search-body" onKeyDown={onKeyDown}>
        <input
          type="search"
          value={query}
          aria-label="Words to look for"
          placeholder="Words to look for"
          autoComplete="off"
          spellCheck={false}
          data-testid="search-input"
          onChange={(event) => setQuery(event.target.value)}
        />
        <p className="search-status" role="status" data-testid="search-status">
          {problem ?? statusOf(query.trim(), hits)}
        </p>
        <ul ref={list} className="hits">
          {hits?.map((hit) => (
            <li key={hit.messageId}>
              <button type="button" onClick={() => open(hit)} data-testid="hit" data-id={hit.messageId}>
                <span className="hit-head">
                  <span>{hit.role === "user" ? "You" : speaker}</span>
                  <time dateTime={new Date(hit.createdAt).toISOString()}>{dateOf(hit.createdAt)}</time>
                </span>
                <span className="hit-words">
                  {excerptOf(hit.excerpt).map(({ text, isHit }, at) =>
                    isHit ? <mark key={at}>{text}</mark> : <span key={at}>{text}</span>,
                  )}
                </span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}

interface Hits {
  /** Undefined until the answer to a query has come. */
  readonly hits: readonly Hit[] | undefined;
  readonly problem: string | undefined;
}

function useHits(search: UseAgentChat["search"], query: string): Hits {
  const [found, setFound] = useState<Hits>({ hits: undefined, problem: undefined });
  useEffect(() => {
    if (query === "") return setFound({ hits: undefined, problem: undefined });
    let isCurrent = true;
    const timer = setTimeout(() => {
      search(query, { session: "all", limit: MAX_HITS }).then(
        (hits) => isCurrent && setFound({ hits, problem: undefined }),
        (error: unknown) =>
          isCurrent && setFound({ hits: undefined, problem: error instanceof Error ? error.message : String(error) }),
      );
    }, PAUSE_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [search, query]);
  return found;
}

function statusOf(query: string, hits: readonly Hit[] | undefined): string {
  if (query === "" || hits === undefined) return "";
  if (hits.length === 0) return "Nothing was found.";
  if (hits.length >= MAX_HITS) return `The best ${MAX_HITS} messages`;
  return hits.length === 1 ? "One message" : `${hits.length} messages`;
}

function dateOf(at: number): string {
  return new Date(at).toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
  });
}
