import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Model } from "./model-types.ts";

/** Model calls counted in a file, so that the count outlives the process that made them. */
export interface CallCounter {
  /** The same model; each call first adds a line to the file, so a call that a kill cut short counts too. */
  wrap(model: Model): Model;
  /** All calls so far, of every process. */
  count(): number;
  /** How many calls each life made, oldest life first. */
  perProcess(): number[];
}

/** Counts in `file`, which is made with the first call. Wrap in the program, read in the test. */
export function countCalls({ file }: { readonly file: string }): CallCounter {
  const note = (): void => appendFileSync(file, `${process.pid}\n`);
  const lines = (): string[] => {
    if (!existsSync(file)) return [];
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  };
  return {
    wrap: (model) => ({
      specificationVersion: "v4",
      provider: model.provider,
      modelId: model.modelId,
      supportedUrls: model.supportedUrls,
      doGenerate(options) {
        note();
        return model.doGenerate(options);
      },
      doStream(options) {
        note();
        return model.doStream(options);
      },
    }),
    count: () => lines().length,
    perProcess: () => [...Map.groupBy(lines(), (pid) => pid).values()].map((calls) => calls.length),
  };
}
