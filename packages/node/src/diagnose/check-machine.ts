import { readFileSync } from "node:fs";
import { freemem, release, totalmem } from "node:os";
import type { Check } from "./check.ts";

/** A gVisor sandbox and its helpers on the host; measured with hundreds of idle ones. */
const PROCESSES_PER_SANDBOX = 5;
const MEMORY_BYTES_PER_SANDBOX = 15 * 1024 * 1024;
const GIB = 1024 ** 3;
/** Below this many sandboxes a limit is worth a word. */
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
    hint: "Sandboxes need Linux; use a machine or a VM that runs it.",
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
  return { name: "memory", status: "warning", detail, hint: "End programs that use much memory, or add some." };
}

function checkProcessIds(): Check {
  const limit = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const room = Math.floor(limit / PROCESSES_PER_SANDBOX);
  const detail = `pid_max is ${limit}: room for about ${room} sandboxes at once`;
  if (room >= 10 * FEW_SANDBOXES) return { name: "process ids", status: "ok", detail };
  return { name: "process ids", status: "warning", detail, hint: "Run: sysctl -w kernel.pid_max=4194304" };
}

function gib(bytes: number): string {
  return (bytes / GIB).toFixed(1);
}
