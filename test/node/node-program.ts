import { existsSync, readFileSync } from "node:fs";
import { createLogger, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { collectGarbage } from "../collect-garbage.ts";

export interface NodeStarted {
  readonly url: string;
  readonly apiKey: string;
  readonly adopted: readonly string[];
  readonly rebuilt: readonly string[];
  readonly lost: readonly string[];
  readonly removed: readonly string[];
  /** The duration of the whole start, with the adoption of an earlier node's sandboxes. */
  readonly startMs: number;
}

const config = parseNodeConfig(JSON.parse(process.argv[2] ?? "{}"));
const beganAt = performance.now();
const node = await startNode(config, { logger: createLogger({ logLevel: config.logLevel, logFormat: "json" }) });
const { adopted, rebuilt, lost, removed } = node.reconciled;
process.send?.({
  url: node.url,
  // Only the first node of a cluster creates a key.
  apiKey: existsSync(node.apiKeyFile) ? readFileSync(node.apiKeyFile, "utf8").trim() : "",
  adopted,
  rebuilt,
  lost,
  removed,
  startMs: performance.now() - beganAt,
} satisfies NodeStarted);
const end = async () => {
  await node.stop();
  process.exit(0);
};
process.on("SIGTERM", end).on("disconnect", end);

process.on("message", () => {
  collectGarbage();
  process.send?.("collected");
});
