import { expect, test } from "vitest";
import { checkHouse } from "../../scripts/check-house.ts";
import { plant } from "./plant.ts";

test("a fourth class in a row is found, through files", () => {
  const root = plant({
    "src/agent/a.ts": "export class A {}\nexport class B extends A {}\n",
    "src/agent/c.ts": 'import { B } from "./a.ts";\nexport abstract class C extends B {}\nclass D extends C {}\n',
  });
  expect(checkHouse(root)).toEqual(["src/agent/c.ts: 4 classes in a row (at most 3): D < C < B < A"]);
});

test("three in a row pass, on a class that is not ours too, and so does what a function makes", () => {
  const root = plant({
    "src/agent/a.ts": "export class A extends Error {}\nexport class B extends A {}\nexport class C extends B {}\n",
    "src/agent/d.ts": 'import { C } from "./a.ts";\nexport const make = () => class D extends C {};\n',
  });
  expect(checkHouse(root)).toEqual([]);
});

const symbol = (name: string) => `export const ${name}: unique symbol = Symbol("${name}");\n`;

test("a sixth symbol between classes is found", () => {
  const root = plant({
    "src/port.ts": symbol("hosted") + symbol("hostable"),
    "src/agent/a.ts": symbol("one") + symbol("two"),
    "src/parts/b.ts": symbol("three") + symbol("four"),
  });
  expect(checkHouse(root)).toEqual([
    "6 symbols between classes (at most 5): one (src/agent/a.ts), two (src/agent/a.ts), three (src/parts/b.ts), " +
      "four (src/parts/b.ts), hosted (src/port.ts), hostable (src/port.ts)",
  ]);
});

test("a symbol of one file, and those of other rooms, do not count", () => {
  const root = plant({
    "src/agent/a.ts": symbol("own").replace("export ", "") + symbol("one") + symbol("two") + symbol("three"),
    "src/tool/b.ts": symbol("four") + symbol("five") + symbol("six"),
  });
  expect(checkHouse(root)).toEqual([]);
});
