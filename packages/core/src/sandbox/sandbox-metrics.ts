import type { AgentResult } from "@sandpiper/protocol";

export interface SandboxMetrics {
  /** CPU time used by everything in the sandbox since boot. */
  readonly cpuMs: number;
  readonly memoryUsedBytes: number;
  readonly memoryTotalBytes: number;
  readonly diskUsedBytes: number;
  readonly diskTotalBytes: number;
  readonly processes: number;
  readonly uptimeMs: number;
}

export function sandboxMetrics(answer: AgentResult<"system.metrics">): SandboxMetrics {
  return {
    cpuMs: answer.cpu_ms,
    memoryUsedBytes: answer.memory_used_bytes,
    memoryTotalBytes: answer.memory_total_bytes,
    diskUsedBytes: answer.disk_used_bytes,
    diskTotalBytes: answer.disk_total_bytes,
    processes: answer.processes,
    uptimeMs: answer.uptime_ms,
  };
}
