// Before `npm start`: an older Node cannot read what it is given, and says so in other words.
const oldest = /\d+/.exec(require("../package.json").engines.node)[0];
if (Number(process.versions.node.split(".")[0]) < Number(oldest)) {
  process.stderr.write(
    `Perdure needs Node ${oldest} or later; this is Node ${process.versions.node}. Install a newer one.\n`,
  );
  process.exit(1);
}
