// Agents with all kinds of work that is due later, at any depth. What ran is appended to a file of the test.
import { appendFileSync } from "node:fs";
import { Agent, type FiberContext, Think } from "perdure";
import { scriptedModel } from "perdure/testing";

interface Where {
  /** The file. */
  readonly ran: string;
  /** In a first life, work that has begun never ends. */
  readonly hangs: boolean;
}

const never = (): Promise<never> => new Promise(() => undefined);

/** Everything that a plain agent can have to do. */
export class Worker extends Agent<Where, { n: number }> {
  override initialState = { n: 0 };

  async plan(): Promise<void> {
    this.setState({ n: 1 });
    await this.schedule(1, "work", "schedule");
    await this.queue("work", "queue");
    this.spawnFiber("fiber");
  }
  /** Plans the same with a child of a child of a child. */
  async planBelow(depth: number): Promise<void> {
    await this.plan();
    if (depth > 0) await (await this.subAgent(Worker, `below ${depth}: äö`)).planBelow(depth - 1);
  }
  async work(what: string): Promise<void> {
    if (this.env.hangs) await never();
    appendFileSync(this.env.ran, `${this.depth} ${what}\n`);
  }
  async fiber(_: unknown, _context: FiberContext): Promise<void> {
    await this.work("fiber");
  }
  n(): number {
    return this.state.n;
  }
  below(): number {
    return this.listSubAgents().length;
  }
  async drop(name: string): Promise<void> {
    await this.deleteSubAgent(Worker, name);
  }
  private get depth(): string {
    return `${this.name}@${this.parentPath.length}`;
  }
}

/** A turn that is cut and carried on. */
export class Talker extends Think<Where> {
  override getModel() {
    return scriptedModel(async () => {
      if (this.env.hangs) await never();
      appendFileSync(this.env.ran, `${this.name} turn\n`);
      return "hello";
    });
  }
  async talk(): Promise<void> {
    await this.submitMessages("hi");
  }
}
