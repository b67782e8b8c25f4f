import { readIdentity } from "../../base/identity.ts";
import { within } from "../../base/time.ts";
import type { AgentHost, AgentPath } from "../../port.ts";
import type { AgentRunRow, ListedAgentRun } from "../../store/agent-run.ts";
import type { StoredRun } from "./run-events.ts";
import type { AgentToolChunk, AgentToolListener, AgentToolRunInspection } from "./types.ts";

/** So many children stop at a time: all at once, each would find its database closed by the others at every step. */
const STOPPING_AT_ONCE = 32;
/** How long one that does not end keeps others waiting. */
const STOP_WAIT_MS = 250;

/** How a parent reaches the child that does a run: calls of its methods, which wake it. */
export class ChildLink {
  readonly #host: AgentHost;
  #stopping = 0;
  readonly #nextStops: (() => void)[] = [];

  constructor(host: AgentHost) {
    this.#host = host;
  }

  start({ runId, className, input, identity, lineage }: AgentRunRow): Promise<AgentToolRunInspection> {
    const run = { runId, lineage, ...(identity !== null && { identity: readIdentity(identity) }) };
    const args = [JSON.parse(input) as unknown, run];
    return this.#call(className, runId, "startAgentToolRun", args) as Promise<AgentToolRunInspection>;
  }

  cancel({ runId, className, error }: AgentRunRow): Promise<unknown> {
    return this.#call(className, runId, "cancelAgentToolRun", [runId, error ?? undefined]);
  }

  /** The same, after others that are stopping, and before those that come later. @param ended when the run has */
  async stop(run: AgentRunRow, ended: Promise<unknown>): Promise<void> {
    if (this.#stopping < STOPPING_AT_ONCE) this.#stopping++;
    else await new Promise<void>((resolve) => this.#nextStops.push(resolve));
    try {
      await this.cancel(run);
    } finally {
      const settled = ended.catch(() => {});
      void within(this.#host.clock, STOP_WAIT_MS, settled).then(() => this.#stopped());
    }
  }

  #stopped(): void {
    const next = this.#nextStops.shift();
    if (next === undefined) this.#stopping--;
    else next();
  }

  tail(
    { runId, className }: AgentRunRow,
    from: number,
    listener: AgentToolListener,
  ): Promise<AgentToolRunInspection | null> {
    const options = { from, listener };
    return this.#call(className, runId, "tailAgentToolRun", [runId, options]) as Promise<AgentToolRunInspection | null>;
  }

  async read({ runId, className }: ListedAgentRun): Promise<StoredRun> {
    const run = (await this.#call(className, runId, "inspectAgentToolRun", [runId])) as AgentToolRunInspection | null;
    const chunks = (await this.#call(className, runId, "getAgentToolChunks", [runId])) as AgentToolChunk[];
    return { chunks, milestones: run?.milestones ?? [] };
  }

  #call(className: string, name: string, method: string, args: readonly unknown[]): Promise<unknown> {
    const path: AgentPath = [...this.#host.path, { className, name }];
    return this.#host.call(path, method, args);
  }
}
