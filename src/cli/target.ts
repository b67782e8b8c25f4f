import fs from "node:fs";
import { request as ask } from "node:http";
import path from "node:path";
import { Readable } from "node:stream";
import { ADMIN_PREFIX, OPERATOR_HEADER } from "../admin/house.ts";
import { errorText, PerdureError } from "../base/error.ts";
import { adminSocketOf, checkSocketOwner } from "../host/node/admin-place.ts";

/** Which host or directory a command is about. */
interface TargetOptions {
  readonly dir: string;
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly who: string;
  /** How long a question may wait for the first byte of its answer, in ms. */
  readonly patienceMs?: number;
}

/** A host that works answers at once; one that is stopped, or in a loop, holds its lock and says nothing. */
const PATIENCE_MS = 30_000;

/** Asks a host, or a directory at rest. */
export interface Target {
  /** @param place behind `/_perdure/v1/` @param body JSON, or bytes */
  ask(method: string, place: string, body?: object | Blob, signal?: AbortSignal): Promise<Response>;
  close(): Promise<void>;
  /** No host runs: what takes the agents' code cannot be done. */
  readonly isAtRest: boolean;
}

/** Nobody answers, or the directory is locked by somebody who does not. */
export class Unreached extends Error {}

/** Somebody is there, and does not answer. */
class Silent extends Unreached {}

/**
 * Opens what a command is about: the host at a URL; else the host of a directory by its socket; else the directory itself.
 * @throws Unreached; PerdureError for a URL or a directory that makes no sense
 */
export async function openTarget(options: TargetOptions): Promise<Target> {
  const { dir, url, token, who, patienceMs = PATIENCE_MS } = options;
  const headers = { [OPERATOR_HEADER]: encodeURIComponent(who), "content-type": "application/json" };
  if (url !== undefined) return patient(overUrl(url, token, headers), url, patienceMs);
  if (!fs.existsSync(path.join(dir, "host.db")) && !fs.existsSync(path.join(dir, "agents")))
    throw new PerdureError(
      "bad_config",
      `There are no agents in ${dir}. Name the directory of the host with --dir, or its address with --url.`,
    );
  const socketPath = adminSocketOf(dir);
  if (socketPath !== undefined && fs.existsSync(socketPath)) {
    checkSocketOwner(socketPath);
    const bySocket: Target = {
      ask: (method, place, body, signal) => overSocket(socketPath, method, place, headers, body, signal),
      close: () => Promise.resolve(),
      isAtRest: false,
    };
    const target = patient(bySocket, dir, patienceMs);
    if (await isThere(target)) return target;
  }
  return atRest(dir, headers);
}

/** Whether a host answers. What a killed host has left at the place of its socket does not. @throws Unreached if one is silent */
async function isThere(target: Target): Promise<boolean> {
  try {
    const { body } = await target.ask("GET", "host");
    // Else the connection stays open, and this process with it.
    await body?.cancel();
    return true;
  } catch (thrown) {
    if (thrown instanceof Silent) throw thrown;
    return false;
  }
}

/** Does not wait forever for an answer to begin, where that takes no work of an agent. */
function patient(target: Target, where: string, ms: number): Target {
  return {
    ...target,
    async ask(method, place, body, signal) {
      if (method !== "GET") return target.ask(method, place, body, signal);
      const limit = new AbortController();
      const timer = setTimeout(() => limit.abort(), ms);
      try {
        const both = signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]);
        return await target.ask(method, place, body, both);
      } catch (thrown) {
        if (!limit.signal.aborted) throw thrown;
        throw new Silent(
          `The host of ${where} has not answered in ${ms / 1000} s: its process is stopped, or too busy.`,
        );
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

function overUrl(url: string, token: string | undefined, headers: Record<string, string>): Target {
  const base = URL.parse(url);
  if (base === null || !/^https?:$/.test(base.protocol))
    throw new PerdureError("bad_config", `${url} is no http or https URL.`);
  if (token === undefined || token === "")
    throw new PerdureError(
      "bad_config",
      "Set PERDURE_TOKEN to a token of the host's `admin.token`. See `perdure docs operate`.",
    );
  return {
    async ask(method, place, body, signal) {
      const sent = { method, headers: { ...headers, authorization: `Bearer ${token}` }, redirect: "error" } as const;
      try {
        return await fetch(new URL(`${ADMIN_PREFIX}v1/${place}`, base), {
          ...{ ...sent, signal: signal ?? null },
          ...(body !== undefined && { body: toBody(body) }),
        });
      } catch (thrown) {
        if (signal?.aborted === true) throw thrown;
        throw new Unreached(`No host answers at ${base.origin}: ${errorText((thrown as Error).cause ?? thrown)}`);
      }
    },
    close: () => Promise.resolve(),
    isAtRest: false,
  };
}

function toBody(body: object | Blob): string | Blob {
  return body instanceof Blob ? body : JSON.stringify(body);
}

function overSocket(
  socketPath: string,
  method: string,
  place: string,
  headers: Record<string, string>,
  body: object | Blob | undefined,
  signal: AbortSignal | undefined,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const options = {
      socketPath,
      method,
      path: `${ADMIN_PREFIX}v1/${place}`,
      headers: { ...headers, host: "localhost" },
      agent: false,
      signal,
    };
    const asked = ask(options, (response) => {
      const stream = Readable.toWeb(response) as ReadableStream<Uint8Array>;
      resolve(new Response(stream, { status: response.statusCode ?? 500 }));
    });
    asked.on("error", (thrown) =>
      reject(signal?.aborted === true ? thrown : new Unreached(`The host has gone away: ${errorText(thrown)}`)),
    );
    if (!(body instanceof Blob)) return void asked.end(body === undefined ? undefined : JSON.stringify(body));
    Readable.fromWeb(body.stream() as Parameters<typeof Readable.fromWeb>[0])
      .on("error", (thrown) => asked.destroy(thrown))
      .pipe(asked);
  });
}

/** Takes the lock of the directory: meanwhile no host can start there. */
async function atRest(dir: string, headers: Record<string, string>): Promise<Target> {
  // A running host is asked without what this needs.
  const { openResting } = await import("../host/node/resting-house.ts");
  const resting = openLocked(() => openResting(dir));
  return {
    ask(method, place, body) {
      const sent = { method, headers, ...(body !== undefined && { body: toBody(body) }) };
      return resting.answer(new Request(`http://localhost${ADMIN_PREFIX}v1/${place}`, sent));
    },
    close: () => resting.close(),
    isAtRest: true,
  };
}

function openLocked<T>(open: () => T): T {
  try {
    return open();
  } catch (thrown) {
    if (PerdureError.is(thrown, "directory_locked")) throw new Unreached(errorText(thrown));
    throw thrown;
  }
}
