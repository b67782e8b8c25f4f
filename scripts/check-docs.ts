import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { runTool, violationsOf } from "./run-tool.ts";
import { listPaths } from "./source-tree.ts";

/** A code block of a page: what it says and the line of its fence, counted from 1. */
interface Block {
  readonly page: string;
  readonly line: number;
  readonly extension: string;
  readonly code: string;
}

/**
 * Every ```ts and ```tsx block of `README.md` and `docs/*.md` compiles on its own against the public exports.
 * A block opts out with ```ts no-check. Every file of `src` and `test` that a page names is there.
 */
export async function checkDocs(root: string): Promise<string[]> {
  const pages = ["README.md", ...listPaths(root, "docs")].filter((path) => path.endsWith(".md"));
  const there = pages.filter((page) => existsSync(join(root, page)));
  const gone = there.flatMap((page) => goneFrom(root, page));
  const blocks = there.flatMap((page) => blocksOf(root, page));
  if (blocks.length === 0) return gone;

  // Inside the repository, so that the package resolves by its own name.
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "docs-"));
  try {
    const names = new Map<string, Block>();
    for (const block of blocks) {
      const name = `${block.page.replaceAll(/[^\w]/g, "-")}-${block.line}${block.extension}`;
      // Blank lines in front: the compiler then counts as the page does.
      writeFileSync(join(folder, name), "\n".repeat(block.line) + block.code);
      names.set(name, block);
    }
    const config = {
      extends: join(relative(folder, root), "tsconfig.json"),
      compilerOptions: { moduleDetection: "force", noEmit: true },
      files: [...names.keys()],
      include: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const result = await runTool("tsc", ["-p", folder, "--pretty", "false"], root);
    const wrong = violationsOf("tsc", result).map((line) => {
      const match = /(?:^|\/)([\w-]+\.tsx?)\((\d+),\d+\): (.*)$/.exec(line);
      const block = names.get(match?.[1] ?? "");
      return block === undefined ? line : `${block.page}:${match?.[2]}: ${match?.[3]}`;
    });
    return [...gone, ...wrong];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Files that a page names and that are not there. */
function goneFrom(root: string, page: string): string[] {
  const lines = readFileSync(join(root, page), "utf8").split("\n");
  return lines.flatMap((line, index) =>
    [...line.matchAll(/`((?:src|test)\/[\w./-]+\.tsx?)`/g)]
      .filter(([, file = ""]) => !existsSync(join(root, file)))
      .map(([, file = ""]) => `${page}:${index + 1}: ${file} is not there`),
  );
}

function blocksOf(root: string, page: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; language: string; info: string; code: string[] } | undefined;
  readFileSync(join(root, page), "utf8")
    .split("\n")
    .forEach((text, index) => {
      const fence = /^\s*```(\S*)\s*(.*)$/.exec(text);
      if (fence === null) return open?.code.push(text);
      if (open === undefined)
        open = { line: index + 1, language: fence[1] ?? "", info: (fence[2] ?? "").trim(), code: [] };
      else {
        const { line, language, info, code } = open;
        open = undefined;
        if (!["ts", "tsx", "typescript"].includes(language) || info === "no-check") return;
        blocks.push({ page, line, extension: language === "tsx" ? ".tsx" : ".ts", code: `${code.join("\n")}\n` });
      }
    });
  return blocks;
}
