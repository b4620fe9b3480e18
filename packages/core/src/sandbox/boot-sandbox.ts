import { abortError, createSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { AgentLink } from "../agent/agent-link.ts";
import type { ConnectAgentOptions } from "../agent/connect-agent.ts";
import type { StripTypes } from "../process/run-code.ts";
import type { CreateInstanceOptions, DestroyOptions, Instance, Provider } from "../provider.ts";
import { instanceSpec } from "./instance-spec.ts";
import type { SandboxConfig } from "./sandbox-config.ts";

export interface SandboxOptions extends ConnectAgentOptions, CreateInstanceOptions {
  /** The sandbox's id; the default is a new one. */
  readonly id?: SandboxId | undefined;
  /** Turns TypeScript into JavaScript; without it the sandbox does not run TypeScript. */
  readonly stripTypes?: StripTypes | undefined;
}

export interface BootedInstance {
  readonly instance: Instance;
  readonly link: AgentLink;
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
  return { instance, link: await openLink(instance, { ...options, pings: true }) };
}

/** Waits for an instance's agent; destroys an instance whose agent does not answer. */
export async function openLink(instance: Instance, options: ConnectAgentOptions & DestroyOptions): Promise<AgentLink> {
  try {
    return await AgentLink.open(instance, options);
  } catch (thrown) {
    throw await destroyAfter(instance, SandboxError.from(thrown), options);
  }
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
