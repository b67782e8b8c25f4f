import { tryParseJson } from "../../base/json.ts";
import type { UIMessage } from "../../message/types.ts";
import { allMessages } from "../../store/message.ts";
import { openSqlite, plainSql } from "./open-sqlite.ts";

/** All that was said in an agent, by a copy of its rows that nobody else uses: the tree, in the order in which it was said. */
export function messagesOf(file: string): object[] {
  const db = openSqlite(file, { fileMustExist: true });
  try {
    db.pragma("locking_mode = EXCLUSIVE");
    return allMessages(plainSql(db)).map(({ body, pinned, ...row }) => {
      const said = tryParseJson(body) as Partial<UIMessage> | undefined;
      return { ...row, ...(pinned === 1 && { pinned: true }), message: said ?? body };
    });
  } finally {
    db.close();
  }
}
