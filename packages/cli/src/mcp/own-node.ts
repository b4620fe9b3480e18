import { randomBytes } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  createLogger,
  type NodeConfigOptions,
  parseNodeConfig,
  type RunningNode,
  startNode,
} from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";

/** The client is gone, so requests that are under way need little time. */
const STOP_GRACE_MS = 500;

/** A node for this program alone. Disposing it destroys its sandboxes and deletes its home directory. */
export interface OwnNode extends AsyncDisposable {
  readonly client: Client;
}

export interface OwnNodeOptions extends Pick<NodeConfigOptions, "defaultProvider" | "docker"> {
  /** Contains one home directory per node. */
  readonly directory: string;
  readonly imagesDir: string;
}

export async function startOwnNode({ directory, ...config }: OwnNodeOptions): Promise<OwnNode> {
  // Starts with the PID, which tells the next program whether this one still runs.
  const home = join(directory, `${process.pid}-${randomBytes(4).toString("hex")}`);
  return await openOwnNode(home, config);
}

/** Also opens a home directory that a dead program left. */
export async function openOwnNode(home: string, config: Omit<OwnNodeOptions, "directory">): Promise<OwnNode> {
  // Machines must end with their last sandbox, because the home directory is deleted.
  const vmDocker = { idleMs: 0 };
  const parsed = parseNodeConfig({ ...config, vmDocker, home, port: 0, stopGraceMs: STOP_GRACE_MS, logLevel: "error" });
  // Standard output carries the protocol.
  const logger = createLogger({ logLevel: "error", logFormat: "json", write: (line) => process.stderr.write(line) });
  const node = await startNode(parsed, { logger });
  try {
    const apiKey = (await readFile(node.apiKeyFile, "utf8")).trim();
    const client = new Client({ url: node.url, apiKey });
    return { client, [Symbol.asyncDispose]: () => end(node, { client, home }) };
  } catch (thrown) {
    await node.stop();
    throw thrown;
  }
}

async function end(
  node: RunningNode,
  { client, home }: { readonly client: Client; readonly home: string },
): Promise<void> {
  try {
    for await (const sandbox of client.sandboxes.list()) await sandbox.destroy();
    client.close();
  } finally {
    await node.stop();
  }
  // Kept after a failure: the next start finds leftovers by their home directory.
  await rm(home, { recursive: true, force: true, maxRetries: 5 });
}
