import { readIdentity } from "../../base/identity.ts";
import type { AgentHost, AgentPath } from "../../port.ts";
import type { AgentRunRow, ListedAgentRun } from "../../store/agent-run.ts";
import type { StoredRun } from "./run-events.ts";
import type { AgentToolChunk, AgentToolListener, AgentToolRunInspection } from "./types.ts";

/** How a parent reaches the child that does a run: calls of its methods, which wake it. */
export class ChildLink {
  readonly #host: AgentHost;

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
