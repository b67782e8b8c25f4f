import { PerdureError } from "../../base/error.ts";
import { isSettledStatus } from "../contract.ts";
import type { GenerationContract } from "../contract.ts";
import type { Claim } from "../claim/claim.ts";
import type { RowCondition } from "../log/row-log.ts";
import type { Rows } from "../rows.ts";

/** A row with what the effect keeps in it. */
export type StoredGeneration = GenerationContract & {
  generationId?: string;
  attempt?: number;
  error?: string;
  runner?: string;
  fence?: number;
  updatedAt?: string;
  completedAt?: string;
};

/** A try at a row, as it was written when it began. */
export interface BegunTry {
  readonly id: string;
  readonly generationId: string;
  readonly attempt: number;
  readonly claim: Claim | undefined;
}

/** The state of answers, in their rows. */
export class GenerationRows {
  readonly rows: Rows<StoredGeneration>;

  constructor(rows: Rows<StoredGeneration>) {
    this.rows = rows;
  }

  /** Takes a row that is still as it was seen. False: somebody else was quicker. */
  begin(seen: StoredGeneration, { id, generationId, attempt, claim }: BegunTry): Promise<boolean> {
    return this.rows.update(
      id,
      (draft) => {
        if (draft.status !== seen.status || draft.generationId !== seen.generationId) return false;
        draft.status = "generating";
        draft.generationId = generationId;
        draft.attempt = attempt;
        delete draft.error;
        if (claim !== undefined) {
          draft.runner = claim.id;
          draft.fence = claim.fence;
        }
        touch(draft);
        return true;
      },
      withClaim(claim),
    );
  }

  /** Writes what became of a try, if the row is still its. */
  settle(begun: BegunTry, change: (draft: StoredGeneration) => void): Promise<boolean> {
    return this.rows.update(
      begun.id,
      (draft) => {
        if (!isOf(draft, begun)) return false;
        change(draft);
        touch(draft);
        return true;
      },
      withClaim(begun.claim),
    );
  }

  /** Whether the row is still worked on by this try. */
  isOurs(begun: BegunTry): boolean {
    const row = this.rows.get(begun.id);
    return row !== undefined && isOf(row, begun);
  }

  /** See `GenerationRun.when`. */
  conditions(begun: BegunTry): readonly RowCondition[] {
    const condition = this.rows.unchanged(begun.id);
    if (condition === undefined) return [];
    if (!this.isOurs(begun)) {
      throw new PerdureError("fenced", `The answer "${begun.id}" is not this try's any more. Stop this one.`);
    }
    return [condition];
  }
}

function isOf(row: StoredGeneration, { generationId }: BegunTry): boolean {
  return row.status === "generating" && row.generationId === generationId;
}

function withClaim(claim: Claim | undefined): { when?: readonly RowCondition[] } {
  return claim === undefined ? {} : { when: [claim.condition()] };
}

/** Keeps the times of rows that have them. */
function touch(draft: StoredGeneration): void {
  if (draft.updatedAt === undefined) return;
  draft.updatedAt = new Date().toISOString();
  if (isSettledStatus(draft.status)) draft.completedAt = draft.updatedAt;
}
