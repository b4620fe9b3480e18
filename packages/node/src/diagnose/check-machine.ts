import { existsSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { freemem, release, totalmem } from "node:os";
import { dirname } from "node:path";
import type { Check } from "./check.ts";

/** Use of one gVisor sandbox on the host, measured with hundreds of idle ones. */
const PROCESSES_PER_SANDBOX = 5;
const MEMORY_BYTES_PER_SANDBOX = 15 * 1024 * 1024;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** The default disk size of one sandbox. */
const SMALL_DISK_MIB = 1024;
/** A limit below this many sandboxes causes a warning. */
const FEW_SANDBOXES = 100;

export function checkMachine(): Check[] {
  return [checkSystem(), checkNode(), checkRoot(), checkMemory(), checkProcessIds()];
}

function checkSystem(): Check {
  const detail = `${process.platform} ${release()} on ${process.arch}`;
  if (process.platform === "linux") return { name: "system", status: "ok", detail };
  return {
    name: "system",
    status: "failed",
    detail,
    hint: "Sandboxes need Linux: use a Linux machine or a VM.",
  };
}

function checkNode(): Check {
  return { name: "node", status: "ok", detail: `${process.version} at ${process.execPath}` };
}

function checkRoot(): Check {
  if (process.getuid?.() === 0) return { name: "root", status: "ok", detail: "running as root" };
  return {
    name: "root",
    status: "failed",
    detail: `running as user ${process.getuid?.()}; gvisor needs root for its namespaces and cgroups`,
    hint: 'Run: sudo env "PATH=$PATH" sandpiper doctor',
  };
}

function checkMemory(): Check {
  const room = Math.floor(freemem() / MEMORY_BYTES_PER_SANDBOX);
  const detail = `${gib(freemem())} of ${gib(totalmem())} GiB free: room for about ${room} idle sandboxes`;
  if (room >= FEW_SANDBOXES) return { name: "memory", status: "ok", detail };
  return { name: "memory", status: "warning", detail, hint: "Stop programs that use much memory, or add memory." };
}

function checkProcessIds(): Check {
  const limit = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const room = Math.floor(limit / PROCESSES_PER_SANDBOX);
  const detail = `pid_max is ${limit}: room for about ${room} sandboxes at once`;
  if (room >= 10 * FEW_SANDBOXES) return { name: "process ids", status: "ok", detail };
  return { name: "process ids", status: "warning", detail, hint: "Run: sysctl -w kernel.pid_max=4194304" };
}

/** Checks the free space of the home directory, which holds everything that sandboxes write. */
export async function checkDisk(home: string): Promise<Check> {
  let directory = home;
  while (!existsSync(directory)) directory = dirname(directory);
  const { bavail, bsize } = await statfs(directory);
  const freeMib = Math.floor((bavail * bsize) / MIB);
  const detail = `${freeMib} MiB free for ${home}`;
  if (freeMib >= SMALL_DISK_MIB) return { name: "disk", status: "ok", detail };
  const hint = "Free disk space, or set SANDPIPER_HOME to a directory on a larger disk.";
  return { name: "disk", status: "warning", detail, hint };
}

function gib(bytes: number): string {
  return (bytes / GIB).toFixed(1);
}
