import { basename, join, posix, resolve } from "node:path";
import { invalidValue, usageError } from "../command/usage-error.ts";
import type { Notice } from "../output/print.ts";
import type { Progress } from "../output/progress.ts";

/** A file or directory to copy between this machine and a sandbox. */
export interface Transfer {
  readonly from: string;
  readonly to: string;
  /** As the user wrote it. */
  readonly shown: string;
}

export interface TransferOptions {
  readonly notice: Notice;
  readonly progress: Progress;
}

const examples = {
  upload: "--upload ./script.py:/home/user/script.py",
  download: "--download /home/user/result.csv:./result.csv",
} as const;

/** The options that decide where relative paths inside the sandbox start. */
export interface InsideOptions {
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
}

/** `SRC:DST`, split at the last colon. */
export function parseTransfer(option: keyof typeof examples, text: string, options: InsideOptions): Transfer {
  const colon = text.lastIndexOf(":");
  const [from, to] = [text.slice(0, colon), text.slice(colon + 1)];
  if (colon === -1 || from === "" || to === "") {
    throw invalidValue(option, { value: text, expected: "SRC:DST", hint: `for example ${examples[option]}` });
  }
  // A trailing slash names the directory to copy into, as it does for cp.
  const named = (path: string, directory: string) => (to.endsWith("/") ? join(directory, basename(path)) : directory);
  const shown = `--${option} ${text}`;
  const inside = insidePath(option === "upload" ? to : from, options, shown);
  if (option === "upload") return { from, to: named(resolve(from), inside), shown };
  return { from: inside, to: named(from, to), shown };
}

function insidePath(path: string, { cwd, user }: InsideOptions, shown: string): string {
  if (cwd !== undefined) return posix.resolve(cwd, path);
  if (user !== undefined && !posix.isAbsolute(path)) {
    const message = `${shown}: relative path ${path} is ambiguous with --user ${user}`;
    throw usageError(message, "write an absolute path, or set --cwd, where relative paths then start");
  }
  return path;
}
