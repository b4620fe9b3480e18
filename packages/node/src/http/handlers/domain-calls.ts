import { requireTenantName } from "../../auth/tenants.ts";
import { findCheckpoint } from "../../checkpoints/find-checkpoint.ts";
import { moveSandbox } from "../../forward/move-sandbox.ts";
import type { Handlers } from "../call.ts";
import { requestBytes } from "../request-bytes.ts";

const DEFAULT_LIMIT = 100;
/** More than all rotated files of a node together, with the default settings. */
const MAX_AUDIT_FILE_BYTES = 4 * 1024 ** 3;

/** Operations that are one call of another part of the node; the table names the call and its arguments. */
export const domainCalls = {
  getSandbox: ({ principal, params, saved, deps }) =>
    saved === undefined
      ? deps.sandboxes.get(principal, params.id)
      : deps.access.resource(principal, saved.record, saved.owner),
  updateSandbox: ({ principal, params, body, deps }) => deps.sandboxes.update(principal, params.id, body),
  deleteSandbox: ({ principal, params, query, deps }) => deps.sandboxes.remove(principal, params.id, query),
  getSandboxHealth: ({ principal, params, saved, deps }) =>
    saved === undefined
      ? deps.sandboxes.health(principal, params.id)
      : { healthy: false, state: deps.access.resource(principal, saved.record, null).state },
  getSandboxNetwork: ({ principal, params, saved, deps }) =>
    saved === undefined
      ? deps.sandboxNetworks.get(principal, params.id)
      : deps.access.resource(principal, saved.record, null).network,
  setSandboxNetwork: ({ principal, params, body, deps }) => deps.sandboxNetworks.set(principal, params.id, body),
  getSandboxMetrics: ({ open }) => open().metrics(),
  forkSandbox: ({ principal, params, body, deps }) => itemsOf(deps.forks.fork(principal, params.id, body)),
  pauseSandbox: ({ principal, params, deps }) => deps.checkpoints.pause(principal, params.id),
  resumeSandbox: ({ principal, params, deps }) => deps.checkpoints.resume(principal, params.id),
  rollbackSandbox: ({ principal, params, body, deps }) => deps.checkpoints.rollback(principal, params.id, body),
  rebuildSandbox: ({ principal, params, deps }) => deps.rebuilds.rebuild(principal, params.id),
  stopSandbox: ({ principal, params, body, deps }) => deps.stops.stop(principal, params.id, body),
  startSandbox: ({ principal, params, deps }) => deps.stops.start(principal, params.id),
  handoffSandbox: ({ principal, params, body, request, deps }) =>
    deps.locator.bring(principal, params.id, { takeover: body.takeover ?? false, signal: request.signal }),

  moveSandbox: ({ principal, params: { id }, body, request, requestId, deps }) =>
    moveSandbox(deps, { id, body, principal, request, requestId }),

  createCheckpoint: ({ principal, params, body, deps }) => deps.checkpoints.create(principal, params.id, body),
  listCheckpoints: ({ principal, params, saved, deps }) =>
    itemsOf(saved?.checkpoints.toReversed() ?? deps.checkpoints.list(principal, params.id)),
  getCheckpoint: ({ principal, params, saved, deps }) =>
    saved === undefined
      ? deps.checkpoints.get(principal, params.id, params.checkpoint)
      : findCheckpoint(saved, params.checkpoint),
  deleteCheckpoint: ({ principal, params, deps }) => deps.checkpoints.remove(principal, params.id, params.checkpoint),

  listCaches: ({ principal, deps }) => itemsOf(deps.containers.listCaches(principal)),
  clearCache: ({ principal, params: { project, cache: name }, deps }) =>
    deps.containers.clearCache(principal, { project, name }),
  listVolumes: ({ principal, deps }) => itemsOf(deps.volumes.list(principal)),
  removeVolume: ({ principal, params, deps }) => deps.volumes.remove(principal, params.volume),

  listMachines: ({ principal, deps }) => itemsOf(deps.machines.list(principal)),
  getMachine: ({ principal, params, deps }) => deps.machines.get(principal, params.machine),
  stopMachine: ({ principal, params, body, deps }) => deps.machines.stop(principal, params.machine, body),

  createSecret: ({ principal, body, deps }) => deps.secrets.create(principal.tenant, body),
  listSecrets: ({ principal, deps }) => itemsOf(deps.secrets.list(principal.tenant)),
  updateSecret: ({ principal, params, body, deps }) => deps.secrets.update(principal.tenant, params.secret, body),
  deleteSecret: ({ principal, params, deps }) => deps.secrets.remove(principal.tenant, params.secret),

  createKey: ({ body, deps }) => deps.keys.create(body),
  async listKeys({ query, deps }) {
    const [keys, usageOf] = [await deps.keys.list(), query.usage ? await deps.usage.read() : undefined];
    return {
      items: keys.map((key) => ({ ...key, ...(usageOf && { usage: usageOf({ kind: "key", name: key.id }) }) })),
    };
  },
  updateKey: ({ params, body, deps }) => deps.keys.update(params.key, body),
  revokeKey: ({ params, deps }) => deps.keys.revoke(params.key),
  async listTenants({ query, deps }) {
    const [tenants, usageOf] = [await deps.keys.tenants(), query.usage ? await deps.usage.read() : undefined];
    const usage = (name: string) => usageOf && { usage: usageOf({ kind: "tenant", name }) };
    return { items: tenants.map((tenant) => ({ ...tenant, ...usage(tenant.name) })) };
  },
  updateTenant({ params, body, deps }) {
    requireTenantName(params.tenant);
    return deps.keys.updateTenant(params.tenant, body);
  },
  listPools: ({ deps }) => itemsOf(deps.pool.list()),
  setPool: ({ body, deps }) => deps.pool.set(body),
  createWebhook: ({ body, deps }) => deps.webhooks.create(body),
  listWebhooks: ({ deps }) => itemsOf(deps.webhooks.list()),
  deleteWebhook: ({ params, deps }) => deps.webhooks.remove(params.webhook),

  getHealth({ deps }) {
    const lowOn = deps.reserve.lowOn();
    const status = deps.phase.isDraining ? "stopping" : "ok";
    return { status, version: deps.version, ...(lowOn.length > 0 && { lowOn }) };
  },
  listAudit: ({ query, deps }) =>
    itemsOf(deps.audit.list({ after: query.after ?? 0, limit: query.limit ?? DEFAULT_LIMIT })),
  verifyAudit: ({ deps }) => deps.audit.verify(),
  verifyAuditFile: (call) =>
    call.deps.audit.verifyFile(textOf(requestBytes(call, { limitBytes: MAX_AUDIT_FILE_BYTES }))),
  async getNodeMetrics({ headers, deps }): Promise<Response> {
    const { contentType, text } = await deps.metrics.render();
    return new Response(text, { headers: { ...headers, "content-type": contentType } });
  },
  listNodes: ({ deps }) => itemsOf(deps.nodes.list()),
  drainNode: ({ body, deps }) => deps.nodes.drain(body),
} satisfies Partial<Handlers>;

async function* textOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of source) yield decoder.decode(bytes, { stream: true });
}

async function itemsOf<Item>(list: readonly Item[] | Promise<readonly Item[]>): Promise<{ items: Item[] }> {
  return { items: [...(await list)] };
}
