import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { usageError } from "../command/usage-error.ts";

/** Reads a secret from a file, or else from standard input; never from an argument, which other users could see. */
export async function readSecretValue(file: string | undefined): Promise<string> {
  if (file !== undefined) return withoutNewline(readFileSync(file, "utf8"));
  if (process.stdin.isTTY) {
    throw usageError("no value", "pipe it in, or give its file with --file");
  }
  return withoutNewline(await text(process.stdin));
}

function withoutNewline(content: string): string {
  return content.replace(/\r?\n$/, "");
}
