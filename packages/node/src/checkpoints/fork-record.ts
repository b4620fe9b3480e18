import { type CreateSandboxBody, completeNetwork, type ForkBody } from "@sandpiper/protocol";
import type { Principal } from "../auth/principal.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** The record of a fork. `record` is the original's, with the fork's id. */
export function forkOf(
  record: SandboxRecord,
  principal: Principal,
  { name, labels, ttlMs = record.ttlMs, ...body }: ForkBody | CreateSandboxBody,
  createdAt: Date,
): SandboxRecord {
  const owner = principal.kind === "key" ? { tenant: principal.tenant, keyId: principal.keyId } : {};
  const more = "metadata" in body && body.metadata !== undefined ? { metadata: body.metadata } : {};
  const network = "network" in body && body.network !== undefined ? completeNetwork(body.network) : record.network;
  return {
    ...record,
    ...owner,
    ...more,
    network,
    // Another tenant's secrets of the same names are not the ones that its code was given.
    secrets: principal.tenant === record.tenant ? record.secrets : [],
    state: "restoring",
    name: name ?? null,
    labels: labels ?? record.labels,
    container: withoutHostPorts(record.container),
    ttlMs,
    expiresAt: ttlMs === null ? null : new Date(createdAt.getTime() + ttlMs),
    createdAt,
    endedAt: null,
    failure: null,
    rolledBackTo: null,
    rollbacks: 0,
    epoch: null,
    checkpointCount: 0,
    checkpointBytes: 0,
    publicPorts: [],
    linkEpoch: 0,
    stoppedAt: null,
  };
}

/** The original may still use its fixed host ports, so the engine chooses others for the fork. */
export function withoutHostPorts(container: SandboxRecord["container"]): SandboxRecord["container"] {
  if (container?.ports === undefined) return container;
  const ports = container.ports.map((port) => {
    if (typeof port === "number") return port;
    const { host: _, ...rest } = port;
    return rest;
  });
  return { ...container, ports };
}
