import { test } from "vitest";
import { runSession } from "./drive-session.ts";
import { startPlace } from "./place.ts";
test("one", async () => {
  const [kind, role, mode, ...points] = process.env.ONE!.split(",") as any[];
  const place = await startPlace(kind);
  for (const at of points) {
    const t = Date.now();
    const o = await runSession(place, { toolMode: mode, kill: { role, at: Number(at) } }).catch((e) => {
      console.log(e.message.slice(0, 12000), e.cause);
      return undefined;
    });
    console.log(at, Date.now() - t, o?.commits, o?.killed);
  }
  await place.stop();
}, 200_000);
