import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { usageError } from "../command/usage-error.ts";

const DEFAULT_PORT = 4747;

/** Where to look for a node, and with which key. */
export interface NodeAddress {
  readonly url: string;
  /** Undefined when no key was found. */
  readonly apiKey: string | undefined;
  /** The user named this node, so no other may take its place. */
  readonly isExplicit: boolean;
  /** The file with the first key of this machine's node. */
  readonly keyFile: string;
}

/** `SANDPIPER_URL` and `SANDPIPER_API_KEY`; otherwise the node whose home directory is `SANDPIPER_HOME`. */
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
  throw usageError(
    `SANDPIPER_PORT is ${JSON.stringify(text)}, not a port`,
    "set it to the port of the node, such as 4747",
  );
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return text.replace(/\/+$/, "");
  const message = `SANDPIPER_URL is ${JSON.stringify(text)}, not an HTTP URL`;
  throw usageError(message, `set it to the URL of the node, such as http://127.0.0.1:${DEFAULT_PORT}`);
}

/** Undefined when there is none that this user may read; callers that need one report it. */
async function readKey(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, "utf8")).trim() || undefined;
  } catch {
    return undefined;
  }
}
