import "../control/button.css";
import "./run-card.css";
import { memo, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Icon } from "../control/icon.tsx";
import type { Step } from "../route/route.ts";
import { RunWords } from "./run-words.tsx";
import type { RunState, RunView } from "./run-view.ts";

const words: Record<RunState, string> = {
  starting: "Starting",
  working: "Working",
  waiting: "Needs approval",
  done: "Done",
  failed: "Failed",
  stopped: "Stopped",
  lost: "Interrupted",
};

const isAtWork = (state: RunState) => state === "starting" || state === "working";

/** The helper that was looked at last: who comes back from it finds the focus where it was. */
let lastOpened: string | undefined;

interface Props {
  readonly view: RunView;
  readonly onOpen: (step: Step) => void;
  readonly onStop: ((runId: string) => Promise<void>) | undefined;
}

/** A helper: what it was asked for, how far it is, what it says, and what came of it. */
export const RunCard = memo(function RunCard({ view, onOpen, onStop }: Props): ReactNode {
  const { runId, name, task, state, progress, milestones, parts, note, step } = view;
  const id = useId();
  const opener = useRef<HTMLButtonElement>(null);
  const { isStopping, problem, stop } = useStop(runId, onStop);
  useEffect(() => {
    if (runId === undefined || runId !== lastOpened) return;
    lastOpened = undefined;
    opener.current?.focus({ preventScroll: true });
  }, [runId]);
  const live = isAtWork(state) || state === "waiting";
  return (
    <section className="run" data-testid="run" data-run={runId} data-state={state} aria-labelledby={id}>
      <header className="run-head">
        <Icon name="branch" />
        <h3 id={id} className="run-name">
          {name}
        </h3>
        <span className="run-state" aria-hidden="true">
          {words[state]}
        </span>
        <span className="visually-hidden" role="status">{`${name}: ${words[state]}`}</span>
      </header>
      {task !== "" && (
        <p className="run-task" title={task}>
          {task}
        </p>
      )}
      {progress !== undefined && <Progress name={name} {...progress} />}
      {milestones.length > 0 && (
        <ol className="run-milestones" aria-label="Milestones" data-testid="milestones">
          {milestones.map((milestone, index) => (
            <li key={index}>
              <Icon name="check" />
              {milestone}
            </li>
          ))}
        </ol>
      )}
      <RunWords name={name} parts={parts} live={live} isStopped={state === "stopped"} />
      {state === "waiting" && <p className="run-note">It asks for your approval in its own conversation.</p>}
      {note !== undefined && note !== "" && <p className="run-note">{note}</p>}
      {problem !== undefined && <p className="run-note run-problem" role="alert">{`Not stopped: ${problem}`}</p>}
      <footer className="run-foot">
        <button
          ref={opener}
          type="button"
          className={`button ${state === "waiting" ? "button-primary" : ""}`}
          disabled={step === undefined}
          aria-label={state === "waiting" ? `Open and answer ${name}` : `Open ${name}`}
          data-testid="run-open"
          onClick={() => {
            lastOpened = runId;
            if (step !== undefined) onOpen(step);
          }}
        >
          {state === "waiting" ? "Open and answer" : "Open"}
          <Icon name="arrow" />
        </button>
        {live && stop !== undefined && (
          <button
            type="button"
            className="button button-plain"
            disabled={isStopping}
            aria-label={`Stop ${name}`}
            data-testid="run-stop"
            onClick={stop}
          >
            {isStopping ? "Stopping…" : "Stop"}
          </button>
        )}
      </footer>
    </section>
  );
});

const WHOLE = 100;

function Progress(props: { readonly name: string; readonly fraction: number | undefined; readonly words: string }) {
  const { name, fraction, words: text } = props;
  const percent = fraction === undefined ? undefined : Math.round(fraction * WHOLE);
  return (
    <div className="run-progress" data-testid="run-progress">
      <p>
        <span>{text}</span>
        {percent !== undefined && <span>{percent} %</span>}
      </p>
      {percent !== undefined && (
        <div
          className="run-bar"
          role="progressbar"
          aria-label={`Progress of ${name}`}
          aria-valuemin={0}
          aria-valuemax={WHOLE}
          aria-valuenow={percent}
          aria-valuetext={`${percent} %, ${text}`}
        >
          <div style={{ transform: `scaleX(${percent / WHOLE})` }} />
        </div>
      )}
    </div>
  );
}

function useStop(runId: string | undefined, onStop: Props["onStop"]) {
  const [isStopping, setIsStopping] = useState(false);
  const [problem, setProblem] = useState<string>();
  const stop = () => {
    if (runId === undefined || onStop === undefined) return;
    setIsStopping(true);
    setProblem(undefined);
    onStop(runId).catch((error: unknown) => {
      setIsStopping(false);
      setProblem(error instanceof Error ? error.message : String(error));
    });
  };
  return { isStopping, problem, stop: runId === undefined || onStop === undefined ? undefined : stop };
}
