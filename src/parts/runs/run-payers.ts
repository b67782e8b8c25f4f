import type { AgentHost, AgentPath } from "../../port.ts";
import type { CallResult } from "../../ledger/charge.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { PaidCall, Payers } from "../../ledger/ledger.ts";
import { runOfTurn, type RunRow, setRunReason } from "../../store/run.ts";
import type { AgentToolInterruptReason } from "../../wire/agent-tool-frames.ts";
import { parentPath } from "../children.ts";
import { askAbove } from "./ask-above.ts";
import type { Booked, CallNote } from "./book-calls.ts";
import { isGone } from "./run-ends.ts";

/** Who pays for a turn besides the agent; undefined when it is taken for nobody else. */
export function payersOf(host: AgentHost, turn: number): RunPayers | undefined {
  const above = host.blank ? undefined : parentPath(host.path);
  const run = above === undefined ? undefined : runOfTurn(host, turn);
  return above === undefined || run === undefined ? undefined : new RunPayers(host, above, run);
}

/** The agents above a run, as the agent that does it reaches them: through the next one. */
class RunPayers implements Payers {
  readonly #host: AgentHost;
  readonly #above: AgentPath;
  readonly #run: RunRow;

  constructor(host: AgentHost, above: AgentPath, run: RunRow) {
    this.#host = host;
    this.#above = above;
    this.#run = run;
  }

  overBudget(): void {
    setRunReason(this.#host, this.#run.runId, "budget-exceeded" satisfies AgentToolInterruptReason);
  }

  async reserve(call: PaidCall, signal: AbortSignal): Promise<Booked> {
    try {
      return await this.#tell({ kind: "reserve", call }, signal);
    } catch (thrown) {
      // It may have been booked, and only the answer was lost.
      if (isGone(thrown)) await this.release(call.id);
      throw thrown;
    }
  }

  async settle(id: string, result: CallResult): Promise<void> {
    await this.#tell({ kind: "settle", id, result }).catch(() => {});
  }

  async release(id: string): Promise<void> {
    await this.#tell({ kind: "release", id }).catch(() => {});
  }

  /** A turn of the run continues after a cut: tells those above how its calls ended. @throws what the call to them throws */
  async recovered(ledger: Ledger | undefined): Promise<void> {
    const turns = JSON.parse(this.#run.turns) as readonly (readonly [seq: number])[];
    const ended = turns.flatMap(([seq]) => ledger?.endedCalls(seq) ?? []);
    await this.#tell({ kind: "close", of: "", ended });
  }

  async #tell(note: CallNote, signal?: AbortSignal): Promise<Booked> {
    const args = [this.#run.runId, note];
    return (await askAbove(this.#host, this.#above, "bookAgentToolCall", args, signal)) as Booked;
  }
}
