import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, parseNodeConfig, type RunningNode, startNode } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import { afterAll, beforeAll } from "vitest";

export interface SdkNode {
  readonly url: string;
  readonly apiKey: string;
  readonly client: Client;
}

/** A node with real gVisor for the tests of one file. */
export function useNode(): SdkNode {
  let home: string;
  let node: RunningNode | undefined;
  let started: SdkNode | undefined;
  const running = (): SdkNode => {
    if (started === undefined) throw new Error("the node has not been started");
    return started;
  };

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "sandpiper-sdk-"));
    const config = parseNodeConfig({ home, port: 0, defaultProvider: "gvisor" });
    node = await startNode(config, { logger: createLogger({ logLevel: "silent", logFormat: "json" }) });
    const apiKey = readFileSync(node.apiKeyFile, "utf8").trim();
    started = { url: node.url, apiKey, client: new Client({ url: node.url, apiKey }) };
  });

  afterAll(async () => {
    try {
      for await (const sandbox of running().client.sandboxes.list()) await sandbox.destroy();
      running().client.close();
    } finally {
      await node?.stop();
      rmSync(home, { recursive: true, force: true });
    }
  });

  return {
    get url() {
      return running().url;
    },
    get apiKey() {
      return running().apiKey;
    },
    get client() {
      return running().client;
    },
  };
}
