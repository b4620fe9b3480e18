import { join } from "node:path";
import { findKernel, networkProblem } from "../guest/kernel.ts";
import { requireLinux, requireRoot, requireShortPath } from "../host/host-requirements.ts";
import { sharedByKey } from "../host/shared.ts";
import { findFirecracker } from "./find-firecracker.ts";
import { type FirecrackerHost, type FirecrackerOptions, findFirecrackerState } from "./host.ts";
import { makeBootFiles } from "./machine/boot-files.ts";
import { requireKvm } from "./machine/kvm.ts";
import { API_SOCKET, VSOCK_SOCKET } from "./machine/machine-files.ts";
import { SharedFiles } from "./machine/shared-files.ts";

/** Working KVM boots a guest in a fraction of it. */
const DEFAULT_BOOT_TIMEOUT_MS = 10_000;
/** For the bus of the devices and for the agent's channel. */
const MODULES = ["virtio_mmio", "vmw_vsock_virtio_transport"];

/** Throws when this host lacks something that machines need, with the remedy. */
export async function findFirecrackerHost(options: FirecrackerOptions): Promise<FirecrackerHost> {
  requireLinux("Firecracker machines");
  const firecracker = await findFirecracker(options.environment, options.firecrackerPath);
  requireRoot("Firecracker machines", "to run each in its own jail");
  requireShortPath(options.stateDirectory, "firecracker", [API_SOCKET, VSOCK_SOCKET]);
  const directory = join(options.stateDirectory, "firecracker");
  const kernel = await findKernel();
  const boot = sharedByKey((path) => makeBootFiles(join(directory, "boot"), { ...kernel, path }));
  const host: FirecrackerHost = {
    ...findFirecrackerState(options),
    firecracker,
    kernelVersion: options.kernel ?? kernel.version,
    networkProblem: networkProblem(kernel),
    missingModules: MODULES.filter((name) => !kernel.modules.some((path) => path.endsWith(`-${name}.ko`))),
    shared: new SharedFiles(join(directory, "shared")),
    blanks: join(directory, "blanks"),
    bootFiles: (path = options.kernel ?? kernel.path) => boot(path),
  };
  const { environment = process.env, bootTimeoutMs = DEFAULT_BOOT_TIMEOUT_MS } = options;
  const device = options.kvmDevice ?? (environment["SANDPIPER_KVM"] || "/dev/kvm");
  await requireKvm(host, { directory, device, bootTimeoutMs });
  return host;
}
