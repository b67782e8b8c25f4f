import "../control/shimmer.css";
import "./reasoning.css";
import { memo, type ReactNode, useId, useState } from "react";
import { Icon } from "../control/icon.tsx";
import { Markdown } from "./markdown.tsx";

/** What the model thought. Open while it thinks, then closed, unless the reader says otherwise. */
export const Reasoning = memo(function Reasoning(props: { readonly text: string; readonly live: boolean }): ReactNode {
  const { text, live } = props;
  const [chosen, setChosen] = useState<boolean>();
  const id = useId();
  const open = chosen ?? live;
  return (
    <div className="reasoning" data-testid="reasoning" data-live={live || undefined}>
      <button
        type="button"
        className="fold"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setChosen(!open)}
      >
        <span className={live ? "shimmer" : undefined}>{live ? "Thinking" : "Thoughts"}</span>
        <Icon name="chevron" />
      </button>
      {open && (
        <div id={id} className="reasoning-text">
          <Markdown text={text} live={false} />
        </div>
      )}
    </div>
  );
});
