/** `perdure/collections/log`: rows and writes by hand, and what a backend of one's own is made of. Docs: docs/collections.md. */
export type { LogCollection } from "../chat/agent-collections.ts";
export type { LogOptions, LogUtils, PlainOptions, SchemaOptions } from "./collection-options.ts";
export type {
  AppliedChange,
  ConfirmedRow,
  QuarantinedMessage,
  RowChange,
  RowCondition,
  RowProducer,
  RowTable,
  RowValue,
  RowWrite,
  WriteReceipt,
} from "./row-log.ts";
export type { RowOptions } from "./rows.ts";
