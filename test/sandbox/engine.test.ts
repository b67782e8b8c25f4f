import { expect, test } from "vitest";
import { engineHashes } from "../../src/toolbox/sandbox/quickjs/node/engine.ts";

test("the engine is the one that the tests in this folder were passed with", async () => {
  // When this fails the engine has changed: look at what changed, run all of test/sandbox, then write the new hashes here.
  expect(await engineHashes()).toEqual({
    "quickjs.wasm": "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9",
    "url.so": "af780a79f1fb131b5e6fa1d6fedc481e265420cf2f254fe966255230f4c1bc62",
    "encoding.so": "d501aa2a8410ee07c196103f0d169b226ec61c922883713510fd723fe14036c3",
    "headers.so": "42c847104d6aa8d4666fa41bb74d324c2ee9a4d15c2492fca013b1631232b011",
    "crypto.so": "fa26b6fafda251c3b1442dcc4c876b3ac73689639519f4ddfc2c410ebdb5b7c2",
    "structured-clone.so": "0ac5a36c0545c659ba6f9f8de5af11862df84546d151d0f15ec5184c95fd6cb3",
  });
});
