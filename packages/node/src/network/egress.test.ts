import { completeNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { EgressBed, echo } from "./testing/egress-bed.ts";

const NAMES = { "a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"] };

describe("a connection that the policy allows", () => {
  it("reaches the host that its name resolves to, and is recorded with its bytes", async () => {
    await using bed = new EgressBed({ network: { rules: [{ allow: "a.example" }] }, names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("ping");
    await expect.poll(() => flow.receivedText).toBe("ping");
    expect(bed.records.opened).toMatchObject([{ kind: "flow", name: "a.example", address: "127.0.0.1", port }]);
    flow.end();
    await expect.poll(() => bed.records.closed).toHaveLength(1);
    expect(flow.hasEnded).toBe(true);
    expect(bed.records.closed[0]).toMatchObject({
      id: bed.records.opened[0]?.id,
      decision: "allowed",
      rule: "allow=a.example",
      suggestion: null,
      reason: null,
      sentBytes: 4,
      receivedBytes: 4,
      program: "curl",
      pid: 41,
    });
  });

  it("receives at once what a server says first", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve((socket) => socket.write("220 ready\r\n"));
    const flow = bed.open({ name: "a.example", port });
    await expect.poll(() => flow.receivedText).toBe("220 ready\r\n");
  });

  it("can end each direction by itself", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve((socket) => {
      let received = "";
      socket.on("data", (bytes) => {
        received += bytes;
      });
      socket.on("end", () => socket.end(`got ${received}`));
    });
    const flow = bed.open({ name: "a.example", port }).send("all of it").end();
    await expect.poll(() => flow.receivedText).toBe("got all of it");
    const other = await bed.serve((socket) => {
      socket.end("first me");
      socket.on("data", (bytes) => expect(bytes.toString()).toBe("then you"));
    });
    const second = bed.open({ name: "a.example", port: other });
    await expect.poll(() => second.hasEnded).toBe(true);
    second.send("then you").end();
    await expect
      .poll(() => bed.records.closed.map(({ sentBytes, reason }) => [sentBytes, reason]))
      .toEqual([
        [9, null],
        [8, null],
      ]);
  });

  it("is reset inside when the host resets it, and the other way round", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const flow = bed.open({ name: "a.example", port }).send("x");
    await expect.poll(() => flow.isReset).toBe(true);
    let isClosed = false;
    const other = await bed.serve((socket) => {
      socket.write("hello");
      socket.on("close", () => {
        isClosed = true;
      });
    });
    const second = bed.open({ name: "a.example", port: other });
    await expect.poll(() => second.receivedText).toBe("hello");
    second.break();
    await expect.poll(() => isClosed).toBe(true);
    expect(bed.records.closed.map(({ reason }) => reason)).toEqual(["reset", "reset"]);
  });

  it("tries the next address when one does not answer", async () => {
    await using bed = new EgressBed({ network: "open", names: { "a.example": ["127.0.0.2", "127.0.0.1"] } });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("ping");
    await expect.poll(() => flow.receivedText).toBe("ping");
    expect(bed.records.opened).toMatchObject([{ address: "127.0.0.1" }]);
  });

  it("is reset, and recorded as allowed, if the host cannot be reached", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port: port === 1 ? 2 : 1 });
    await expect.poll(() => bed.records.closed).toHaveLength(1);
    expect(flow.isReset || flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([{ decision: "allowed", reason: "connect_failed" }]);
    bed.open({ name: "unknown.example", port });
    await expect.poll(() => bed.records.closed[1]).toMatchObject({ decision: "allowed", reason: "name_not_found" });
  });

  it("carries megabytes each way unchanged", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port });
    const text = Array.from({ length: 40_000 }, (_, index) => `line ${index} of many ${"x".repeat(80)}\n`).join("");
    flow.send(text).end();
    await expect.poll(() => flow.hasEnded, { timeout: 10_000 }).toBe(true);
    expect(flow.receivedText === text).toBe(true);
  });
});

describe("a connection that the policy does not allow", () => {
  it("is refused before its name is resolved, and its record names the rule that would allow it", async () => {
    await using bed = new EgressBed({ network: { rules: [{ allow: "a.example", ports: [1] }] }, names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port });
    await expect.poll(() => flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([
      { decision: "denied", reason: "default", rule: "default", suggestion: `allow=a.example:${port}` },
    ]);
    expect(bed.resolved).toEqual([]);
    expect(bed.accepted).toBe(0);
    // The suggested rule does allow it.
    bed.egress.update(completeNetwork({ rules: [{ allow: "a.example", ports: [port] }] }));
    const second = bed.open({ name: "a.example", port }).send("x");
    await expect.poll(() => second.receivedText).toBe("x");
  });

  it("to an address is refused unless the address itself is allowed", async () => {
    await using bed = new EgressBed({ network: { rules: [{ allow: "a.example" }] }, names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ address: "127.0.0.1", port });
    await expect.poll(() => flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([{ address: "127.0.0.1", suggestion: `allow=127.0.0.1:${port}` }]);
    bed.egress.update(completeNetwork({ rules: [{ allow: "127.0.0.0/8" }] }));
    const second = bed.open({ address: "127.0.0.1", port }).send("x");
    await expect.poll(() => second.receivedText).toBe("x");
  });

  it.each([
    "10.0.0.1",
    "169.254.169.254",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "fd00::1",
    "198.18.0.9",
  ])("to %s is refused also if everything is open", async (address) => {
    await using bed = new EgressBed({ network: "open", names: { "a.example": [address] } });
    const flows = [bed.open({ address, port: 80 }), bed.open({ name: "a.example", port: 80 })];
    await expect.poll(() => flows.map(({ isRefused }) => isRefused)).toEqual([true, true]);
    expect(bed.records.closed).toMatchObject([
      { decision: "denied", reason: "special_address", suggestion: null },
      { decision: "denied", reason: "special_address", suggestion: null },
    ]);
  });

  it("skips the addresses of a name that are not reachable", async () => {
    await using bed = new EgressBed({ network: "open", names: { "a.example": ["10.0.0.1", "127.0.0.1", "fe80::1"] } });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("x");
    await expect.poll(() => flow.receivedText).toBe("x");
    expect(bed.records.opened).toMatchObject([{ address: "127.0.0.1" }]);
  });

  it("refuses a name whose address a rule denies", async () => {
    const network = { rules: [{ deny: "127.0.0.0/8" }, { allow: "a.example" }] };
    await using bed = new EgressBed({ network, names: NAMES });
    const flow = bed.open({ name: "a.example", port: 80 });
    await expect.poll(() => flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([{ reason: "rule", decision: "denied" }]);
  });

  it.each(["127.1", "0x7f000001", "a..b", "a b", "2130706433", "[::1]", "a.example:80"])(
    "refuses the name %j",
    async (name) => {
      await using bed = new EgressBed({ network: "open", names: { [name]: ["127.0.0.1"] } });
      const flow = bed.open({ name, port: 80 });
      await expect.poll(() => flow.isRefused).toBe(true);
      expect(bed.records.closed).toMatchObject([{ reason: "invalid_name" }]);
      expect(bed.resolved).toEqual([]);
    },
  );

  it("refuses an address that is none", async () => {
    await using bed = new EgressBed({ network: "open" });
    const flow = bed.open({ address: "0177.0.0.1", port: 80 });
    await expect.poll(() => flow.isRefused).toBe(true);
    expect(bed.records.closed).toMatchObject([{ reason: "invalid_name" }]);
  });
});

describe("a connection that states another host than its own", () => {
  it("is reset before the host of the connection sees a byte", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    let received = "";
    const port = await bed.serve((socket) =>
      socket.on("data", (bytes) => {
        received += bytes;
      }),
    );
    const flow = bed.open({ name: "a.example", port }).send("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
    await expect.poll(() => flow.isReset).toBe(true);
    expect(bed.records.closed).toMatchObject([{ decision: "denied", reason: "http_host_mismatch", sentBytes: 0 }]);
    expect(received).toBe("");
  });

  it("to an address may state any name that no rule denies", async () => {
    const network = { rules: [{ deny: "bad.example" }, { allow: "127.0.0.1" }] };
    await using bed = new EgressBed({ network });
    const port = await bed.serve(echo);
    const open = (host: string) =>
      bed.open({ address: "127.0.0.1", port }).send(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const [good, bad] = [open("good.example"), open("bad.example")];
    await expect.poll(() => good.receivedText).toContain("good.example");
    await expect.poll(() => bad.isReset).toBe(true);
  });
});

describe("a changed policy", () => {
  it("cuts the connections that it no longer allows, and no others", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve(echo);
    const [first, second] = [bed.open({ name: "a.example", port }), bed.open({ name: "b.example", port })];
    first.send("1");
    second.send("2");
    await expect.poll(() => first.receivedText + second.receivedText).toBe("12");
    bed.egress.update(completeNetwork({ rules: [{ allow: "b.example" }] }));
    await expect.poll(() => first.isReset).toBe(true);
    second.send("3");
    await expect.poll(() => second.receivedText).toBe("23");
    expect(bed.records.closed).toMatchObject([{ name: "a.example", reason: "policy_changed" }]);
  });

  it("cuts a connection to a name whose address it now denies", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    const port = await bed.serve(echo);
    const flow = bed.open({ name: "a.example", port }).send("1");
    await expect.poll(() => flow.receivedText).toBe("1");
    bed.egress.update(completeNetwork({ rules: [{ deny: "127.0.0.0/8" }], default: "allow" }));
    await expect.poll(() => flow.isReset).toBe(true);
  });
});
