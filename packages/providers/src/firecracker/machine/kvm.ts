import { closeSync, existsSync, openSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { AgentClient, SandboxError } from "@sandpiper/core";
import { readBootId } from "../../host/process-owner.ts";
import {
  createTransientMachine,
  removeAbandonedMachines,
  removeTransientMachine,
} from "../../host/transient-machine.ts";
import type { FirecrackerHost } from "../host.ts";
import { VsockChannel } from "../vsock/vsock-channel.ts";
import { untilConnected } from "../vsock/vsock-connection.ts";
import type { BootFiles } from "./boot-files.ts";
import { machineDirectory } from "./jail.ts";
import { bootMachine } from "./launch-machine.ts";
import { VSOCK_SOCKET } from "./machine-files.ts";
import { explainMachine } from "./start-machine.ts";

/** The lowest that a guest can have. */
const PROBE_CID = 3;
const PROBE_SHAPE = { memoryMib: 128, vcpuCount: 1, diskMib: 0, maxProcesses: 64, vsockCid: PROBE_CID };
const USE_QEMU = "use the provider qemu, which needs no KVM";

interface KvmOptions {
  /** Keeps the result. */
  readonly directory: string;
  readonly device: string;
  readonly bootTimeoutMs: number;
}

/**
 * Throws when KVM does not run guests. The device alone proves little: on virtual machines a guest may hang or run very
 * slowly. One machine boots as a test after each boot of the host, and the result is kept.
 */
export async function requireKvm(host: FirecrackerHost, options: KvmOptions): Promise<void> {
  const { directory, device, bootTimeoutMs } = options;
  requireDevice(device);
  const files = await host.bootFiles(undefined);
  const results = join(directory, "kvm");
  // The name of the initramfs depends on the kernel too.
  const path = join(results, `${await readBootId()}-${host.firecracker.version}-${basename(files.initramfs)}`);
  let verdict = await readFile(path, "utf8").catch(() => undefined);
  if (verdict === undefined) {
    verdict = await tryKvm(host, files, bootTimeoutMs);
    await rm(results, { recursive: true, force: true });
    await mkdir(results, { recursive: true, mode: 0o700 });
    await writeFile(path, verdict);
  }
  if (verdict === "") return;
  throw new SandboxError("kvm_unusable", {
    message: `KVM exists but could not run a guest: ${verdict}`,
    hint: `${remedy(host)}; on a slow host raise firecracker.bootTimeoutMs; to try again, remove ${path}`,
  });
}

/** An outdated kernel is the likelier cause, and easier to fix. */
function remedy({ missingModules }: FirecrackerHost): string {
  if (missingModules.length === 0) return USE_QEMU;
  const lacks = `the kernel that set-up downloaded lacks ${missingModules.join(" and ")}`;
  return `${lacks}: remove sandpiper/kernel from the cache (~/.cache) and run \`npm run setup kernel\`; or ${USE_QEMU}`;
}

function requireDevice(device: string): void {
  if (!existsSync(device)) {
    throw new SandboxError("kvm_missing", {
      message: `${device} not found: this machine has no KVM, or no access to it`,
      hint: `enable virtualization in the firmware, or nested virtualization if this machine is virtual; or ${USE_QEMU}`,
    });
  }
  try {
    closeSync(openSync(device, "r+"));
  } catch (error) {
    throw new SandboxError("kvm_not_permitted", {
      message: `${device} cannot be opened: ${error instanceof Error ? error.message : error}`,
      hint: `run it as root on the host itself, or pass the device to this container; or ${USE_QEMU}`,
      cause: error,
    });
  }
}

/** Returns an empty text when a guest without disks answers in time, otherwise the error. */
async function tryKvm(host: FirecrackerHost, files: BootFiles, bootTimeoutMs: number): Promise<string> {
  await removeAbandonedMachines(host);
  const transient = await createTransientMachine(host);
  const signal = AbortSignal.timeout(bootTimeoutMs);
  try {
    await bootMachine(host, files, { ...transient, shape: PROBE_SHAPE, signal });
    const socket = await untilConnected(join(machineDirectory(transient.directory), VSOCK_SOCKET), signal);
    const channel = new VsockChannel(socket);
    const client = await AgentClient.open({ channel, needsResync: false }, { signal });
    client.close();
    return "";
  } catch (error) {
    const words = signal.aborted
      ? `it did not answer within ${bootTimeoutMs / 1000} s`
      : SandboxError.from(error).message;
    const explanation = await explainMachine(transient.directory);
    return explanation === "" || words.includes(explanation) ? words : `${words}: ${explanation}`;
  } finally {
    await removeTransientMachine(host, transient);
  }
}
