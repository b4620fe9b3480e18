import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { usageError } from "../command/usage-error.ts";

const DEFAULT_PORT = 4747;

/** Where a node is looked for, and with which credential. */
export interface NodeAddress {
  readonly url: string;
  /** Undefined when no key was found. */
  readonly apiKey: string | undefined;
  /** The user named this very node, so that nothing else may take its place. */
  readonly isExplicit: boolean;
  /** Where the first key of a node of this machine stands. */
  readonly keyFile: string;
}

/** `SANDPIPER_URL` and `SANDPIPER_API_KEY`; otherwise the node that keeps its state in `SANDPIPER_HOME`. */
export async function nodeAddress(env: NodeJS.ProcessEnv = process.env): Promise<NodeAddress> {
  const explicit = env["SANDPIPER_URL"] || undefined;
  const keyFile = join(env["SANDPIPER_HOME"] || join(homedir(), ".sandpiper"), "api-key");
  return {
    url: checkedUrl(explicit ?? `http://127.0.0.1:${portOf(env)}`),
    apiKey: env["SANDPIPER_API_KEY"] || (await readKey(keyFile)),
    isExplicit: explicit !== undefined,
    keyFile,
  };
}

function portOf(env: NodeJS.ProcessEnv): number {
  const text = env["SANDPIPER_PORT"];
  if (!text) return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw usageError(`SANDPIPER_PORT is ${JSON.stringify(text)}, which is no port`, "set it to the port of the node");
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return text.replace(/\/+$/, "");
  const message = `SANDPIPER_URL is ${JSON.stringify(text)}, which is no address of a node`;
  throw usageError(message, `for example http://127.0.0.1:${DEFAULT_PORT}`);
}

/** Undefined when there is none, or none that this user may read: whoever needs it says so. */
async function readKey(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, "utf8")).trim() || undefined;
  } catch {
    return undefined;
  }
}
