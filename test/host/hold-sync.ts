import fs from "node:fs";
import { onTestFinished } from "vitest";

type Done = (error: NodeJS.ErrnoException | null) => void;

/** The disk in the hands of the test: what `fdatasync` does, until the test ends. */
export interface HeldSync {
  /** Syncs that were asked for and not answered. */
  readonly waiting: number;
  /** Syncs that were asked for so far. */
  readonly asked: number;
  /** Answers what waits, and from now on lets every sync through. */
  release(): void;
  /** Fails what waits, and from now on every sync. */
  fail(): void;
}

/** From now on no log is synced until the test says so. Only the asynchronous call, which the host uses, is held. */
export function holdSync(): HeldSync {
  const real = fs.fdatasync;
  let mode: "hold" | "pass" | "fail" = "hold";
  let asked = 0;
  let held: { fd: number; done: Done }[] = [];
  const answer = (fd: number, done: Done): void => {
    if (mode === "hold") held.push({ fd, done });
    else if (mode === "pass") real(fd, done);
    else process.nextTick(done, Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" }));
  };
  const patched = (fd: number, done: Done): void => {
    asked++;
    answer(fd, done);
  };
  const settle = (next: typeof mode): void => {
    mode = next;
    const now = held;
    held = [];
    for (const { fd, done } of now) answer(fd, done);
  };
  Object.assign(fs, { fdatasync: patched });
  onTestFinished(() => {
    settle("pass");
    Object.assign(fs, { fdatasync: real });
  });
  return {
    get waiting() {
      return held.length;
    },
    get asked() {
      return asked;
    },
    release: () => settle("pass"),
    fail: () => settle("fail"),
  };
}
