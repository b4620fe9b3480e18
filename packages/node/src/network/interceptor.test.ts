import { describe, expect, it } from "vitest";
import type { Interceptor } from "./interceptor.ts";
import { EgressBed, echo } from "./testing/egress-bed.ts";

const NAMES = { "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] };

/** Connects like the engine would, and makes what the sandbox sends louder. */
const louder: Interceptor = {
  intercepts: ({ name }) => name === "a.example",
  async handle(_flow, guest, dial) {
    const socket = await dial();
    guest.on("data", (bytes: Buffer) => socket.write(bytes.toString().toUpperCase()));
    guest.on("end", () => socket.end());
    socket.pipe(guest);
    await new Promise((resolve) => guest.once("close", resolve));
    return { reason: null, requests: [{ method: "GET", path: "/", status: 200 }] };
  },
};

describe("an interceptor", () => {
  it("stands between the sandbox and the flows that it wants, and adds to their records", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES, parts: { interceptor: louder } });
    const port = await bed.serve(echo);
    const [first, second] = [bed.open({ name: "a.example", port }), bed.open({ name: "b.example", port })];
    first.send("hello").end();
    second.send("hello").end();
    await expect.poll(() => [first.receivedText, second.receivedText]).toEqual(["HELLO", "hello"]);
    await expect.poll(() => bed.records.closed).toHaveLength(2);
    expect(bed.records.closed.find(({ name }) => name === "a.example")).toMatchObject({
      reason: null,
      address: "127.0.0.1",
      sentBytes: 5,
      receivedBytes: 5,
      requests: [{ method: "GET", path: "/", status: 200 }],
    });
  });

  it("gets no bytes that state another host", async () => {
    let received = "";
    const interceptor: Interceptor = {
      intercepts: () => true,
      handle: (_flow, guest) =>
        new Promise((resolve) => {
          guest.on("data", (bytes) => {
            received += bytes;
          });
          guest.on("close", () => resolve({ reason: "intercept_failed" }));
        }),
    };
    await using bed = new EgressBed({ network: "open", names: NAMES, parts: { interceptor } });
    const flow = bed.open({ name: "a.example", port: 80 }).send("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
    await expect.poll(() => flow.isReset).toBe(true);
    expect(received).toBe("");
    await expect.poll(() => bed.records.closed).toMatchObject([{ decision: "denied", reason: "http_host_mismatch" }]);
  });

  it("that fails ends its flow, and a changed policy ends it too", async () => {
    const failing: Interceptor = { intercepts: () => true, handle: () => Promise.reject(new Error("no")) };
    await using bed = new EgressBed({ network: "open", names: NAMES, parts: { interceptor: failing } });
    const flow = bed.open({ name: "a.example", port: 80 });
    await expect.poll(() => flow.isReset).toBe(true);
    expect(bed.records.closed).toMatchObject([{ decision: "allowed", reason: "intercept_failed" }]);
    await using other = new EgressBed({ network: "open", names: NAMES, parts: { interceptor: louder } });
    const port = await other.serve(echo);
    const held = other.open({ name: "a.example", port }).send("x");
    await expect.poll(() => held.receivedText).toBe("X");
    other.egress.close("policy_changed");
    await expect.poll(() => held.isReset).toBe(true);
    await expect.poll(() => other.records.closed).toMatchObject([{ reason: "policy_changed" }]);
  });
});
