import { expect, test } from "vitest";
import { defer } from "perdure/host";

test("what is deferred runs once, last first, when its scope is left", () => {
  const told: string[] = [];
  const work = (how: "end" | "return" | "throw") => {
    using _first = defer(() => void told.push("first"));
    using second = defer(() => void told.push("second"));
    if (how === "return") return;
    if (how === "throw") throw new Error("no");
    second[Symbol.dispose]();
    told.push("work");
  };
  work("end");
  expect(told.splice(0)).toEqual(["second", "work", "first"]);
  work("return");
  expect(told.splice(0)).toEqual(["second", "first"]);
  expect(() => work("throw")).toThrow("no");
  expect(told).toEqual(["second", "first"]);
});

test("what takes its time is waited for, and what it throws is thrown there", async () => {
  const told: string[] = [];
  const work = async () => {
    await using _ = defer(async () => {
      await Promise.resolve();
      told.push("closed");
    });
    told.push("work");
  };
  await work();
  expect(told).toEqual(["work", "closed"]);
  const fails = async () => {
    await using _ = defer(async () => Promise.reject(new Error("cannot close")));
  };
  await expect(fails()).rejects.toThrow("cannot close");
});
