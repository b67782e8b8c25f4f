import { type MessageBuilder, newBuilder, toMessage } from "../message/builder.ts";
import { applyChunk } from "../message/fold.ts";
import { isToolPart, type Part, toolName } from "../message/types.ts";
import { type HeardFrame, readAgentToolFrame } from "./agent-tool-frame.ts";
import { groupRuns, nextRun, NO_RUNS, type RunFacts } from "./agent-tool-run.ts";
import type { AgentToolEventState, AgentToolRunState } from "./agent-tool-types.ts";

/** Where the frames come from: an `AgentClient`, or any socket. */
export interface AgentToolEventSource {
  addEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  removeEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
}

interface Run {
  facts: RunFacts;
  readonly builder: MessageBuilder;
  /** The keys of what was heard of it. */
  readonly heard: Set<string | number>;
  /** What is shown of it; undefined when that is no longer true. */
  view: AgentToolRunState | undefined;
}

/**
 * The runs of an agent's children, as the agent reports them. Make it before the connection opens: an agent tells of earlier runs
 * only then. A reconnect tells them again, which changes nothing.
 */
export class AgentToolEvents {
  readonly #agent: AgentToolEventSource;
  readonly #runs = new Map<string, Run>();
  readonly #listeners = new Set<(urgent: boolean) => void>();
  readonly #now: () => number;
  #shown: AgentToolEventState = NO_RUNS;
  #changed = false;

  /** @param now milliseconds since the epoch, for progress that does not say when it was. */
  constructor(agent: AgentToolEventSource, now: () => number = () => Date.now()) {
    this.#agent = agent;
    this.#now = now;
    agent.addEventListener("message", this.#listen);
  }

  /**
   * Calls `listener` after each change; `urgent` when a run began or ended. It must not throw.
   * @returns what ends that.
   */
  subscribe(listener: (urgent: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The runs as they are now; the same object until something changes. */
  getSnapshot(): AgentToolEventState {
    if (this.#changed) {
      this.#changed = false;
      this.#shown = groupRuns([...this.#runs.values()].map(viewOf), this.#shown);
    }
    return this.#shown;
  }

  /** Forgets all runs, here only. The agent tells of them again when the connection opens the next time. */
  reset(): void {
    this.#runs.clear();
    this.#tell(true);
  }

  /** Stops listening to the agent. What was heard stays. */
  close(): void {
    this.#agent.removeEventListener("message", this.#listen);
  }

  readonly #listen = ({ data }: { readonly data: unknown }): void => {
    const frame = readAgentToolFrame(data);
    if (frame !== undefined && this.#take(frame)) this.#tell(frame.event.kind !== "chunk");
  };

  /** @returns whether there is something new to show. */
  #take(frame: HeardFrame): boolean {
    const { event, key } = frame;
    const run = this.#runs.get(event.runId);
    if (run?.heard.has(key) === true) return false;
    const facts = nextRun(run?.facts, frame, this.#now());
    // Not remembered as heard: a chunk that came before its run comes again with the replay of the run.
    if (facts === undefined) return false;
    const known = run ?? { facts, builder: newBuilder(event.runId), heard: new Set(), view: undefined };
    if (run === undefined) this.#runs.set(event.runId, known);
    known.heard.add(key);
    const said = event.kind === "chunk" && applyChunk(known.builder, event.chunk);
    if (run !== undefined && known.facts === facts && !said) return false;
    known.facts = facts;
    known.view = undefined;
    return true;
  }

  #tell(urgent: boolean): void {
    this.#changed = true;
    for (const listener of this.#listeners) listener(urgent);
  }
}

function viewOf(run: Run): AgentToolRunState {
  return (run.view ??= { ...run.facts, parts: toMessage(run.builder).parts.map(withToolName) });
}

/** Lists of runs are shown by code that knows no tools, so each call says what it calls. */
function withToolName(part: Part): Part {
  return isToolPart(part) ? ({ ...part, toolName: toolName(part) } as Part) : part;
}
