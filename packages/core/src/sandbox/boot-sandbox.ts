import { abortError, createSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { AgentLink } from "../agent/agent-link.ts";
import type { ConnectAgentOptions } from "../agent/connect-agent.ts";
import type { ProcessHandle } from "../process/process-handle.ts";
import type { StripTypes } from "../process/run-code.ts";
import type { CreateInstanceOptions, DestroyOptions, Instance, InstanceRecord, Provider } from "../provider.ts";
import { instanceSpec } from "./instance-spec.ts";
import type { SandboxConfig } from "./sandbox-config.ts";
import { startService } from "./start-service.ts";

export interface SandboxOptions extends ConnectAgentOptions, CreateInstanceOptions {
  /** The sandbox's id; the default is a new one. */
  readonly id?: SandboxId | undefined;
  /** Turns TypeScript into JavaScript; without it the sandbox does not run TypeScript. */
  readonly stripTypes?: StripTypes | undefined;
}

export interface BootedInstance {
  readonly instance: Instance;
  readonly link: AgentLink;
  /** Undefined if the instance has no service, or one that already runs. */
  readonly startedService: ProcessHandle | undefined;
}

interface OpenOptions extends ConnectAgentOptions, DestroyOptions {
  /** The environment of its service. */
  readonly env: SandboxConfig["env"];
}

/** Starts an instance and waits for its agent. On failure or abort it removes everything it created. */
export async function bootSandbox(
  provider: Provider,
  config: SandboxConfig,
  options: SandboxOptions,
): Promise<BootedInstance> {
  const signal = options.signal ?? new AbortController().signal;
  const id = options.id ?? createSandboxId(options.randomUuid);
  requireChroot(provider, config);
  requireContainers(provider, config);
  if (signal.aborted) throw abortError(signal, `creating sandbox ${id}`);
  let instance: Instance;
  try {
    const { onProgress, keepsVolumes } = options;
    instance = await provider.create(instanceSpec(id, config), signal, { onProgress, keepsVolumes });
  } catch (thrown) {
    if (signal.aborted) throw abortError(signal, `creating sandbox ${id}`);
    throw SandboxError.from(thrown);
  }
  return await openInstance(instance, { ...options, env: config.env, pings: true });
}

/** Waits for an instance's agent and starts its service; destroys an instance whose agent does not answer. */
export async function openInstance(instance: Instance, options: OpenOptions): Promise<BootedInstance> {
  try {
    return await connectInstance(instance, options);
  } catch (thrown) {
    throw await destroyAfter(instance, SandboxError.from(thrown), options);
  }
}

/** Like `openInstance`, but leaves the instance as it is on failure. */
export async function connectInstance(
  instance: Instance,
  { env, ...options }: ConnectAgentOptions & Pick<OpenOptions, "env">,
): Promise<BootedInstance> {
  const link = await AgentLink.open(instance, options);
  return { instance, link, startedService: await startService(instance, link, env) };
}

export async function findInstance(provider: Provider, id: SandboxId): Promise<InstanceRecord> {
  const record = (await provider.list()).find((candidate) => candidate.id === id);
  if (record !== undefined) return record;
  throw new SandboxError("no_such_sandbox", {
    message: `sandbox ${id} cannot be adopted: provider ${provider.name} has no instance of it`,
    hint: "list the provider's instances",
  });
}

/** Refuses a chroot that the provider would ignore. */
function requireChroot(provider: Provider, { chroot }: SandboxConfig): void {
  if (chroot === undefined || chroot === provider.chroot) return;
  throw new SandboxError("chroot_mismatch", {
    message: `chroot ${chroot} is not supported: provider ${provider.name} keeps its instances in ${provider.chroot ?? "no directory"}`,
    details: { chroot, providerChroot: provider.chroot },
  });
}

function requireContainers({ name, capabilities }: Provider, { container }: SandboxConfig): void {
  if (container === undefined || capabilities.supportsContainers) return;
  const fields = Object.keys(container);
  const named = fields.map((field) => `container.${field}`).join(", ") || "container";
  throw new SandboxError("no_containers", {
    message: `cannot use ${named}: provider ${name} does not run containers`,
    details: { provider: name, fields },
  });
}

/** Keeps the first error, and adds a failed cleanup as a detail. */
async function destroyAfter(
  instance: Instance,
  error: SandboxError,
  { keepsVolumes }: DestroyOptions,
): Promise<SandboxError> {
  try {
    await instance.destroy({ keepsVolumes });
    return error;
  } catch (thrown) {
    const cleanupError = thrown instanceof Error ? thrown.message : String(thrown);
    return SandboxError.fromFields({
      code: error.code,
      reason: error.reason,
      message: error.message,
      hint: `sandbox ${instance.id} could not be removed either (${cleanupError}); reconcile removes it`,
      details: { ...error.details, cleanupError },
      cause: error,
    });
  }
}
