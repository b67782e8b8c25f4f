import type { AgentStep } from "../port.ts";
import { leafOf, parseAgentId } from "../wire/agent-path.ts";
import type { Life } from "./life.ts";
import type { AgentIndex } from "./storage.ts";

/** A child that its parent is to list. */
interface Made {
  readonly child: AgentStep;
  readonly told: PromiseWithResolvers<void>;
}

/**
 * What an agent is still to hear of its children: those that were reached from outside and now store something, and those
 * that were deleted by others. It is told in the life that is in memory, or in the next one before anything else.
 */
export class ChildNews {
  #made: Made[] = [];

  /** A child is about to store its first row. Resolves when its parent's list, with it, is durable. */
  made(child: AgentStep, life: Life | undefined): Promise<void> {
    const told = Promise.withResolvers<void>();
    this.#made.push({ child, told });
    if (life?.agent !== undefined) this.tellMade(life);
    return told.promise;
  }

  /** Nobody can be told: the agent did not start. */
  failed(error: unknown): void {
    for (const { told } of this.#made.splice(0)) told.reject(error);
  }

  tellMade(life: Life): void {
    for (const { child, told } of this.#made.splice(0)) {
      try {
        life.agent?.childMade?.(child);
        told.resolve(life.durable());
      } catch (thrown) {
        told.reject(thrown);
      }
    }
  }

  /** Stored on both sides: after a crash in between it is told again. */
  async tellLost(life: Life, index: AgentIndex): Promise<void> {
    const lost = index.lost(life.id);
    if (lost.length === 0) return;
    for (const child of lost) life.agent?.childRemoved?.(leafOf(parseAgentId(child)));
    await life.durable();
    for (const child of lost) index.told(child);
  }
}
