import "./app.css";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { COMPOSER_ID } from "./composer/composer.tsx";
import { useMedia } from "./control/use-media.ts";
import { Closed } from "./conversation/closed.tsx";
import { Conversation } from "./conversation/conversation.tsx";
import { MENU_ID } from "./conversation/topbar.tsx";
import { UNTITLED } from "../contract.ts";
import { ErrorBoundary } from "./error-boundary.tsx";
import { goTo, isFresh, newConversationId, pathOf, useRoute } from "./route/route.ts";
import { titleOf } from "./run/run-view.ts";
import { Sidebar } from "./sidebar/sidebar.tsx";
import { useConversations } from "./sidebar/use-conversations.ts";
import { useIsDeleted } from "./sidebar/use-is-deleted.ts";

/** Where there is no room for the list beside the conversation; `app.css` has the same number. */
const NARROW = "(max-width: 56rem)";

/** The list, and the conversation that the address names. */
export function App(): ReactNode {
  const { id, chain } = useRoute();
  const { items, isOffline, problem, rename, remove } = useConversations();
  const isNarrow = useMedia(NARROW);
  const [wantsList, setWantsList] = useState(false);
  const isDrawer = isNarrow && wantsList;
  const drawer = useDrawerFocus(isDrawer);
  const isDeleted = useIsDeleted(items, id);
  const item = items?.find((one) => one.id === id);
  const title = item?.title ?? UNTITLED;
  const helper = chain.at(-1);
  const shown = helper === undefined ? title : titleOf(helper.agent);
  useEffect(() => {
    document.title = `${shown} · Perdure`;
  }, [shown]);

  const close = () => setWantsList(false);
  const show = (next: string, how?: "replace") => {
    goTo(next, how);
    close();
    document.getElementById(COMPOSER_ID)?.focus({ preventScroll: true });
  };
  const above = chain.at(-2);
  const bar = {
    title: shown,
    from: helper === undefined ? item?.from : undefined,
    onMenu: isNarrow && helper === undefined ? () => setWantsList(true) : undefined,
    back: helper && {
      to: above === undefined ? title : titleOf(above.agent),
      go: () => goTo(id, "push", chain.slice(0, -1)),
    },
  };
  const isNew = isFresh(id) && items?.some((item) => item.id === id) !== true;
  return (
    <div
      className="app"
      data-testid="app"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isDrawer || event.defaultPrevented) return;
        event.preventDefault();
        close();
      }}
    >
      <a
        className="skip-link"
        href={`#${COMPOSER_ID}`}
        onClick={(event) => {
          event.preventDefault();
          document.getElementById(COMPOSER_ID)?.focus();
        }}
      >
        Skip to the message
      </a>
      <div ref={drawer} className="drawer" data-open={isDrawer || undefined} inert={isNarrow && !wantsList}>
        <Sidebar
          items={items}
          currentId={id}
          isOffline={isOffline}
          problem={problem}
          onClose={isNarrow ? close : undefined}
          onNew={() => show(isNew ? id : newConversationId())}
          onOpen={show}
          onRename={rename}
          onDelete={(deleted) => {
            remove(deleted);
            if (deleted === id) show(newConversationId(), "replace");
          }}
        />
      </div>
      {isDrawer && <div className="curtain" onClick={close} />}
      <main className="main" inert={isDrawer}>
        <ErrorBoundary key={pathOf(id, chain)}>
          {isDeleted ? <Closed {...bar} /> : <Conversation id={id} chain={chain} {...bar} />}
        </ErrorBoundary>
      </main>
    </div>
  );
}

/** Moves the focus into the drawer when it opens, and back when it closes. */
function useDrawerFocus(isOpen: boolean) {
  const drawer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    drawer.current?.querySelector("button")?.focus();
    return () => document.getElementById(MENU_ID)?.focus();
  }, [isOpen]);
  return drawer;
}
