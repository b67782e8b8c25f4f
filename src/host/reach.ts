import type { Identity } from "../base/identity.ts";
import type { AgentPath, AgentStep, ReadVerdict } from "../port.ts";
import type { LifeSurroundings } from "./life.ts";

/** Reports an event of one agent to whoever listens. Must not throw. */
export type Publish = LifeSurroundings["publish"];

/** How the router reaches agents, wherever they are: in this process, or in objects of a platform. */
export interface Reach {
  readonly publish: Publish;
  /** Whether the agent has ever stored something. */
  exists(path: AgentPath): Promise<boolean>;
  /** Asks an agent whether a request may reach one of its children. Wakes it. */
  admitChild(
    parent: AgentPath,
    request: Request,
    child: AgentStep,
    identity: Identity | undefined,
  ): Promise<ReadVerdict>;
  /** Has an agent answer. Resolves when what it wrote before may be shown. */
  request(
    path: AgentPath,
    request: Request,
    rest: string,
    identity: Identity | undefined,
    mayOnlyRead: boolean,
  ): Promise<Response>;
  /** Something that the host does for an agent failed. */
  failed(path: AgentPath, stage: string, error: unknown): void;
}
