/** Lists what is wrong under `root`; an empty list passes. A guard that throws has failed too. */
export type Guard = (root: string) => Promise<string[]> | string[];

/** Runs the guards one after the other, writes what each found, and returns how many failed. */
export async function runGuards(
  root: string,
  guards: readonly (readonly [name: string, guard: Guard])[],
  write: (line: string) => void,
): Promise<number> {
  let failed = 0;
  for (const [name, guard] of guards) {
    const violations = await violationsOrThrown(root, guard);
    write(`${violations.length === 0 ? "ok  " : "FAIL"} ${name}`);
    for (const violation of violations) write(`       ${violation}`);
    if (violations.length > 0) failed += 1;
  }
  return failed;
}

async function violationsOrThrown(root: string, guard: Guard): Promise<string[]> {
  try {
    return await guard(root);
  } catch (thrown) {
    return [`the guard itself failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`];
  }
}
