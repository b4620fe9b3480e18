import { type ContainerBody, completeNetwork, type SandboxResource } from "@sandpiper/protocol";
import type { ListedSandbox } from "../records/sandbox-record.ts";

export function sandboxResource(
  record: ListedSandbox,
  { token, node, addresses }: Pick<SandboxResource, "token" | "node" | "addresses">,
): SandboxResource {
  return {
    id: record.id,
    state: record.state,
    provider: record.provider,
    name: record.name,
    labels: { ...record.labels },
    metadata: record.metadata,
    createdAt: record.createdAt.toISOString(),
    token,
    image: record.image,
    container: record.container && withoutCredentials(record.container),
    addresses: { ...addresses },
    secrets: record.secrets.map((use) => ({ ...use })),
    memoryMib: record.memoryMib,
    vcpuCount: record.vcpuCount,
    diskMib: record.diskMib,
    maxProcesses: record.maxProcesses,
    language: record.language,
    cwd: record.cwd,
    user: record.user,
    timeoutMs: record.timeoutMs,
    ttlMs: record.ttlMs,
    idleTimeoutMs: record.idleTimeoutMs,
    idleExcept: [...record.idleExcept],
    onExpiry: record.onExpiry,
    onFailure: record.onFailure,
    network: record.network ?? completeNetwork("none"),
    expiresAt: record.expiresAt?.toISOString() ?? null,
    stoppedAt: record.stoppedAt?.toISOString() ?? null,
    fidelity: record.fidelity,
    checkpointPolicy: record.checkpointPolicy,
    rolledBackTo: record.rolledBackTo,
    node,
    failure: record.failure,
  };
}

/** Read-only callers must not see the credentials of a Git repository. */
function withoutCredentials(container: ContainerBody): ContainerBody {
  const { workspace } = container;
  if (workspace === undefined || !("git" in workspace)) return container;
  const git = workspace.git.replace(/^([a-z]+:\/\/)[^/@]*@/, "$1");
  return { ...container, workspace: { ...workspace, git } };
}
