// Pictures that are moved out of messages, and data that is erased, with a kill after every commit.
import { crashMatrix } from "perdure/testing";
import { expect, test } from "vitest";
import { ackedIn, env, expectCovered, expectNoFailure, MATRIX_MS, remote } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { EraseResult } from "./crash-erase-types.ts";

const program = await bundleProgram(new URL("./crash-erase-program.ts", import.meta.url));

test(
  "no picture is lost while it is moved, and what was begun to be erased is erased to the last byte",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<EraseResult>({
      program,
      env,
      async drive(child) {
        const desk = remote(child, "Desk");
        await desk.call("fill");
        await desk.call("wipe");
      },
      finish: (child) => remote(child, "Desk").call<EraseResult>("result"),
      check(outcome) {
        expectNoFailure(outcome);
        const told = ackedIn(outcome.before.facts);
        const { messages, lost, secret, receipts } = outcome.after.result;
        expect(lost).toBe(0);
        if (told.has("wipe")) expect(receipts).toHaveLength(1);
        if (receipts.length === 0) {
          if (told.has("fill")) expect(messages).toBe(2);
          return;
        }
        expect(receipts).toMatchObject([{ done: true, messages: 2, files: 1 }]);
        expect({ messages, secret }).toEqual({ messages: 0, secret: [] });
      },
      // Background work may or may not share a commit.
      slack: 8,
    });
    expectCovered(matrix, 16);
    expect(matrix.reference.result).toMatchObject({ messages: 0, lost: 0, secret: [], receipts: [{ searchRows: 2 }] });
  },
);
