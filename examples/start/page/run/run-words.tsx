import "../control/shimmer.css";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import { Markdown } from "../message/markdown.tsx";
import { type CallState, callStateOf, isTool, type Part, toolNameOf } from "../message/parts.ts";
import { brief } from "../message/pretty.ts";

/** So near to the end counts as at the end. */
const NEAR_PX = 24;

const words: Record<CallState, string> = {
  running: "running",
  waiting: "needs approval",
  done: "done",
  failed: "failed",
  denied: "denied",
  stopped: "stopped",
};

interface Props {
  readonly name: string;
  readonly parts: readonly Part[];
  /** More may come. */
  readonly live: boolean;
  /** It was stopped: so was what it did last. */
  readonly isStopped: boolean;
}

/** What a helper says and does, in a box that stays small and keeps its end in sight while it grows. */
export function RunWords({ name, parts, live, isStopped }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(live);
  useLayoutEffect(() => {
    if (follows.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [parts]);
  const shown = parts.filter(isShown);
  if (shown.length === 0) {
    return live ? (
      <p className="run-words run-quiet">
        <span className="shimmer">Getting ready…</span>
      </p>
    ) : null;
  }
  return (
    <div
      ref={box}
      className="run-words"
      tabIndex={0}
      role="region"
      aria-label={`What ${name} says`}
      data-testid="run-words"
      data-live={live || undefined}
      onScroll={({ currentTarget: at }) => {
        at.toggleAttribute("data-cut", at.scrollTop > 0);
        follows.current = live && at.scrollHeight - at.scrollTop - at.clientHeight < NEAR_PX;
      }}
    >
      {shown.map((part, index) => (
        <RunPart key={index} part={part} live={live} isEnd={index === shown.length - 1} isStopped={isStopped} />
      ))}
    </div>
  );
}

function isShown(part: Part): boolean {
  return isTool(part) || ((part.type === "text" || part.type === "reasoning") && part.text.trim() !== "");
}

interface PartProps extends Pick<Props, "live" | "isStopped"> {
  readonly part: Part;
  readonly isEnd: boolean;
}

function RunPart({ part, live, isEnd, isStopped }: PartProps): ReactNode {
  if (isTool(part)) {
    const call = callStateOf(part, live);
    const state = isStopped && isEnd && call === "failed" ? "stopped" : call;
    return (
      <p className="run-call" data-testid="run-call" data-state={state}>
        <code>{toolNameOf(part)}</code>
        <span className="run-call-input">{brief(part.input)}</span>
        <span className="run-call-state">{words[state]}</span>
      </p>
    );
  }
  if (part.type === "text") return <Markdown text={part.text} live={live && isEnd} />;
  // What it thinks is in its own conversation; here it is enough to know that it does.
  return (
    <p className="run-thought">{live && isEnd ? <span className="shimmer">Thinking…</span> : "Thought about it."}</p>
  );
}
