import type { AgentResult, SandboxMetricsBody } from "@sandpiper/protocol";

export type SandboxMetrics = Readonly<SandboxMetricsBody>;

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
