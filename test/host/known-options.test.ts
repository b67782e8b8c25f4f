import { expect, test } from "vitest";
import { refuseUnknown } from "../../src/base/known-options.ts";

const names = { idleMs: true, graceMs: true } as const;

test("a name that no option has is refused, with the nearest one", () => {
  expect(() => refuseUnknown({ idleMS: 1 }, names, "createHost()")).toThrow(
    expect.objectContaining({
      code: "bad_config",
      message: 'createHost() has no option "idleMS". Did you mean "idleMs"? It has idleMs, graceMs.',
    }),
  );
  expect(() => refuseUnknown({ toString: 1 }, names, "x")).toThrow('x has no option "toString"');
});

test.each([[{ idleMs: undefined }], [{}], [undefined], [null], [false], ["text"]])("%j passes", (given) => {
  expect(() => refuseUnknown(given, names, "createHost()")).not.toThrow();
});
