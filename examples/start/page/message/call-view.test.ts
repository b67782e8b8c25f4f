import { expect, test } from "vitest";
import { viewOfToolCall } from "./call-view.ts";

const names = (view: ReturnType<typeof viewOfToolCall>) => view.sections.map(({ name }) => name);

test("file tools: the path, and what came of it in two words", () => {
  const short = (name: string, input: object, output: object) => {
    const { brief, result } = viewOfToolCall(name, input, output);
    return `${brief}: ${result}`;
  };
  const path = "/a.md";
  expect(short("write", { path, content: "x\ny" }, { path, created: true })).toBe("/a.md: new file");
  expect(short("write", { path, content: "x" }, { path, created: false })).toBe("/a.md: written");
  expect(short("read", { path }, { kind: "text", content: "1\tx", totalLines: 1 })).toBe("/a.md: 1 line");
  expect(short("edit", { path, old_string: "a" }, { replacements: 2 })).toBe("/a.md: 2 changes");
  expect(short("list", { path: "/" }, { entries: [{}] })).toBe("/: 1 entry");
  expect(short("find", { pattern: "*.md" }, { paths: [] })).toBe("*.md: 0 found");
  expect(short("grep", { pattern: "tea" }, { matches: 3 })).toBe("tea: 3 matches");
  expect(short("delete", { path }, { deleted: true })).toBe("/a.md: deleted");
  expect(short("weather", { city: "Oslo" }, { celsius: 3 })).toBe("Oslo: ");
});

test("code, commands and what they printed stand by themselves", () => {
  const code = viewOfToolCall("execute", { code: "\nreturn 1;\n// b" }, { result: 1, logs: "hm" });
  expect([code.brief, ...names(code)]).toEqual(["return 1;", "Code", "Result", "Printed"]);
  const shell = viewOfToolCall("bash", { command: "ls", cwd: "/" }, { exitCode: 2, stdout: "", stderr: "no" });
  expect([shell.brief, shell.result, ...names(shell)]).toEqual(["ls", "exit code 2", "Input", "Command", "Errors"]);
  const extension = viewOfToolCall("load_extension", { name: "words", source: "({})" }, undefined);
  expect([extension.brief, ...names(extension)]).toEqual(["words", "Input", "Code"]);
});

test("what a tool found wrong is told, whatever form it has", () => {
  expect(viewOfToolCall("execute", { code: "x" }, { error: "Line 1." }).problem).toBe("Line 1.");
  expect(viewOfToolCall("fetch_url", { url: "x" }, { error: { code: "c", message: "No." } }).problem).toBe("No.");
  for (const odd of [undefined, null, "text", [], { error: 3 }]) {
    expect(viewOfToolCall("other", odd, odd)).toMatchObject({ problem: undefined, picture: undefined });
  }
});

test("a picture that was read is shown", () => {
  const output = { kind: "image", path: "/p.png", mediaType: "image/png", hash: "ab" };
  expect(viewOfToolCall("read", { path: "/p.png" }, output).picture).toEqual({ hash: "ab", path: "/p.png" });
  expect(viewOfToolCall("read", { path: "/p.png" }, { ...output, kind: "file" }).picture).toBeUndefined();
});
