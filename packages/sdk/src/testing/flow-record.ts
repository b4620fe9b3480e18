import type { FlowRecord } from "@sandpiper/protocol";

/** An ended connection to example.com. */
export function memoryFlow(sandboxId: string, fields: Partial<FlowRecord> = {}): FlowRecord {
  return {
    id: crypto.randomUUID(),
    sandboxId: sandboxId as FlowRecord["sandboxId"],
    at: new Date().toISOString(),
    kind: "flow",
    name: "example.com",
    address: "203.0.113.1",
    port: 443,
    queryType: null,
    pid: 41,
    program: "python3",
    decision: "allowed",
    rule: "default",
    suggestion: null,
    reason: null,
    sentBytes: 100,
    receivedBytes: 2000,
    durationMs: 12,
    endedAt: new Date().toISOString(),
    count: 1,
    ...fields,
  };
}
