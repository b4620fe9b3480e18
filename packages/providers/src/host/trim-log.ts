import { constants } from "node:fs";
import { openUntrusted } from "./untrusted-file.ts";

/** The limit of each log, because a guest may cause output without end. */
const MAX_LOG_BYTES = 1024 * 1024;
/** The unit of `stat`. */
const BLOCK_BYTES = 512;

/**
 * Empties a log that its guest has filled. A writer that does not append leaves a hole at the beginning of a truncated
 * file, so only its blocks count.
 */
export async function trimLog(path: string): Promise<void> {
  await using file = await openUntrusted(path, constants.O_WRONLY);
  if ((await file.stat()).blocks * BLOCK_BYTES > MAX_LOG_BYTES) await file.truncate(0);
}
