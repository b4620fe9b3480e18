import { readFileSync } from "node:fs";
import type { ChaosBed } from "./chaos-bed.ts";
import type { ChaosSandbox } from "./chaos-sandbox.ts";
import { cgroupProcesses, commandOf, engineContainers, isGuestProcess } from "./running-instances.ts";

/** All processes of a sandbox's instance, on any node. */
export async function instanceProcesses(bed: ChaosBed, { id, provider }: ChaosSandbox): Promise<readonly number[]> {
  if (provider !== "docker") return cgroupProcesses(id);
  return bed.engines.flatMap((engine) =>
    engineContainers(engine).flatMap((container) => (container.id === id ? container.pids : [])),
  );
}

/** The process that the instance cannot outlive: the Sentry, QEMU, or the container's first process. */
export async function mainProcesses(bed: ChaosBed, sandbox: ChaosSandbox): Promise<readonly number[]> {
  const pids = await instanceProcesses(bed, sandbox);
  if (sandbox.provider === "docker") return pids.filter(isFirstInContainer);
  if (sandbox.provider === "qemu") return pids.filter((pid) => commandOf(String(pid)).startsWith("qemu-system"));
  return pids.filter((pid) => commandLineOf(pid).startsWith("runsc-sandbox"));
}

/** The newest process of a guest: an address space of gVisor, or a process of a container. */
export async function guestProcesses(bed: ChaosBed, sandbox: ChaosSandbox): Promise<readonly number[]> {
  const pids = await instanceProcesses(bed, sandbox);
  const guests = sandbox.provider === "gvisor" ? pids.filter(isGuestProcess) : pids;
  return guests.slice(-1);
}

function isFirstInContainer(pid: number): boolean {
  try {
    return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
