import { completeNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { ApprovalRequest, Approvals } from "./approvals.ts";
import { EgressBed, echo } from "./testing/egress-bed.ts";

const NAMES = { "a.example": ["127.0.0.1"] };

function asking() {
  const requests: (ApprovalRequest & { answer: (decision: "allow" | "deny") => void; signal: AbortSignal })[] = [];
  const approvals: Approvals = {
    decide: (request, signal) =>
      new Promise((answer) => {
        requests.push({ ...request, answer, signal });
      }),
  };
  return { requests, approvals };
}

describe("a connection of a sandbox that asks", () => {
  it("waits without being resolved until it is allowed", async () => {
    const { requests, approvals } = asking();
    await using bed = new EgressBed({ network: "ask", names: NAMES, parts: { approvals } });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("x");
    await expect.poll(() => requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ ...bed.owner, name: "a.example", address: null, port, program: "curl" });
    expect(bed.resolved).toEqual([]);
    requests[0]?.answer("allow");
    await expect.poll(() => flow.receivedText).toBe("x");
    flow.end();
    await expect.poll(() => bed.records.closed).toMatchObject([{ decision: "allowed", rule: "default" }]);
  });

  it("is reset when it is denied", async () => {
    const { requests, approvals } = asking();
    await using bed = new EgressBed({ network: "ask", names: NAMES, parts: { approvals } });
    const flow = bed.open({ name: "a.example", port: 80 });
    await expect.poll(() => requests).toHaveLength(1);
    requests[0]?.answer("deny");
    await expect.poll(() => flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([
      { decision: "denied", reason: "not_approved", suggestion: "allow=a.example:80" },
    ]);
  });

  it("is decided by a policy that changes meanwhile", async () => {
    const { requests, approvals } = asking();
    await using bed = new EgressBed({ network: "ask", names: NAMES, parts: { approvals } });
    const port = await bed.serve(echo);
    const [first, second] = [bed.open({ name: "a.example", port }), bed.open({ name: "b.example", port })];
    first.send("x");
    await expect.poll(() => requests).toHaveLength(2);
    bed.egress.update(completeNetwork({ rules: [{ allow: "a.example" }, { deny: "b.example" }], default: "ask" }));
    await expect.poll(() => first.receivedText).toBe("x");
    await expect.poll(() => second.isRefused).toBe(true);
    expect(requests.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  });

  it("stays open after an unrelated change if it was allowed, and ends with a change that denies it", async () => {
    const { requests, approvals } = asking();
    await using bed = new EgressBed({ network: "ask", names: NAMES, parts: { approvals } });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("1");
    await expect.poll(() => requests).toHaveLength(1);
    requests[0]?.answer("allow");
    await expect.poll(() => flow.receivedText).toBe("1");
    bed.egress.update(completeNetwork({ rules: [{ allow: "b.example" }], default: "ask" }));
    flow.send("2");
    await expect.poll(() => flow.receivedText).toBe("12");
    bed.egress.update(completeNetwork({ rules: [{ deny: "a.example" }], default: "ask" }));
    await expect.poll(() => flow.isReset).toBe(true);
  });

  it("is withdrawn when the program inside gives up", async () => {
    const { requests, approvals } = asking();
    await using bed = new EgressBed({ network: "ask", names: NAMES, parts: { approvals } });
    const flow = bed.open({ name: "a.example", port: 80 });
    await expect.poll(() => requests).toHaveLength(1);
    flow.leave();
    await expect.poll(() => bed.records.closed).toMatchObject([{ decision: "denied", reason: "reset" }]);
    expect(requests[0]?.signal.aborted).toBe(true);
  });
});
