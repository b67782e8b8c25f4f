import { afterAll, expect, test } from "vitest";
import { createBashSandbox } from "../../src/toolbox/sandbox/bash/bash-sandbox.ts";
import { type BashToolInput, type BashToolOutput, createBashTool } from "../../src/toolbox/workspace/bash-tool.ts";
import { Workspace } from "../../src/toolbox/workspace/workspace.ts";
import { probeHost } from "../chat/probe-host.ts";

const sandbox = createBashSandbox({ workers: 1 });
afterAll(() => sandbox.dispose());

async function shellOn(readOnly = false) {
  const { host } = await probeHost();
  const workspace = new Workspace({ host });
  const { execute } = createBashTool(workspace, { sandbox, readOnly });
  const bash = async (command: string, cwd = "/"): Promise<BashToolOutput> => {
    const input: BashToolInput = { command, cwd };
    return execute?.(input, { toolCallId: "1", messages: [], context: {} }) as Promise<BashToolOutput>;
  };
  return { workspace, bash };
}

test("the shell and the other tools see the same files", async () => {
  const { workspace, bash } = await shellOn();
  await workspace.writeFile("/src/a.txt", "b\na\n");
  const script = `
    sort a.txt > sorted.txt
    echo more >> a.txt
    mkdir -p empty/deep
    ln -s ../src/sorted.txt /src/link
    cat link
    cp -r /src /copy
    mv /copy/sorted.txt /moved.txt
    chmod 600 /moved.txt
    rm -r /copy
    echo AP8= | base64 -d > bytes.bin
    python3 -c "open('/src/py.txt', 'w').write('from python')"
    find /src | sort`;
  expect(await bash(script, "/src")).toEqual({
    exitCode: 0,
    stdout:
      "a\nb\n/src\n/src/a.txt\n/src/bytes.bin\n/src/empty\n/src/empty/deep\n/src/link\n/src/py.txt\n/src/sorted.txt\n",
    stderr: "",
  });
  expect(await workspace.readFile("/src/a.txt")).toBe("b\na\nmore\n");
  expect(await workspace.readFile("/moved.txt")).toBe("a\nb\n");
  expect(await workspace.stat("/moved.txt")).toMatchObject({ mode: 0o600 });
  expect(await workspace.readFile("/src/py.txt")).toBe("from python");
  expect([...(await workspace.readFileBytes("/src/bytes.bin"))]).toEqual([0, 255]);
  expect(await workspace.stat("/src/empty/deep")).toMatchObject({ type: "directory" });
  expect(await workspace.exists("/copy")).toBe(false);
  expect(await bash("cat /none; rmdir /src; echo x > /src; ls /src/a.txt/b")).toMatchObject({ stdout: "" });
});

test("a point before a command takes back what it did", async () => {
  const { workspace, bash } = await shellOn();
  await workspace.writeFile("/keep.txt", "as it was");
  workspace.mark("question");
  await bash("rm /keep.txt; mkdir /new; echo x > /new/file");
  workspace.restore("question");
  expect(await bash("ls; cat keep.txt")).toMatchObject({ stdout: "dev\nkeep.txt\ntmp\nas it was" });
});

test("a shell that may only read changes nothing", async () => {
  const { workspace, bash } = await shellOn(true);
  await workspace.writeFile("/a.txt", "a");
  const { version, ...before } = await workspace.info();
  await bash("echo x > /a.txt");
  await bash("rm -rf /a.txt; mkdir /d; mv /a.txt /b.txt; sed -i s/a/b/ /a.txt");
  expect(await workspace.info()).toEqual({ ...before, version });
  expect(await workspace.readFile("/a.txt")).toBe("a");
});
