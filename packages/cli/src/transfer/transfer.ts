import { basename, join, posix, resolve } from "node:path";
import { usageError } from "../usage-error.ts";

/** A file or directory to copy between this machine and a sandbox. */
export interface Transfer {
  readonly from: string;
  readonly to: string;
}

const examples = {
  upload: "--upload ./script.py:/home/user/script.py",
  download: "--download /home/user/result.csv:./result.csv",
} as const;

/** `SRC:DST`, split at the last colon. Paths inside a sandbox start at the working directory, when one was given. */
export function parseTransfer(option: keyof typeof examples, text: string, cwd: string | undefined): Transfer {
  const colon = text.lastIndexOf(":");
  const [from, to] = [text.slice(0, colon), text.slice(colon + 1)];
  if (colon === -1 || from === "" || to === "") {
    throw usageError(`--${option} ${text} is not SRC:DST`, `for example ${examples[option]}`);
  }
  const inside = (path: string) => (cwd === undefined ? path : posix.resolve(cwd, path));
  // A trailing slash names the directory to copy into, as it does for cp.
  const named = (path: string, directory: string) => (to.endsWith("/") ? join(directory, basename(path)) : directory);
  if (option === "download") return { from: inside(from), to: named(from, to) };
  return { from, to: named(resolve(from), inside(to)) };
}
