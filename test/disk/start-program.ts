// Starts a host on a directory and says what became of it.
import { Agent, PerdureError } from "perdure";
import { createHost } from "perdure/node";

class Note extends Agent {}
const [dir = ""] = process.argv.slice(2);
try {
  await createHost({ agents: { Note }, dir }).stop();
  process.stdout.write("started\n");
} catch (thrown) {
  process.stdout.write(PerdureError.is(thrown) ? `${thrown.code}: ${thrown.message}\n` : `${String(thrown)}\n`);
}
