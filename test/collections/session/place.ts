// Servers that keep sessions, as processes that can be killed and started again where they were.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProgram } from "perdure/testing";
import type { Program } from "perdure/testing";
import { bundleProgram } from "../../support/bundle-program.ts";
import { env } from "../../crash/drive.ts";

/** Both backends that processes can share. */
export const kinds = ["perdure", "durable-streams"] as const;
export type Kind = (typeof kinds)[number];

/** A server. */
export interface Place {
  readonly kind: Kind;
  /** The address of a session there. */
  session(name: string): string;
  readonly program: Program;
  /** Ends it if it still runs, and starts it again on the same files and port. */
  restart(killAt?: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server of that kind on files of its own. */
export async function startPlace(kind: Kind): Promise<Place> {
  const dir = mkdtempSync(join(tmpdir(), "perdure-place-"));
  const file =
    kind === "perdure"
      ? await bundleProgram(new URL("./host-program.ts", import.meta.url))
      : new URL("./stream-server-program.ts", import.meta.url);
  let program: Program;
  let url = "";
  const start = async (killAt?: number) => {
    const port = url === "" ? "0" : new URL(url).port;
    program = startProgram(file, { dir, env: { ...env, PORT: port }, ...(killAt === undefined ? {} : { killAt }) });
    url = String((await program.waitFor("listening")).url);
  };
  await start();
  return {
    kind,
    get program() {
      return program;
    },
    session: (name) => `${url}${kind === "perdure" ? "/agents/room/" : "/v1/stream/"}${name}`,
    restart: async (killAt) => {
      await program.kill();
      await start(killAt);
    },
    stop: async () => {
      await program.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
