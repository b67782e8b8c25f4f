import { Agent, type AgentEnv, callable } from "perdure";

/** One note as clients see it. */
export interface Note {
  readonly id: number;
  readonly text: string;
  /** When its reminder rings, in milliseconds since the epoch. */
  readonly remindAt?: number;
  /** Its reminder has rung. */
  readonly rang?: boolean;
}

export interface NotesState {
  readonly notes: readonly Note[];
}

const MAX_TEXT = 500;
const MAX_NOTES = 100;

/** A list of notes with reminders. Every name is a list of its own; everyone who has it open sees the same. */
export class Notes extends Agent<AgentEnv, NotesState> {
  static {
    callable(this, "add");
    callable(this, "remove");
    callable(this, "remindIn");
  }
  override initialState: NotesState = { notes: [] };

  override onStart(): void {
    this
      .sql`CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, remind_at INTEGER, rang INTEGER)`;
  }

  /** GET answers with the list, POST adds its body. */
  override async onRequest(request: Request): Promise<Response> {
    try {
      if (request.method === "POST") this.add(await request.text());
    } catch (error) {
      return new Response(error instanceof Error ? error.message : "No.", { status: 400 });
    }
    return Response.json(this.state.notes);
  }

  add(text: string): void {
    if (typeof text !== "string" || text.trim() === "") throw new Error("A note needs some text.");
    if (this.state.notes.length >= MAX_NOTES) throw new Error(`${MAX_NOTES} notes are enough. Remove one first.`);
    this.sql`INSERT INTO note (text) VALUES (${text.trim().slice(0, MAX_TEXT)})`;
    this.publish();
  }

  remove(id: number): void {
    this.sql`DELETE FROM note WHERE id = ${id}`;
    this.publish();
  }

  /** Rings after so many seconds, also if the server is stopped and started in between. */
  async remindIn(id: number, seconds: number): Promise<void> {
    const { at } = await this.schedule(seconds, "ring", id);
    this.sql`UPDATE note SET remind_at = ${at}, rang = NULL WHERE id = ${id}`;
    this.publish();
  }

  ring(id: number): void {
    this.sql`UPDATE note SET remind_at = NULL, rang = 1 WHERE id = ${id}`;
    this.publish();
  }

  private publish(): void {
    const rows = this.sql<{ id: number; text: string; remind_at: number | null; rang: number | null }>`
      SELECT id, text, remind_at, rang FROM note ORDER BY id`;
    this.setState({
      notes: rows.map(({ id, text, remind_at, rang }) => ({
        id,
        text,
        ...(remind_at === null ? {} : { remindAt: remind_at }),
        ...(rang === null ? {} : { rang: true }),
      })),
    });
  }
}
