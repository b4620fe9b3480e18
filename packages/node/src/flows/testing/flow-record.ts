import { createSandboxId, type FlowRecord } from "@sandpiper/protocol";

let count = 0;

/** An ended connection to example.com, with the fields that a test cares about. */
export function flowRecord(fields: Partial<FlowRecord> = {}): FlowRecord {
  count += 1;
  return {
    id: `flow-${count}`,
    sandboxId: createSandboxId(),
    at: "2026-01-01T00:00:00.000Z",
    kind: "flow",
    name: "example.com",
    address: "203.0.113.1",
    port: 443,
    queryType: null,
    pid: 41,
    program: "python3",
    decision: "allowed",
    rule: "allow=example.com:443",
    suggestion: null,
    reason: null,
    sentBytes: 100,
    receivedBytes: 2000,
    durationMs: 12,
    endedAt: "2026-01-01T00:00:00.012Z",
    count: 1,
    ...fields,
  };
}
