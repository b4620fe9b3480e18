import { type Provider, SandboxConfig, SandboxError } from "@sandpiper/core";
import {
  type CreateSandboxBody,
  completeNetwork,
  findLanguage,
  languages,
  type NetworkPolicy,
  parseCheckpointPolicy,
} from "@sandpiper/protocol";
import type { NodeConfig } from "../config/node-config.ts";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** The settings of a sandbox whose caller gives none. */
export interface SandboxDefaults extends Readonly<Omit<NodeConfig["defaults"], "checkpoints" | "network">> {
  readonly provider: SandboxRecord["provider"];
  readonly containerImage: string;
  readonly checkpointPolicy: CreateSandboxBody["checkpointPolicy"];
}

/** The complete, validated settings of a sandbox to create. */
export type NewSandbox = Omit<
  SandboxRecord,
  | "id"
  | "tenant"
  | "keyId"
  | "state"
  | "createdAt"
  | "expiresAt"
  | "endedAt"
  | "failure"
  | "rolledBackTo"
  | "rollbacks"
  | "epoch"
  | "publicPorts"
  | "linkEpoch"
  | "stoppedAt"
  | "checkpointCount"
  | "checkpointBytes"
>;

export interface NewSandboxOptions {
  readonly defaults: SandboxDefaults;
  readonly providers: ReadonlyMap<string, Provider>;
  /** The caller's network, or the node's default. */
  readonly network: NetworkPolicy;
  readonly secrets?: SandboxRecord["secrets"] | undefined;
}

export function newSandbox(
  body: CreateSandboxBody,
  { defaults, providers, network, secrets = [] }: NewSandboxOptions,
): NewSandbox {
  const name = body.provider ?? defaults.provider;
  const provider = providers.get(name);
  if (provider === undefined)
    throw notEnabled(name, { defaultProvider: defaults.provider, known: [...providers.keys()] });
  if (body.onExpiry === "pause" && provider.capabilities.checkpoint === "none") throw cannotPause(name);
  if (body.container !== undefined && !provider.capabilities.supportsContainers)
    throw noContainers(name, body.container);
  if (body.network !== undefined && body.network !== "none") requireRedirected("a network policy", provider, body);
  if (secrets.length > 0) requireRedirected("secrets", provider, body);
  if (body.language !== undefined && findLanguage(body.language) === undefined) throw unknownLanguage(body.language);
  const { memoryMib, vcpuCount, diskMib, maxProcesses, env } = SandboxConfig.parse({
    memoryMib: body.memoryMib ?? defaults.memoryMib,
    vcpuCount: body.vcpuCount ?? defaults.vcpuCount,
    diskMib: body.diskMib ?? defaults.diskMib,
    maxProcesses: body.maxProcesses ?? defaults.maxProcesses,
    env: body.env,
  });
  const { checkpoint: fidelity } = provider.capabilities;
  const ownPolicy = fidelity === "none" ? null : defaults.checkpointPolicy;
  return {
    provider: name,
    name: body.name ?? null,
    labels: body.labels ?? {},
    metadata: body.metadata ?? {},
    env,
    // The node's default cannot be applied where connections bypass the node.
    network: bypass(provider, body) === undefined ? network : completeNetwork("none"),
    secrets,
    image: imageOf(body.image, provider, defaults),
    // An empty object gets the tenant's default project.
    container: body.container ?? (provider.machines === undefined ? null : {}),
    memoryMib,
    vcpuCount,
    diskMib,
    maxProcesses,
    language: body.language ?? null,
    cwd: body.cwd ?? null,
    user: body.user ?? null,
    timeoutMs: body.timeoutMs ?? defaults.timeoutMs,
    ttlMs: body.ttlMs === undefined ? defaults.ttlMs : body.ttlMs,
    idleTimeoutMs: body.idleTimeoutMs === undefined ? defaults.idleTimeoutMs : body.idleTimeoutMs,
    idleExcept: body.idleExcept ?? [],
    onExpiry: body.onExpiry ?? "destroy",
    onFailure: body.onFailure ?? (provider.capabilities.supportsContainers ? "keep" : "restore"),
    fidelity,
    checkpointPolicy: checkpointPolicy(body.checkpointPolicy === undefined ? ownPolicy : body.checkpointPolicy),
  };
}

/** A container cannot run on the host's programs, so for containers "host" means the default image. */
export function imageOf(
  image: string = "host",
  { capabilities }: Provider,
  { containerImage }: Pick<SandboxDefaults, "containerImage">,
): string {
  return capabilities.supportsContainers && image === "host" ? containerImage : image;
}

/** How many automatic checkpoints a sandbox keeps unless its policy sets `keepLast`. */
export const DEFAULT_KEEP_LAST = 3;

/** In a cluster, a sandbox without checkpoints would be lost with its node. */
const CLUSTER_POLICY = "idle,every=5m";

/** The policy of a sandbox whose caller sets none. */
export function defaultPolicy(
  checkpoints: NodeConfig["defaults"]["checkpoints"],
  { isClustered }: { readonly isClustered: boolean },
): CreateSandboxBody["checkpointPolicy"] {
  const automatic = isClustered ? CLUSTER_POLICY : "none";
  return parseCheckpointPolicy(checkpoints === "auto" ? automatic : checkpoints);
}

/** The policy with its defaults. */
export function checkpointPolicy(body: CreateSandboxBody["checkpointPolicy"]): SandboxRecord["checkpointPolicy"] {
  if (body === undefined || body === null) return null;
  const {
    everyMs = null,
    onIdle = false,
    onDisconnect = false,
    perCommand = false,
    keepLast = DEFAULT_KEEP_LAST,
  } = body;
  return { everyMs, onIdle, onDisconnect, perCommand, keepLast };
}

function notEnabled(
  name: string,
  { defaultProvider, known }: { readonly defaultProvider: string; readonly known: readonly string[] },
): SandboxError {
  const additional = [...known.filter((provider) => provider !== defaultProvider), name].join(",");
  // The node refuses local as an additional provider, because every key could use it.
  const setting =
    name === "local"
      ? "defaultProvider (SANDPIPER_DEFAULT_PROVIDER=local)"
      : `providers (SANDPIPER_PROVIDERS=${additional})`;
  return new SandboxError("unknown_provider", {
    message: `provider ${name} is not enabled on this node`,
    hint: `enable it with the node's setting ${setting}, or use one of ${known.join(", ")}`,
    details: { provider: name, known },
  });
}

function unknownLanguage(language: string): SandboxError {
  return new SandboxError("unknown_language", {
    message: `${JSON.stringify(language)} is not a language that sandboxes run`,
    hint: `use one of ${languages.join(", ")}`,
    details: { language, languages },
  });
}

function noContainers(provider: string, container: object): SandboxError {
  const fields = Object.keys(container);
  const named = fields.map((field) => `container.${field}`).join(", ") || "container";
  return new SandboxError("no_containers", {
    message: `cannot use ${named}: provider ${provider} does not run containers`,
    hint: "omit it, or use a container provider such as docker",
    details: { provider, fields },
  });
}

/** Throws if connections of the sandbox would bypass the node, which then could not apply what the caller wants. */
export function requireRedirected(
  wanted: "a network policy" | "secrets",
  provider: Provider,
  sandbox: WithContainer,
): void {
  const found = bypass(provider, sandbox);
  if (found === undefined) return;
  throw new SandboxError("provider_lacks_capability", {
    message: `${wanted} cannot be applied to the sandbox: ${found.why}`,
    hint: found.hint,
    details: { provider: provider.name, capability: "network" },
  });
}

interface WithContainer {
  readonly container?: CreateSandboxBody["container"] | null;
}

/** How connections of a sandbox bypass the node; undefined if they do not. */
function bypass({ name, capabilities }: Provider, { container }: WithContainer) {
  if (capabilities.network === "host") {
    return { why: `commands of provider ${name} use the host's network`, hint: "omit it, or use another provider" };
  }
  const engineNetwork = container?.network ?? "none";
  if (engineNetwork === "none") return undefined;
  const why = `it joins network ${engineNetwork} of the engine`;
  return { why, hint: "give either this or container.network" };
}

export function cannotPause(provider: string): SandboxError {
  return new SandboxError("provider_lacks_capability", {
    message: `onExpiry "pause" is not available: provider ${provider} does not support checkpoints`,
    hint: 'use onExpiry "destroy"',
    details: { provider, capability: "checkpoint" },
  });
}
