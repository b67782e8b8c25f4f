import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Channel } from "perdure/messengers";

/**
 * A channel in which the process dies, once in `dir`.
 * @param killIn `create:2`: the network has done the second one, and nobody has heard of it; so with `edit` and `file`. `calls:2`:
 * that the second one will be made is stored, and the network was not called.
 * `message:1`, `press:1`: what the network brings was verified, and nothing of it is stored. `tells:2`: before the second
 * press is answered. `before:words`, `after:words`: before, after a message is changed to a text with these words; with
 * `-end` where no button is left below it. Else: never
 */
export function deadly(channel: Channel, dir: string, killIn = ""): Channel {
  const [op, at = ""] = killIn.split(":");
  const mark = join(dir, "killed");
  let count = 0;
  const dies = (isThen: boolean) => {
    if (!isThen || existsSync(mark)) return;
    writeFileSync(mark, "");
    process.kill(process.pid, "SIGKILL");
  };
  const passed = (one: string) => dies(one === op && ++count === Number(at));
  const { acknowledge } = channel;
  return {
    ...channel,
    parse(input, self) {
      const events = channel.parse(input, self);
      for (const { kind } of events) passed(kind);
      return events;
    },
    create: async (...args) => {
      passed("calls");
      const sent = await channel.create(...args);
      passed("create");
      return sent;
    },
    edit: async (...args) => {
      const [, , { text, buttons = [] }] = args;
      const isIt = (moment: string) =>
        text.includes(at) && (op === moment || (op === `${moment}-end` && buttons.length === 0));
      dies(isIt("before"));
      // Whoever looks at what is shown may be done before who pressed is told.
      if (op === "tells" && text.includes("(stopped)") && !existsSync(mark)) await new Promise(() => {});
      await channel.edit(...args);
      passed("edit");
      dies(isIt("after"));
    },
    ...(acknowledge !== undefined && {
      acknowledge: (...args) => {
        passed("tells");
        return acknowledge(...args);
      },
    }),
    sendFile: async (...args) => {
      const sent = await channel.sendFile?.(...args);
      passed("file");
      if (sent === undefined) throw new Error("The network has no files.");
      return sent;
    },
  };
}
