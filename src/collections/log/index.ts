/** `perdure/collections/log`: rows and writes by hand, and what a backend of one's own is made of. Docs: docs/collections.md. */
export type { LogCollection } from "../chat/agent-collections.ts";
export type { LogOptions, LogUtils, PlainOptions, SchemaOptions } from "./collection-options.ts";
export type { AppliedChange, ConfirmedRow, QuarantinedMessage, RowTable, RowValue, WriteReceipt } from "./row-log.ts";
export type { RowChange, RowCondition, RowProducer, RowWrite } from "../../wire/row-frames.ts";
export type { RowOptions } from "./rows.ts";
