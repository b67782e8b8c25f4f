// Loaded before anything else of `perdure/node`. On an older Node the SQLite binary does not fail, it crashes the process
// without a word; so nothing is lost by ending it here, with one.

/** The same as `engines` in package.json. */
const OLDEST = 22;

if (Number(process.versions.node.split(".")[0]) < OLDEST) {
  process.stderr.write(
    `Perdure needs Node ${OLDEST} or later; this is Node ${process.versions.node}. Install a newer one.\n`,
  );
  process.exit(1);
}
