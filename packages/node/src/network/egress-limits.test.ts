import { FakeClock } from "@sandpiper/core/testing";
import { completeNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { EgressBed, echo } from "./testing/egress-bed.ts";

const NAMES = { "a.example": ["127.0.0.1"] };

describe("the limits of a sandbox's network", () => {
  it("bound its open connections", async () => {
    const network = { default: "allow", limits: { maxConnections: 2 } } as const;
    await using bed = new EgressBed({ network, names: NAMES });
    const port = await bed.serve(echo);
    const flows = Array.from({ length: 3 }, () => bed.open({ name: "a.example", port }));
    expect(flows.map(({ isRefused }) => isRefused)).toEqual([false, false, true]);
    expect(bed.records.closed).toMatchObject([{ decision: "denied", reason: "connection_limit" }]);
    flows[0]?.end();
    await expect.poll(() => bed.egress.openFlows).toBe(1);
    expect(bed.open({ name: "a.example", port }).isRefused).toBe(false);
  });

  it("bound its new connections and queries per second", async () => {
    const limits = { maxConnectionsPerSecond: 1, maxQueriesPerSecond: 1 };
    await using bed = new EgressBed({ network: { default: "allow", limits }, names: NAMES });
    const port = await bed.serve(echo);
    const flows = Array.from({ length: 3 }, () => bed.open({ name: "a.example", port }));
    expect(flows.map(({ isRefused }) => isRefused)).toEqual([false, false, true]);
    const answers = await Promise.all(["A", "A", "A"].map((type) => bed.query("a.example", type)));
    expect(answers).toEqual(["stand_in", "stand_in", "refused"]);
    expect(bed.records.closed.filter(({ decision }) => decision === "denied").map(({ reason }) => reason)).toEqual([
      "connection_rate_limit",
      "query_rate_limit",
    ]);
  });

  it("end every connection when its bytes are used up, and allow more when they are raised", async () => {
    const network = { default: "allow", limits: { maxBytes: 1000 } } as const;
    await using bed = new EgressBed({ network, names: NAMES });
    const port = await bed.serve(echo);
    const [first, second] = [bed.open({ name: "a.example", port }), bed.open({ name: "a.example", port })];
    second.send("x");
    await expect.poll(() => second.receivedText).toBe("x");
    first.send("y".repeat(1000));
    await expect.poll(() => [first.isReset, second.isReset]).toEqual([true, true]);
    expect(bed.records.closed.map(({ reason }) => reason)).toEqual(["byte_limit", "byte_limit"]);
    expect(bed.open({ name: "a.example", port }).isRefused).toBe(true);
    bed.egress.update(completeNetwork({ default: "allow", limits: { maxBytes: 1_000_000 } }));
    const third = bed.open({ name: "a.example", port }).send("z");
    await expect.poll(() => third.receivedText).toBe("z");
  });

  it("slow it down to its bandwidth", async () => {
    const clock = new FakeClock();
    const network = { default: "allow", limits: { maxBytesPerSecond: 100_000 } } as const;
    await using bed = new EgressBed({ network, names: NAMES, parts: { clock } });
    const port = await bed.serve((socket) => socket.end("x".repeat(1_000_000)));
    const flow = bed.open({ name: "a.example", port });
    // Two seconds' worth is free, and one more chunk is on credit.
    await expect.poll(() => flow.receivedText.length).toBeGreaterThanOrEqual(200_000);
    const isAhead = () => flow.receivedText.length > 300_000 + clock.monotonicMs() * 100;
    for (let second = 1; !flow.hasEnded; second++) {
      expect(second).toBeLessThan(30);
      expect(isAhead()).toBe(false);
      await clock.advance(1000);
    }
    expect(flow.receivedText).toHaveLength(1_000_000);
  });

  it("leave room for other sandboxes in the node's connections", async () => {
    let free = 1;
    const takeConnection = () => {
      if (free === 0) return undefined;
      free--;
      return { [Symbol.dispose]: () => void free++ };
    };
    await using bed = new EgressBed({ network: "open", names: NAMES, parts: { takeConnection } });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port });
    expect(bed.open({ name: "a.example", port }).isRefused).toBe(true);
    flow.end();
    await expect.poll(() => free).toBe(1);
  });

  it("merge the records of many denials into counts", async () => {
    await using bed = new EgressBed({ network: { rules: [{ allow: "b.example" }] }, names: NAMES });
    for (let k = 0; k < 300; k++) bed.open({ name: "a.example", port: 80 });
    await expect.poll(() => bed.records.closed.reduce((sum, { count }) => sum + count, 0), { timeout: 5000 }).toBe(300);
    expect(bed.records.closed.length).toBeLessThan(200);
    expect(bed.records.closed.at(-1)).toMatchObject({ reason: "default", suggestion: "allow=a.example:80" });
  });
});
