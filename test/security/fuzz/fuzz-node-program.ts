import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createLogger, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { MockProvider } from "../../../packages/providers/src/mock/provider.ts";
import { collectGarbage } from "../../collect-garbage.ts";

/** What a node holds, after a collection of garbage. */
export interface Holdings {
  readonly heapBytes: number;
  readonly handles: number;
  readonly openFiles: number;
  readonly databaseBytes: number;
  /** What is not deleted: sandboxes, keys, webhooks, quotas, failed creations and kept volumes. */
  readonly records: number;
}

const counted = [
  "sandboxes WHERE state <> 'destroyed'",
  "apiKeys WHERE revokedAt IS NULL",
  "webhooks",
  "tenantQuotas",
  "failedCreations",
  "keptVolumes",
];

const config = parseNodeConfig(JSON.parse(process.argv[2] ?? "{}"));
const logger = createLogger({ logLevel: config.logLevel, logFormat: "json" });
const node = await startNode(config, { logger, providers: [new MockProvider()] });
process.send?.({ url: node.url, apiKey: readFileSync(node.apiKeyFile, "utf8").trim() });

const end = async () => {
  await node.stop();
  process.exit(0);
};
process.on("SIGTERM", end).on("disconnect", end);

function databaseHoldings(): Pick<Holdings, "databaseBytes" | "records"> {
  using database = new DatabaseSync(join(config.home, "node.db"), { readOnly: true });
  const number = (sql: string) => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  const pages = number("PRAGMA page_count") - number("PRAGMA freelist_count");
  const counts = counted.map((what) => number(`SELECT count(*) FROM ${what}`));
  return { databaseBytes: pages * number("PRAGMA page_size"), records: counts.reduce((sum, count) => sum + count, 0) };
}

process.on("message", () => {
  for (let round = 0; round < 3; round++) collectGarbage();
  const holdings: Holdings = {
    heapBytes: process.memoryUsage().heapUsed,
    handles: process.getActiveResourcesInfo().length,
    openFiles: readdirSync("/proc/self/fd").length,
    ...databaseHoldings(),
  };
  process.send?.(holdings);
});
