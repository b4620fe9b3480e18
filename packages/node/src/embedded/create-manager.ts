import { type ManagerConfigOptions, SandboxError, SandboxManager } from "@sandpiper/core";
import { nearestName } from "../config/nearest-name.ts";
import {
  type ComposedProviderName,
  composedProviders,
  createProvider,
  defaultProvider,
  type ProviderOptions,
  stripTypes,
} from "./create-provider.ts";

export interface CreateManagerOptions extends ManagerConfigOptions, Omit<ProviderOptions, "killList"> {
  /** What runs the sandboxes; "gvisor" by default. */
  readonly provider?: ComposedProviderName | undefined;
}

const optionNames: Readonly<Record<keyof CreateManagerOptions, true>> = {
  provider: true,
  home: true,
  maxSandboxes: true,
  defaults: true,
  kernelPath: true,
  rootfsPath: true,
  imagesDir: true,
  chrootPath: true,
  firecrackerPath: true,
  docker: true,
  qemu: true,
  firecracker: true,
  vmDocker: true,
};

/**
 * Manages many sandboxes in this process, without a server:
 * `await using manager = createManager({ maxSandboxes: 10, defaults: { memoryMib: 128 } });`
 *
 * - `provider`: what runs the sandboxes; "gvisor" by default.
 * - `home`: the directory of the sandboxes and their files; $SANDPIPER_HOME or ~/.sandpiper by default.
 * - `maxSandboxes`: `create` fails above this number; 100 by default, 0 for no limit.
 * - `defaults`: options of every sandbox, which `create` can override.
 * - `rootfsPath`, `kernelPath`: the root filesystem, and the kernel of virtual machines, of sandboxes that name none.
 * - `imagesDir`: the directory of root filesystems that sandboxes name.
 * - `chrootPath`: the directory in which instances are kept; must be the provider's.
 * - `firecrackerPath`: the program of provider "firecracker".
 * - `docker`, `qemu`, `firecracker`, `vmDocker`: settings of these providers.
 *
 * Unknown options are errors. Call `reconcile` to remove or adopt the sandboxes of earlier programs.
 */
export function createManager(options: CreateManagerOptions = {}): SandboxManager {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown !== undefined) throw unknownOption(unknown);
  const { provider = defaultProvider, home, docker, qemu, firecracker, vmDocker, firecrackerPath, ...config } = options;
  if (!composedProviders.includes(provider)) throw unknownProvider(provider);
  if (firecrackerPath !== undefined && provider !== "firecracker") throw uselessFirecracker(provider);
  const settings = { home, docker, qemu, firecracker, vmDocker, firecrackerPath };
  return new SandboxManager(createProvider(provider, settings), config, { stripTypes });
}

function unknownOption(name: string): SandboxError {
  const known = Object.keys(optionNames);
  const meant = nearestName(name, known);
  return new SandboxError("invalid_config", {
    message: `createManager has no option ${JSON.stringify(name)}`,
    hint: meant === undefined ? `options are ${known.join(", ")}` : `did you mean ${meant}?`,
    details: { field: name },
  });
}

function unknownProvider(provider: string): SandboxError {
  return new SandboxError("unknown_provider", {
    message: `provider ${JSON.stringify(provider)} does not exist`,
    hint: `use one of ${composedProviders.join(", ")}`,
    details: { provider, known: [...composedProviders] },
  });
}

function uselessFirecracker(provider: string): SandboxError {
  return new SandboxError("invalid_config", {
    message: `the option firecrackerPath has no effect on provider ${provider}`,
    hint: 'omit it, or use provider "firecracker"',
    details: { field: "firecrackerPath" },
  });
}
