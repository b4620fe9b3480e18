import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createLogger, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import { MockProvider } from "../../packages/providers/src/mock/provider.ts";

/** The kinds of nodes whose homes are frozen: a standalone node, and a node of a cluster with its store beside it. */
export const frozenKinds = ["standalone", "cluster"] as const;
export type FrozenKind = (typeof frozenKinds)[number];

/** A node with simulated sandboxes on a frozen home, and a client with the key of that home. */
export async function startFrozen(directory: string, kind: FrozenKind) {
  const home = join(directory, kind);
  const cluster = { store: `file://${join(directory, "store")}`, leaseMs: 2000, maxSkewMs: 0 };
  const config = parseNodeConfig({ home, port: 0, ...(kind === "cluster" ? cluster : {}) });
  const logger = createLogger({ logLevel: "error", logFormat: "json" });
  const node = await startNode(config, { logger, providers: [new MockProvider()] });
  const client = new Client({ url: node.url, apiKey: readFileSync(node.apiKeyFile, "utf8").trim() });
  return { node, client };
}
