import { usageError } from "../command/usage-error.ts";

/** One end of a copy. */
export interface CopyPlace {
  /** The name that the user wrote; undefined for this machine. */
  readonly sandbox: string | undefined;
  readonly path: string;
}

export interface Copy {
  readonly direction: "in" | "out";
  readonly sandbox: string;
  readonly from: string;
  readonly to: string;
}

/** `SANDBOX:PATH`, or a path of this machine, which needs a slash before its first colon. */
export function parsePlace(text: string): CopyPlace {
  const colon = text.indexOf(":");
  const slash = text.indexOf("/");
  const isHost = colon <= 0 || (slash !== -1 && slash < colon);
  if (isHost) return { sandbox: undefined, path: text };
  // Without a path, the home directory.
  return { sandbox: text.slice(0, colon), path: text.slice(colon + 1) || "." };
}

export function parseCopy(source: string, target: string): Copy {
  const [from, to] = [parsePlace(source), parsePlace(target)];
  if (from.sandbox === undefined && to.sandbox !== undefined) {
    return { direction: "in", sandbox: to.sandbox, from: from.path, to: to.path };
  }
  if (from.sandbox !== undefined && to.sandbox === undefined) {
    return { direction: "out", sandbox: from.sandbox, from: from.path, to: to.path };
  }
  if (from.sandbox === undefined) {
    throw usageError(`cp: neither ${source} nor ${target} is in a sandbox`, "write one of them as SANDBOX:PATH");
  }
  throw usageError(
    "cp: cannot copy from sandbox to sandbox",
    "copy to this machine first, and from there to the other sandbox",
  );
}
