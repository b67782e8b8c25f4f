import { expect, test } from "vitest";
import { createEgress, type EgressOptions } from "./egress.ts";

test("what cannot work is told when it is made", () => {
  const make = (options: Partial<EgressOptions>) => () => createEgress({ allow: [], ...options });
  expect(make({ allow: ["*"] })).toThrow(/nearly everything|\* where none/);
  expect(make({ allowPrivate: ["127.0.0.1"] })).toThrow(/host and a port/);
  expect(make({ allowPrivate: ["*:80"] })).toThrow(/host and a port/);
  expect(make({ limits: { totalMs: -1 } })).toThrow(/at least 1/);
  expect(make({ inject: [{ to: "a.example", headers: { "x\n": "1" } }] })).toThrow(/cannot be sent/);
  const out = createEgress({ allow: ["https://api.example.com/v1/"] });
  expect(out.check("https://api.example.com/v1/x")).toEqual({ allowed: true, rule: "https://api.example.com/v1/" });
  expect(out.check("https://api.example.com/v2/x")).toMatchObject({ allowed: false });
});
