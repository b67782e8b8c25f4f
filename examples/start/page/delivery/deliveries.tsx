import "./deliveries.css";
import type { AgentClient } from "perdure/react";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import type { AssistantApi, DeliveryItem } from "../../contract.ts";
import { Dialog } from "../control/dialog.tsx";

/** While something is on its way, how often it is asked how far it is. */
const LOOK_MS = 1_000;

interface Props {
  readonly agent: AgentClient;
  /** The messenger, as people call it. */
  readonly from: string;
  /** An answer is being written: when it ends, there is something to bring. */
  readonly busy: boolean;
}

const KINDS = { answer: "Answer", question: "Question", notice: "Notice" } as const;
const STATES = { open: "On its way", held: "Waits for a person", done: "Delivered", failed: "Failed" } as const;

/** What of a conversation has reached its messenger, and what waits. Opens the list of it. */
export function Deliveries({ agent, from, busy }: Props): ReactNode {
  const [open, setOpen] = useState(false);
  const { items, problem, act } = useDeliveries(agent, busy);
  return (
    <>
      {items !== undefined && items.length > 0 && (
        <button
          type="button"
          className="meter deliveries"
          onClick={() => setOpen(true)}
          aria-haspopup="dialog"
          title={`What was brought to ${from}`}
          data-testid="deliveries"
          data-failed={items.some(({ state }) => state === "failed") || undefined}
        >
          {inShort(items, from)}
        </button>
      )}
      {open && (
        <Dialog
          title={`At ${from}`}
          text="What was said in this conversation, and how far it is."
          className="deliveries-dialog"
          testId="deliveries-dialog"
          onClose={() => setOpen(false)}
        >
          {problem !== undefined && (
            <p className="dialog-problem" role="alert">
              {problem}
            </p>
          )}
          <ul>
            {items?.map((item) => (
              <Row key={item.id} item={item} act={act} />
            ))}
          </ul>
          <div className="dialog-actions">
            <button type="button" className="button button-primary" onClick={() => setOpen(false)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

type Act = (what: "retryDelivery" | "forgetDelivery", id: string) => void;

function Row({ item, act }: { readonly item: DeliveryItem; readonly act: Act }): ReactNode {
  const { id, kind, state, parts, error, nextAt, maybeTwice, createdAt } = item;
  return (
    <li data-testid="delivery" data-state={state}>
      <div className="delivery-line">
        <strong>{KINDS[kind]}</strong>
        <time dateTime={new Date(createdAt).toISOString()}>{new Date(createdAt).toLocaleTimeString()}</time>
        <span className="delivery-state">{STATES[state]}</span>
      </div>
      <p>
        {state === "done" && (parts === 1 ? "1 message" : `${parts} messages`)}
        {maybeTwice && " One may be there twice."}
        {state === "open" && nextAt !== undefined && `Tried again at ${new Date(nextAt).toLocaleTimeString()}`}
      </p>
      {error !== undefined && <p className="delivery-error">{error}</p>}
      {state === "failed" && (
        <div className="delivery-actions">
          <button type="button" className="button" onClick={() => act("retryDelivery", id)} data-testid="retry">
            Try again
          </button>
          <button type="button" className="button" onClick={() => act("forgetDelivery", id)} data-testid="forget">
            Forget
          </button>
        </div>
      )}
    </li>
  );
}

function inShort(items: readonly DeliveryItem[], from: string): string {
  const count = (wanted: DeliveryItem["state"]) => items.filter(({ state }) => state === wanted).length;
  const words = [
    [count("failed"), "failed"],
    [count("open"), "on the way"],
    [count("held"), "waiting"],
  ] as const;
  const told = words.flatMap(([n, word]) => (n === 0 ? [] : [`${n} ${word}`]));
  return told.length === 0 ? `Delivered to ${from}` : `${from}: ${told.join(", ")}`;
}

/** What was brought, asked for anew when an answer ends and while something is on its way. */
function useDeliveries(agent: AgentClient, busy: boolean) {
  const [items, setItems] = useState<readonly DeliveryItem[]>();
  const [problem, setProblem] = useState<string>();
  const [asked, setAsked] = useState(0);
  const isOpen = busy || items?.some(({ state }) => state === "open" || state === "held") === true;
  useEffect(() => {
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = () =>
      (agent as unknown as { readonly stub: AssistantApi }).stub.deliveries().then(
        (told) => isCurrent && setItems(told),
        // It is asked again with the next answer.
        () => {},
      );
    void ask();
    if (isOpen) timer = setInterval(() => void ask(), LOOK_MS);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [agent, isOpen, asked]);
  const act = useCallback<Act>(
    (what, id) => {
      setProblem(undefined);
      Promise.resolve((agent as unknown as { readonly stub: AssistantApi }).stub[what](id)).then(
        () => setAsked((n) => n + 1),
        (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
      );
    },
    [agent],
  );
  return { items, problem, act };
}
