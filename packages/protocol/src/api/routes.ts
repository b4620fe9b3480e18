import { checkpointRoutes } from "./checkpoint-routes.ts";
import { containerRoutes } from "./container-routes.ts";
import { eventListSchema, listEventsQuerySchema } from "./event.ts";
import { sandboxMetricsSchema } from "./file.ts";
import { fileRoutes } from "./file-routes.ts";
import { createdKeySchema, createKeyBodySchema, keyListSchema, keyResourceSchema, updateKeyBodySchema } from "./key.ts";
import { machineRoutes } from "./machine-routes.ts";
import { networkBodySchema, networkPolicySchema } from "./network.ts";
import { networkAuditRoutes } from "./network-audit-routes.ts";
import * as node from "./node.ts";
import { poolListSchema, poolResourceSchema, setPoolBodySchema } from "./pool.ts";
import { previewRoutes } from "./preview-routes.ts";
import * as process from "./process.ts";
import * as quota from "./quota.ts";
import { bytes, change, empty, json, look, make, type Route, remove, SANDBOX } from "./route.ts";
import * as sandbox from "./sandbox.ts";
import { secretRoutes } from "./secret-routes.ts";
import { deleteSandboxQuerySchema } from "./volume.ts";

const PROCESS = `${SANDBOX}/processes/{process}`;

/** Every operation of the REST interface, by its id in the OpenAPI document. */
export const routes = {
  getHealth: {
    ...look,
    path: "/health",
    summary: "Get the node's health",
    access: "anyone",
    answer: json(node.healthSchema),
  },

  createSandbox: {
    ...make,
    path: "/v1/sandboxes",
    summary: "Create a sandbox; retry safely with an Idempotency-Key header",
    access: "sandboxes",
    body: json(sandbox.createSandboxRequestSchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  listSandboxes: {
    ...look,
    path: "/v1/sandboxes",
    summary: "List sandboxes, newest first",
    access: "read",
    query: sandbox.listSandboxesQuerySchema,
    answer: json(sandbox.sandboxPageSchema),
  },
  getSandbox: {
    ...look,
    path: SANDBOX,
    summary: "Get a sandbox",
    access: "sandbox",
    answer: json(sandbox.sandboxResourceSchema),
  },
  updateSandbox: {
    ...change,
    method: "PATCH",
    path: SANDBOX,
    summary: "Update a sandbox's name, labels, metadata, lifetimes and checkpoint policy",
    access: "sandbox",
    body: json(sandbox.updateSandboxBodySchema),
    answer: json(sandbox.sandboxResourceSchema),
  },
  deleteSandbox: {
    ...remove,
    path: SANDBOX,
    summary: "Destroy a sandbox, with or without its volumes",
    access: "sandbox",
    query: deleteSandboxQuerySchema,
  },
  execInSandbox: {
    ...change,
    path: `${SANDBOX}/exec`,
    summary: "Run a command and wait for its result",
    access: "sandbox",
    body: json(process.execBodySchema),
    answer: json(process.execResultSchema),
  },
  getSandboxHealth: {
    ...look,
    path: `${SANDBOX}/health`,
    summary: "Get whether a sandbox answers; does not restore it or count as use",
    access: "sandbox",
    answer: json(sandbox.sandboxHealthSchema),
  },
  getSandboxMetrics: {
    ...look,
    path: `${SANDBOX}/metrics`,
    summary: "Get a sandbox's resource usage",
    access: "sandbox",
    answer: json(sandboxMetricsSchema),
  },

  ...checkpointRoutes,
  ...containerRoutes,
  ...machineRoutes,
  getSandboxNetwork: {
    ...look,
    path: `${SANDBOX}/network`,
    summary: "Get which hosts a sandbox reaches",
    access: "sandbox",
    answer: json(networkPolicySchema),
  },
  setSandboxNetwork: {
    ...change,
    method: "PUT",
    path: `${SANDBOX}/network`,
    summary: "Set which hosts a sandbox reaches; applies at once and ends connections that are no longer allowed",
    // Not with the sandbox's token: code inside may have it, and must not open its own network.
    access: "sandboxes",
    body: json(networkBodySchema),
    answer: json(networkPolicySchema),
  },
  ...networkAuditRoutes,

  startProcess: {
    ...make,
    path: `${SANDBOX}/processes`,
    summary: "Start a process",
    access: "sandbox",
    body: json(process.startProcessBodySchema),
    answer: json(process.processResourceSchema),
  },
  listProcesses: {
    ...look,
    path: `${SANDBOX}/processes`,
    summary: "List the processes of a sandbox, including ended ones that are not deleted",
    access: "sandbox",
    answer: json(process.processListSchema),
  },
  getProcess: {
    ...look,
    path: PROCESS,
    summary: "Get a process",
    access: "sandbox",
    answer: json(process.processResourceSchema),
  },
  readProcessOutput: {
    ...look,
    path: `${PROCESS}/output`,
    summary: "Read a process's output from an offset",
    access: "sandbox",
    query: process.outputQuerySchema,
    answer: bytes,
  },
  writeProcessInput: {
    ...change,
    path: `${PROCESS}/stdin`,
    summary: "Write to a process's standard input",
    access: "sandbox",
    query: process.stdinQuerySchema,
    body: bytes,
    answer: json(process.stdinResultSchema),
  },
  signalProcess: {
    ...empty,
    path: `${PROCESS}/signal`,
    summary: "Send a signal to a process",
    access: "sandbox",
    body: json(process.signalBodySchema),
  },
  resizeProcess: {
    ...empty,
    path: `${PROCESS}/resize`,
    summary: "Resize a process's terminal",
    access: "sandbox",
    body: json(process.terminalSizeSchema),
  },
  waitForProcess: {
    ...look,
    path: `${PROCESS}/wait`,
    summary: "Wait for a process to end",
    access: "sandbox",
    query: process.waitQuerySchema,
    answer: json(process.processExitSchema),
  },
  deleteProcess: {
    ...remove,
    path: PROCESS,
    summary: "Kill a process and its descendants, and delete its record",
    access: "sandbox",
  },

  ...fileRoutes,
  ...previewRoutes,

  listEvents: {
    ...look,
    path: "/v1/events",
    summary: "List events; with Accept: text/event-stream, also stream new ones",
    access: "read",
    query: listEventsQuerySchema,
    answer: json(eventListSchema),
  },
  listNodes: {
    ...look,
    path: "/v1/nodes",
    summary: "List the nodes that share a store",
    access: "admin",
    answer: json(node.nodeListSchema),
  },
  drainNode: {
    ...empty,
    path: "/v1/nodes/drain",
    summary: "Drain the node that answers: save and release its sandboxes, and accept no new ones",
    access: "admin",
    body: json(node.drainNodeBodySchema),
  },
  listPools: {
    ...look,
    path: "/v1/pools",
    summary: "List warm pools and their hit rates",
    access: "admin",
    answer: json(poolListSchema),
  },
  setPool: {
    ...change,
    method: "PUT",
    path: "/v1/pools",
    summary: "Set the size of a warm pool",
    access: "admin",
    body: json(setPoolBodySchema),
    answer: json(poolResourceSchema),
  },
  ...secretRoutes,

  createKey: {
    ...make,
    path: "/v1/keys",
    summary: "Create an API key",
    access: "admin",
    body: json(createKeyBodySchema),
    answer: json(createdKeySchema),
  },
  listKeys: {
    ...look,
    path: "/v1/keys",
    summary: "List API keys",
    access: "admin",
    query: quota.usageQuerySchema,
    answer: json(keyListSchema),
  },
  updateKey: {
    ...change,
    method: "PATCH",
    path: "/v1/keys/{key}",
    summary: "Update an API key's name, expiry and quota",
    access: "admin",
    body: json(updateKeyBodySchema),
    answer: json(keyResourceSchema),
  },
  revokeKey: { ...remove, path: "/v1/keys/{key}", summary: "Revoke an API key", access: "admin" },
  listTenants: {
    ...look,
    path: "/v1/tenants",
    summary: "List the tenants that have a key or a quota",
    access: "admin",
    query: quota.usageQuerySchema,
    answer: json(quota.tenantListSchema),
  },
  updateTenant: {
    ...change,
    method: "PATCH",
    path: "/v1/tenants/{tenant}",
    summary: "Update the quota that all keys of a tenant share",
    access: "admin",
    body: json(quota.updateTenantBodySchema),
    answer: json(quota.tenantResourceSchema),
  },
  createWebhook: {
    ...make,
    path: "/v1/webhooks",
    summary: "Create a webhook",
    access: "admin",
    body: json(node.createWebhookBodySchema),
    answer: json(node.createdWebhookSchema),
  },
  listWebhooks: {
    ...look,
    path: "/v1/webhooks",
    summary: "List webhooks",
    access: "admin",
    answer: json(node.webhookListSchema),
  },
  deleteWebhook: { ...remove, path: "/v1/webhooks/{webhook}", summary: "Delete a webhook", access: "admin" },
  listAudit: {
    ...look,
    path: "/v1/audit",
    summary: "List audit log entries",
    access: "admin",
    query: node.listAuditQuerySchema,
    answer: json(node.auditListSchema),
  },
  verifyAudit: {
    ...look,
    path: "/v1/audit/verify",
    summary: "Verify that no audit log entry was removed or changed",
    access: "admin",
    answer: json(node.auditVerificationSchema),
  },
  verifyAuditFile: {
    ...look,
    method: "POST",
    path: "/v1/audit/verify",
    summary: "Verify the audit log entries of a file that the node shipped",
    access: "admin",
    body: bytes,
    answer: json(node.auditVerificationSchema),
  },
  getNodeMetrics: {
    ...look,
    path: "/metrics",
    summary: "Get the node's metrics in Prometheus format",
    access: "metrics",
    answer: { kind: "text" },
  },
} as const satisfies Record<string, Route>;

export type OperationId = keyof typeof routes;
