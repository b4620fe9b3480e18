import { readFileSync } from "node:fs";
import {
  createLogger,
  type NodeConfigOptions,
  parseNodeConfig,
  type RunningNode,
  type StartNodeOptions,
  startNode,
} from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import { afterAll } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";

export interface SdkNode extends RunningNode {
  readonly apiKey: string;
  readonly client: Client;
}

/** A node with real gVisor for the tests of one file. */
export async function useNode(config: NodeConfigOptions = {}): Promise<SdkNode> {
  const node = await startSdkNode({ home: sharedDirectory("sdk"), defaultProvider: "gvisor", ...config });
  afterAll(async () => {
    try {
      for await (const sandbox of node.client.sandboxes.list()) await sandbox.destroy();
    } finally {
      await node.stop();
    }
  });
  return node;
}

/** A node in this process, and a client with its first key. */
export async function startSdkNode(
  config: NodeConfigOptions,
  options: Partial<StartNodeOptions> = {},
): Promise<SdkNode> {
  const logger = createLogger({ logLevel: "silent", logFormat: "json" });
  const node = await startNode(parseNodeConfig({ port: 0, ...config }), { logger, ...options });
  const apiKey = readFileSync(node.apiKeyFile, "utf8").trim();
  const client = new Client({ url: node.url, apiKey });
  const stop = async () => {
    client.close();
    await node.stop();
  };
  return { ...node, apiKey, client, stop, [Symbol.asyncDispose]: stop };
}
