import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Channel } from "perdure/messengers";

/**
 * A channel in which the process dies in the middle, once in `dir`: the network has done it, and nobody has heard of it.
 * @param killIn `create:2`: of the second one. Undefined: never
 */
export function deadly(channel: Channel, dir: string, killIn = ""): Channel {
  const [op, at] = killIn.split(":");
  const mark = join(dir, "killed");
  let count = 0;
  const passed = (one: string) => {
    if (one !== op || existsSync(mark) || ++count !== Number(at)) return;
    writeFileSync(mark, "");
    process.kill(process.pid, "SIGKILL");
  };
  return {
    ...channel,
    create: async (...args) => {
      const sent = await channel.create(...args);
      passed("create");
      return sent;
    },
    edit: async (...args) => {
      await channel.edit(...args);
      passed("edit");
    },
    sendFile: async (...args) => {
      const sent = await channel.sendFile?.(...args);
      passed("file");
      if (sent === undefined) throw new Error("The network has no files.");
      return sent;
    },
  };
}
