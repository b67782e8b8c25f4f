import { answerOperator } from "../../admin/door.ts";
import type { AdminHouse } from "../../admin/house.ts";
import { createMask } from "../../admin/mask.ts";
import type { AgentPath } from "../../port.ts";
import { agentId } from "../../wire/agent-path.ts";
import { lookInto } from "../look-into.ts";
import type { Storage } from "../storage.ts";
import { place } from "./admin-house.ts";
import { openDiskStorage } from "./disk-storage.ts";
import { resolveLimits } from "./options.ts";

/** A directory in which no host runs, until it is closed. */
interface Resting {
  answer(request: Request): Promise<Response>;
  close(): Promise<void>;
}

/** Opens a directory to whoever may open its files. Its lock is held meanwhile. @throws PerdureError `directory_locked` */
export function openResting(dir: string): Resting {
  const storage = openDiskStorage(dir, resolveLimits());
  const [house, mask] = [restingHouse(storage, dir), createMask()];
  return {
    answer: (request) => answerOperator(house, mask, { via: "files", role: "erase" }, request),
    close: () => storage.close(),
  };
}

/** What a directory opens to operators while no host runs in it, to whoever holds its lock. */
function restingHouse(storage: Storage, dir: string): AdminHouse {
  return {
    describe: () => ({ ...place(dir), running: false, ok: true, notices: storage.notices ?? [] }),
    list: (after, limit) => storage.index.list(after, limit),
    has: (id) => storage.index.has(id),
    isAwake: () => false,
    look: (id, read) => lookInto(storage, id, read),
    breathe: () => new Promise((resolve) => setImmediate(resolve)),
    async remove(path) {
      const top = agentId(path);
      const ids = storage.index.tree(top);
      const parent = path.length === 1 ? undefined : agentId(path.slice(0, -1) as unknown as AgentPath);
      storage.index.doom(ids, parent === undefined ? undefined : { child: top, parent });
      await storage.durable();
      for (const id of ids) await storage.remove(id);
      await storage.durable();
    },
    audit: storage.audit,
    copies: storage.copies,
    running: undefined,
  };
}
