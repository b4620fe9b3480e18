import { describe, expect, it } from "vitest";
import { type Import, isTest, readImports } from "./imports.ts";

/** The folders of packages/node/src, innermost first. A folder may import folders above it in this table, never below. */
const order = [
  "config", // settings
  "records", // SQLite
  "auth", // keys, tokens, access
  "store", // object stores and checkpoints in them
  "cluster", // membership, leases, shared keys and quotas
  "ownership", // the right to run a sandbox
  "sandboxes", // the registry, creation, providers, warm pools
  "checkpoints", // save, restore, fork
  "containers", // images, caches, rebuilds
  "handoff", // where a sandbox is, and moving it
  "reconcile", // a start's handling of earlier sandboxes
  "forward", // requests and streams to other nodes
  "http", // REST
  "mcp", // MCP over HTTP
  "socket", // streams over WebSocket
  "session", // the protocol of /create and /attach
  "upgrade", // accepts WebSockets
  "webhooks",
  "telemetry", // logs and metrics
  "server", // listening, TLS
  "embedded", // sandboxes without a server; names the providers
  "diagnose", // sandpiper doctor
  "start", // puts a node together
  "daemon", // the program
] as const;

const NODE = "packages/node/src/";
const imports = readImports().filter(
  ({ from }) => from.startsWith(NODE) && !isTest(from) && !from.includes("/testing/"),
);

describe("the folders of the node", () => {
  it("are all in the table", () => {
    const folders = imports.map(({ from }) => folderOf(from)).filter((folder) => folder !== undefined);
    expect([...new Set(folders)].toSorted()).toEqual(order.toSorted());
  });

  it("import only folders above them in the table", () => {
    expect(imports.filter(isAgainstOrder).map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });
});

describe("the check of the folders' order", () => {
  it("finds an import against the table", () => {
    const from = `${NODE}sandboxes/sandbox-service.ts`;
    expect(isAgainstOrder({ from, to: `${NODE}http/app.ts` })).toBe(true);
    expect(isAgainstOrder({ from, to: `${NODE}records/database.ts` })).toBe(false);
  });
});

/** Undefined for the files in the root, which only export. */
function folderOf(path: string): string | undefined {
  return /^packages\/node\/src\/([^/]+)\//.exec(path)?.[1];
}

function isAgainstOrder({ from, to }: Pick<Import, "from" | "to">): boolean {
  const [importer, imported] = [folderOf(from), folderOf(to)];
  if (importer === undefined || imported === undefined || importer === imported) return false;
  return order.indexOf(imported as never) > order.indexOf(importer as never);
}
