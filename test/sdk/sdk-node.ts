import { readFileSync } from "node:fs";
import { createLogger, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import { afterAll } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";

export interface SdkNode {
  readonly url: string;
  readonly apiKey: string;
  readonly client: Client;
}

/** A node with real gVisor for the tests of one file. */
export async function useNode(): Promise<SdkNode> {
  const config = parseNodeConfig({ home: sharedDirectory("sdk"), port: 0, defaultProvider: "gvisor" });
  const node = await startNode(config, { logger: createLogger({ logLevel: "silent", logFormat: "json" }) });
  const apiKey = readFileSync(node.apiKeyFile, "utf8").trim();
  const client = new Client({ url: node.url, apiKey });
  afterAll(async () => {
    try {
      for await (const sandbox of client.sandboxes.list()) await sandbox.destroy();
      client.close();
    } finally {
      await node.stop();
    }
  });
  return { url: node.url, apiKey, client };
}
