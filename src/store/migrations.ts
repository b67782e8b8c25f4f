import { PerdureError } from "../base/error.ts";
import type { Sql } from "../port.ts";
import { actionSchema } from "./action.ts";
import { agentRunIdentitySchema, agentRunLineageSchema, agentRunSchema, agentRunSessionSchema } from "./agent-run.ts";
import { backgroundCallSchema } from "./background-call.ts";
import { callIdSchema } from "./call-id.ts";
import { budgetGrantSchema } from "./budget-grant.ts";
import { cellSchema } from "./cell.ts";
import { compactionSchema, compactionWordsSchema } from "./compaction.ts";
import { configSchema } from "./config.ts";
import { childSchema } from "./child.ts";
import { deliveryFileSchema, deliverySchema } from "./delivery.ts";
import { fiberCauseSchema, fiberSchema } from "./fiber.ts";
import { fileBodySchema } from "./file-body.ts";
import { fileSchema } from "./file.ts";
import { callRequestSchema, frameSchema } from "./frame.ts";
import { inboundSchema } from "./inbound.ts";
import { messengerStateSchema } from "./messenger-state.ts";
import { messageIdentitySchema, messageSchema, messageTreeSchema } from "./message.ts";
import { queueCauseSchema, queueSchema } from "./queue.ts";
import { runLineageSchema, runSchema } from "./run.ts";
import { scheduleCauseSchema, scheduleSchema } from "./schedule.ts";
import { chatContextSchema, sessionSchema } from "./session.ts";
import { stateSchema } from "./state.ts";
import { streamSchema } from "./stream.ts";
import { submissionSchema } from "./submission.ts";
import { taskSchema } from "./task.ts";
import {
  approvalGoneSchema,
  approvalSchema,
  approverIdentitySchema,
  callResultSchema,
  deadlineSchema,
  parkedCallSchema,
  toolCallSchema,
} from "./tool-call.ts";
import { toolStepSchema } from "./tool-step.ts";
import {
  turnCauseSchema,
  turnIdentitySchema,
  turnInboxSchema,
  turnProgressSchema,
  turnSchema,
  turnSessionSchema,
  turnsOfSessionSchema,
} from "./turn.ts";
import { usageTotalSchema } from "./usage-total.ts";
import { usageSchema } from "./usage.ts";

/** One step of the schema. Once released it never changes: a correction is a new step. */
export interface Migration {
  readonly id: number;
  readonly statements: readonly string[];
}

/** The framework's tables in every agent database. All names start with `perdure_`. */
export const migrations: readonly Migration[] = [
  { id: 1, statements: [...stateSchema, ...childSchema, ...scheduleSchema, ...queueSchema, ...fiberSchema] },
  { id: 2, statements: [...messageSchema, ...turnSchema, ...streamSchema, ...chatContextSchema, ...approvalSchema] },
  {
    id: 3,
    statements: [
      ...configSchema,
      ...usageSchema,
      ...usageTotalSchema,
      ...budgetGrantSchema,
      ...turnInboxSchema,
      ...submissionSchema,
      ...toolCallSchema,
    ],
  },
  { id: 4, statements: [...agentRunSchema, ...runSchema, ...taskSchema] },
  {
    id: 5,
    statements: [...messageTreeSchema, ...sessionSchema, ...turnSessionSchema, ...cellSchema, ...compactionSchema],
  },
  { id: 6, statements: [...fileSchema, ...fileBodySchema, ...parkedCallSchema, ...actionSchema] },
  {
    id: 7,
    statements: [...messageIdentitySchema, ...turnIdentitySchema, ...approverIdentitySchema, ...agentRunIdentitySchema],
  },
  { id: 8, statements: callResultSchema },
  { id: 9, statements: toolStepSchema },
  { id: 10, statements: turnProgressSchema },
  { id: 11, statements: [...agentRunLineageSchema, ...runLineageSchema] },
  { id: 12, statements: callIdSchema },
  { id: 13, statements: [...turnCauseSchema, ...scheduleCauseSchema, ...queueCauseSchema, ...fiberCauseSchema] },
  { id: 14, statements: compactionWordsSchema },
  { id: 15, statements: backgroundCallSchema },
  { id: 16, statements: agentRunSessionSchema },
  { id: 17, statements: deadlineSchema },
  { id: 18, statements: turnsOfSessionSchema },
  { id: 19, statements: [...inboundSchema, ...deliverySchema] },
  { id: 20, statements: messengerStateSchema },
  { id: 21, statements: deliveryFileSchema },
  // From here on tables may be missing (`late-tables.ts`), which versions that know fewer steps could not read.
  { id: 22, statements: approvalGoneSchema },
  { id: 23, statements: [...frameSchema, ...callRequestSchema] },
];

/** Names that `this.sql` may not touch. */
export const RESERVED_PREFIX = "perdure_";

/** The newest step that a database has had; 0: none. */
export function schemaVersion(db: Sql): number {
  const [table] = db.sql<{ n: number }>("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'perdure_migration'");
  if (table?.n === 0) return 0;
  return db.sql<{ version: number }>("SELECT coalesce(max(id), 0) AS version FROM perdure_migration")[0]?.version ?? 0;
}

/**
 * Brings a database with all tables to the newest schema, one transaction per step. One that a newer version wrote is left
 * untouched. Databases of agents: `migrateLate()`.
 * @throws PerdureError `database_newer`
 */
export function migrate(db: Sql, steps: readonly Migration[] = migrations): void {
  const version = schemaVersion(db);
  const newest = steps.at(-1)?.id ?? 0;
  if (version > newest) {
    throw new PerdureError(
      "database_newer",
      `This database has schema ${version}, but this version of Perdure only knows schemas up to ${newest}. ` +
        "Run the version that wrote it, or a later one. Nothing was changed.",
    );
  }
  if (version === 0) db.sql("CREATE TABLE IF NOT EXISTS perdure_migration (id INTEGER PRIMARY KEY) STRICT");
  for (const step of steps) {
    if (step.id <= version) continue;
    db.tx(() => {
      for (const statement of step.statements) db.sql(statement);
      db.sql("INSERT INTO perdure_migration (id) VALUES (?)", step.id);
    });
  }
}

/** Notes in a database with all tables of the newest schema that it has had every step. */
export function markSchema(db: Sql): void {
  for (const { id } of migrations) db.sql("INSERT INTO perdure_migration (id) VALUES (?)", id);
}
