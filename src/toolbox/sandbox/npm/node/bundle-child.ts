// The process that bundles. It gets jobs and answers them, one at a time, and knows nothing else.
import type * as EsbuildModule from "esbuild";
import type { BuildOptions, Message } from "esbuild";
import { errorText } from "../../../../base/error.ts";
import { rewriteImports } from "../../quickjs/rewrite-imports.ts";
import { ENTRY, jailPlugin, REFUSED, refuse } from "./jail-plugin.ts";
import type { BundleAnswer, BundleFault, BundleJob } from "./protocol.ts";

type Esbuild = typeof EsbuildModule;

const MAX_SHOWN = 3;

process.on("message", (job: BundleJob) => {
  void runJob(job).then((answer) => process.send?.(answer));
});
process.on("disconnect", () => process.exit(0));

/** Does one job. Never throws. */
async function runJob(job: BundleJob): Promise<BundleAnswer> {
  let esbuild: Esbuild;
  try {
    esbuild = await import("esbuild");
  } catch {
    return fail("bad_config", "Packages in the sandbox need esbuild. Install it: npm install esbuild");
  }
  try {
    if (job.kind === "imports") return { ok: true, imports: await importsOf(esbuild, job) };
    return { ok: true, source: await bundleOne(esbuild, job) };
  } catch (thrown) {
    return { ok: false, fault: faultOf(thrown, job.kind) };
  }
}

async function importsOf(
  esbuild: Esbuild,
  { sources, own, store }: Extract<BundleJob, { kind: "imports" }>,
): Promise<string[]> {
  const found = new Set<string>();
  for (const [index, source] of sources.entries()) {
    await esbuild.build({
      ...common(store),
      // The first one is run as the body of a function.
      stdin: {
        contents: index === 0 ? `export default async () => {\n${rewriteImports(source)}\n}` : source,
        loader: "ts",
      },
      // What is imported by a name that is not written there cannot be looked at.
      logOverride: {
        "unsupported-dynamic-import": "error",
        "unsupported-require-call": "error",
        "indirect-require": "error",
      },
      plugins: [
        {
          name: "perdure-imports",
          setup(build) {
            build.onResolve({ filter: /.*/ }, ({ path, kind }) => {
              if (kind === "entry-point") return undefined;
              if (kind.startsWith("require")) {
                return refuse(`There is no require. Write import x from ${JSON.stringify(path.slice(0, 100))}.`);
              }
              if (!own.includes(path)) found.add(path);
              return { path, external: true };
            });
          },
        },
      ],
    });
  }
  return [...found];
}

async function bundleOne(esbuild: Esbuild, job: Extract<BundleJob, { kind: "bundle" }>): Promise<string> {
  const { store, allowed, specifier, names, hints } = job;
  const from = JSON.stringify(specifier);
  const build = async (entry: string) => {
    const plugins = [jailPlugin({ store, allowed, entry })];
    const result = await esbuild.build({ ...common(store), entryPoints: [ENTRY], metafile: true, plugins });
    const [output] = Object.values(result.metafile.outputs);
    return { text: result.outputFiles[0]?.text ?? "", exported: output?.exports ?? [] };
  };
  if (names !== null)
    return (await build(names.length === 0 ? `import ${from};` : `export { ${names.join(", ")} } from ${from};`)).text;
  const whole = `export * from ${from}; import * as all from ${from}; export default "default" in all ? all.default : all;`;
  const first = await build(whole);
  if (first.exported.some((name) => name !== "default") || hints.length === 0) return first.text;
  // A CommonJS package does not say what it exports. What the code reads of anything is all that can matter to it.
  const lines = hints.map(
    (name, index) => `const x${index} = all[${JSON.stringify(name)}]; export { x${index} as ${name} };`,
  );
  return (
    await build(
      `import * as all from ${from}; export default "default" in all ? all.default : all;\n${lines.join("\n")}`,
    )
  ).text;
}

function common(store: string) {
  return {
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    mainFields: ["module", "main"],
    conditions: ["module", "import"],
    target: "es2022",
    minifyWhitespace: true,
    minifySyntax: true,
    treeShaking: true,
    charset: "utf8",
    legalComments: "none",
    logLevel: "silent",
    define: { "process.env.NODE_ENV": '"production"', global: "globalThis" },
    absWorkingDir: store,
    // Else a tsconfig.json near a file could send its imports elsewhere.
    tsconfigRaw: "{}",
  } as const satisfies BuildOptions;
}

function faultOf(thrown: unknown, kind: BundleJob["kind"]): BundleFault {
  const messages =
    typeof thrown === "object" && thrown !== null && "errors" in thrown ? (thrown.errors as Message[]) : [];
  if (messages.length === 0)
    return { code: "call_failed", message: `The packages could not be bundled: ${errorText(thrown)}` };
  const refused = messages.find(({ detail }) => detail === REFUSED);
  if (refused !== undefined) return { code: "not_allowed", message: refused.text };
  const unknown = messages.find(({ id }) => id !== "" && id !== undefined);
  if (kind === "imports" && unknown !== undefined) {
    return {
      code: "not_allowed",
      message: 'Imports need the name of the package as a plain text, such as import("zod").',
    };
  }
  // The place is one of our own wrapping for code, and a host path for packages: neither is told.
  const text = messages
    .slice(0, MAX_SHOWN)
    .map((message) => message.text.replace(/"(?:\/|[A-Za-z]:\\)[^"]*"/g, "a file"))
    .join("; ");
  const line =
    kind === "imports" && messages[0]?.location ? ` (line ${Math.max(1, messages[0].location.line - 1)})` : "";
  return { code: "bad_input", message: `${text}${line}` };
}

function fail(code: BundleFault["code"], message: string): BundleAnswer {
  return { ok: false, fault: { code, message } };
}
