import { type ReactNode, useState } from "react";
import { Confirm } from "../control/confirm.tsx";
import { IconButton } from "../control/icon-button.tsx";
import { ThemeButton } from "../control/theme-button.tsx";
import type { Copies } from "./use-copies.ts";

export const MENU_ID = "menu-button";

export interface BarProps {
  readonly title: string;
  /** The messenger that it is held at. */
  readonly from?: string | undefined;
  /** Opens the list of conversations; undefined where it is in sight. */
  readonly onMenu: (() => void) | undefined;
  /** Where a helper's conversation leads back to. */
  readonly back?: { readonly to: string; readonly go: () => void } | undefined;
}

interface Props extends BarProps {
  /** Undefined when there is nothing to clear. */
  readonly onClear: (() => void) | undefined;
  readonly copies?: Copies | undefined;
  /** Undefined when there is nothing to search. */
  readonly onSearch?: (() => void) | undefined;
}

/** What this conversation is called and what concerns all of it. */
export function Topbar({ title, from, onMenu, back, onClear, onSearch, copies }: Props): ReactNode {
  const [asking, setAsking] = useState(false);
  return (
    <header className="topbar">
      {onMenu !== undefined && (
        <IconButton
          id={MENU_ID}
          icon="menu"
          label="Conversations"
          onClick={onMenu}
          data-testid="menu"
          aria-haspopup="dialog"
        />
      )}
      {back !== undefined && (
        <IconButton icon="back" label={`Back to ${back.to}`} onClick={back.go} className="back" data-testid="back" />
      )}
      <div className="topbar-title">
        <h1 title={title}>{title}</h1>
        {back !== undefined && <p>{`Helper in “${back.to}”`}</p>}
        {from !== undefined && <p data-testid="from">{`From ${from}. What you write here is answered here.`}</p>}
        {copies !== undefined && copies.items.length > 0 && (
          <select
            className="copies"
            aria-label="Which copy is shown"
            value={copies.session ?? ""}
            onChange={({ target }) => copies.choose(target.value === "" ? undefined : target.value)}
            data-testid="copies"
          >
            {copies.items.map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        )}
      </div>
      <IconButton
        icon="search"
        label="Search in this conversation"
        disabled={onSearch === undefined}
        onClick={onSearch}
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K Meta+K"
        data-testid="search"
      />
      {back === undefined && (
        <IconButton
          icon="erase"
          label="Clear conversation"
          disabled={onClear === undefined}
          onClick={() => setAsking(true)}
          data-testid="clear"
        />
      )}
      <ThemeButton />
      {asking && onClear !== undefined && (
        <Confirm
          title="Clear this conversation?"
          text="All its messages are forgotten, on the server too. What is being answered stops."
          action="Clear"
          onConfirm={onClear}
          onClose={() => setAsking(false)}
        />
      )}
    </header>
  );
}
