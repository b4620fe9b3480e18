import { SandboxError } from "../errors/sandbox-error.ts";

export const DEFAULT_PORT = 4747;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where to look for a node, and with which key. */
export interface NodeAddress {
  /** Without a trailing slash. */
  readonly url: string;
  /** Undefined when no key was found. */
  readonly apiKey: string | undefined;
  /** The user named this node, so no other may take its place. */
  readonly isExplicit: boolean;
  /** The file with the first key of this machine's node; undefined in browsers. */
  readonly keyFile: string | undefined;
}

/**
 * `SANDPIPER_URL` and `SANDPIPER_API_KEY`; otherwise the node of this machine at `SANDPIPER_PORT`, whose key is in
 * `SANDPIPER_HOME`. A browser has none of these, so its node is at the default port, without a key.
 */
export function findNodeAddress(env: Environment = ownEnvironment()): NodeAddress {
  const explicit = env["SANDPIPER_URL"] || undefined;
  const keyFile = keyFileOf(env);
  return {
    url: checkedUrl(explicit ?? `http://127.0.0.1:${portOf(env)}`),
    apiKey: env["SANDPIPER_API_KEY"] || readKey(keyFile),
    isExplicit: explicit !== undefined,
    keyFile,
  };
}

interface Host {
  readonly env?: Environment;
  /** Absent before Node.js 20.16; the key then comes from the environment or the caller. */
  readonly getBuiltinModule?: (name: string) => unknown;
}

/** Undefined in browsers. */
function host(): Host | undefined {
  return (globalThis as { process?: Host }).process;
}

export function ownEnvironment(): Environment {
  return host()?.env ?? {};
}

function portOf(env: Environment): number {
  const text = env["SANDPIPER_PORT"];
  if (!text) return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new SandboxError("invalid_url", {
    message: `SANDPIPER_PORT is ${JSON.stringify(text)}, not a port`,
    hint: `set it to the port of the node, such as ${DEFAULT_PORT}`,
  });
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return text.replace(/\/+$/, "");
  throw new SandboxError("invalid_url", {
    message: `SANDPIPER_URL is ${JSON.stringify(text)}, not an HTTP URL`,
    hint: `set it to the URL of the node, such as http://127.0.0.1:${DEFAULT_PORT}`,
  });
}

function keyFileOf(env: Environment): string | undefined {
  const os = host()?.getBuiltinModule?.("node:os") as { homedir(): string } | undefined;
  const home = env["SANDPIPER_HOME"] || (os && `${os.homedir()}/.sandpiper`);
  return home && `${home.replace(/\/+$/, "")}/api-key`;
}

/** Undefined when there is none that this user may read; callers that need one report it. */
function readKey(file: string | undefined): string | undefined {
  const fs = host()?.getBuiltinModule?.("node:fs") as
    | { readFileSync(path: string, encoding: "utf8"): string }
    | undefined;
  if (file === undefined || fs === undefined) return undefined;
  try {
    return fs.readFileSync(file, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
