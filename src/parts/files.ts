import { PerdureError } from "../base/error.ts";
import type { UIMessage } from "../message/types.ts";
import type { AgentHost } from "../port.ts";
import { tellDamage } from "../store/damaged.ts";
import { placesUp, readMessage, seqOfMessage } from "../store/message.ts";
import { messageIdsOf, openTurns, type TurnRow } from "../store/turn.ts";
import type { PointChange, RestoreResult } from "../toolbox/workspace/types.ts";
import { Workspace } from "../toolbox/workspace/workspace.ts";
import { isOfSession } from "../turn/engine/mend.ts";
import { turnNow } from "./current.ts";

/** The version of a workspace without files. */
const NO_FILES = 0;
/** How far up a message is looked for whose files are known. */
const MAX_WAY = 2_000;

/** Ties files to messages: as they were before an answer, and after. By a message's number, since ids move between versions. */
export class FilePoints {
  readonly #host: AgentHost;
  readonly #workspace: () => unknown;

  /** @param workspace only a {@link Workspace} has points; with anything else there are none. */
  constructor(host: AgentHost, workspace: () => unknown) {
    this.#host = host;
    this.#workspace = workspace;
  }

  /** An attempt of a turn begins, in the transaction that starts it. */
  begun({ messageIds, attempts }: Pick<TurnRow, "messageIds" | "attempts">): void {
    const workspace = this.#kept;
    const id = messageIdsOf({ messageIds }).at(-1);
    if (workspace === undefined || id === undefined) return;
    this.#whereReadable(() => {
      // An earlier attempt may have changed files by now. Where there never was one, it cannot; and its mark is lost with it.
      if (attempts > 0 && !workspace.isUnused) return;
      const point = this.#pointOf(id);
      // Another version of an answer begins where the first began.
      if (point !== undefined && !workspace.hasPoint(point)) workspace.mark(point);
    });
  }

  /** An answer is stored, in the transaction that does it. */
  settled({ id }: UIMessage): void {
    const point = this.#pointOf(id);
    this.#whereReadable(() => {
      if (point !== undefined) this.#kept?.mark(point);
    });
  }

  /** A conversation goes on without points where the history of its files is damaged. */
  #whereReadable(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      if (!PerdureError.is(thrown, "bad_state")) throw thrown;
      tellDamage(this.#host, "the history of the files", thrown);
    }
  }

  /** Makes all files what they were at a message. @throws PerdureError `not_found`, `bad_state` */
  restore(messageId: string): RestoreResult {
    const point = this.#nearest(messageId);
    this.#refuseWhileOthersWork(messageId);
    return this.#needed.restore(point);
  }

  /** There is one workspace: a turn of another session may have half done what it is about to do. */
  #refuseWhileOthersWork(messageId: string): void {
    const here = [turnNow(this.#host)?.session, readMessage(this.#host, messageId)?.session].filter(
      (one) => one !== undefined,
    );
    const isOther = (turn: TurnRow) => !here.some((session) => isOfSession(this.#host, turn, session));
    const other = openTurns(this.#host).find((turn) => turn.status === "running" && isOther(turn));
    if (other === undefined) return;
    throw new PerdureError(
      "bad_state",
      `A turn of the session "${other.session}" works on the same files. Restore them when it has ended.`,
    );
  }

  /** What changed between two messages, or since one. @throws PerdureError `not_found`, `bad_state` */
  async diff(from: string, to?: string): Promise<PointChange[]> {
    return this.#needed.diffPoints(this.#nearest(from), ...(to === undefined ? [] : [this.#nearest(to)]));
  }

  /** The point of a message, or of the nearest one above that has one: in between nothing was done. */
  #nearest(messageId: string): string | number {
    const seq = seqOfMessage(this.#host, messageId);
    if (seq === undefined) throw new PerdureError("not_found", `There is no message "${messageId}".`);
    const workspace = this.#needed;
    const found = placesUp(this.#host, seq, MAX_WAY).find((place) => workspace.hasPoint(String(place.seq)));
    if (found !== undefined) return String(found.seq);
    // Where the first point knows of no file, there was none before it.
    if (workspace.points()[0]?.version === 0) return NO_FILES;
    throw new PerdureError(
      "not_found",
      `What the files were at the message "${messageId}" is gone: only the newest points are kept (maxPoints).`,
    );
  }

  #pointOf(messageId: string): string | undefined {
    const seq = seqOfMessage(this.#host, messageId);
    return seq === undefined ? undefined : String(seq);
  }

  get #kept(): Workspace | undefined {
    const workspace = this.#workspace();
    return workspace instanceof Workspace ? workspace : undefined;
  }

  get #needed(): Workspace {
    const workspace = this.#kept;
    if (workspace !== undefined) return workspace;
    throw new PerdureError("bad_state", "These files have no history: they are not in the agent's own Workspace.");
  }
}
