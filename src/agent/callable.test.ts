import { expect, test } from "vitest";
import { callable, findCallable, listCallables } from "./callable.ts";

class Base {
  static {
    callable(this, "shared", { description: "for all" });
    callable(this, "changed");
  }
  shared(a: number): number {
    return a + 1;
  }
  changed(): string {
    return "base";
  }
  hidden(): void {}
  get trap(): never {
    throw new Error("must not be read");
  }
}

class Sub extends Base {
  static {
    callable(this, "own", { streaming: true });
  }
  override changed(): string {
    return "sub";
  }
  own(): void {}
}

test("a callable method runs on its object, with what was said of it", () => {
  const found = findCallable(new Base(), "shared");
  expect([found.description, found.run(1)]).toEqual(["for all", 2]);
});

test("a subclass inherits what it does not override; what it overrides it must say again", () => {
  expect(findCallable(new Sub(), "shared").run(2)).toBe(3);
  expect(() => findCallable(new Sub(), "changed")).toThrow("Method changed is not callable");
  expect(findCallable(new Base(), "changed").run()).toBe("base");
  expect(() => findCallable(new Base(), "own")).toThrow("Method own does not exist");
});

test.each(["hidden", "constructor", "toString", "hasOwnProperty", "__defineGetter__"])("%s is not callable", (name) => {
  expect(() => findCallable(new Base(), name)).toThrow(`Method ${name} is not callable`);
});

test.each(["nothing", "__proto__", ""])("%j does not exist", (name) => {
  expect(() => findCallable(new Base(), name)).toThrow(`Method ${name} does not exist`);
});

test("a getter is not run by whoever names it", () => {
  expect(() => findCallable(new Base(), "trap")).toThrow("Method trap does not exist");
});

test("all of them can be listed, without touching getters", () => {
  expect([...listCallables(new Sub()).keys()].sort()).toEqual(["own", "shared"]);
  expect([...listCallables(new Base())]).toEqual([
    ["shared", { description: "for all" }],
    ["changed", {}],
  ]);
});

test("a name that is no method is refused when the class is made", () => {
  expect(() => callable(Base, "missing" as "shared")).toThrow('Base has no method "missing" to make callable.');
});

test("works as a standard decorator too", () => {
  class Decorated {
    add(): number {
      return 1;
    }
  }
  // What a compiler makes of `@callable({ description: "adds" })`.
  callable({ description: "adds" })(Decorated.prototype.add, { kind: "method" } as ClassMethodDecoratorContext);
  expect(findCallable(new Decorated(), "add").description).toBe("adds");
});
