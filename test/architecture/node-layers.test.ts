import { expect, it } from "vitest";
import { describeFolderOrder, importsAgainst, ROOT } from "./folder-order.ts";

const directory = "packages/node/src";

const order = [
  "config", // settings
  "records", // SQLite
  "auth", // keys, tokens, access
  "audit", // the audit log: budget, shares, chain
  "flows", // what sandboxes did on the network: log, events, suggestions, approvals
  "ship", // audit entries and events to files, syslog and OpenTelemetry
  "store", // object stores and checkpoints in them
  "cluster", // membership, leases, shared keys and quotas
  "ownership", // the right to run a sandbox
  "network", // egress: policies, resolving, connecting, flows
  "secrets", // secrets of tenants, and their injection into requests
  "sandboxes", // the registry, creation, providers, warm pools
  "backup", // copies of a home or a store
  "checkpoints", // save, restore, fork
  "containers", // images, caches, rebuilds
  "handoff", // where a sandbox is, and moving it
  "reconcile", // a start's handling of earlier sandboxes
  "forward", // requests and streams to other nodes
  "preview", // who may use a sandbox's ports, under which URLs
  "http", // REST
  "proxy", // relays requests to ports of sandboxes
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
  ROOT, // what the package exports
];

describeFolderOrder({ directory, order });

it("the check finds an import against the node's table", () => {
  const from = `${directory}/sandboxes/sandbox-service.ts`;
  const [inward, outward] = [`${directory}/records/database.ts`, `${directory}/http/app.ts`];
  expect(importsAgainst({ directory, order }, [{ from, to: inward }])).toEqual([]);
  expect(importsAgainst({ directory, order }, [{ from, to: outward }])).toEqual([`${from} imports ${outward}`]);
});
