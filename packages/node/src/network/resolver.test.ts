import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { Resolver } from "./resolver.ts";
import { NameServer } from "./testing/name-server.ts";

const NAMES = { "a.example": "203.0.113.7", "b.example": "203.0.113.8" };
const resolver = ({ address }: NameServer, { clock = new FakeClock(), hasIpv6 = false } = {}) =>
  new Resolver({ servers: [address], clock, hasIpv6: () => hasIpv6 });

describe("the resolver", () => {
  it("asks the configured servers, and not the system's hosts file", async () => {
    await using server = await NameServer.start(NAMES);
    const own = resolver(server);
    expect(await own.resolve("a.example")).toEqual({ kind: "addresses", addresses: ["203.0.113.7"] });
    expect(await own.resolve("localhost")).toEqual({ kind: "not_found" });
    expect(server.asked).toEqual(["a.example", "localhost"]);
  });

  it("asks for IPv6 only where that can be connected to", async () => {
    await using server = await NameServer.start(NAMES);
    expect(await resolver(server, { hasIpv6: true }).resolve("a.example")).toEqual({
      kind: "addresses",
      addresses: ["203.0.113.7"],
    });
    expect(server.asked).toEqual(["a.example", "a.example"]);
  });

  it("asks once for concurrent callers, and again when the answer has expired", async () => {
    const clock = new FakeClock();
    await using server = await NameServer.start(NAMES);
    const own = resolver(server, { clock });
    await Promise.all([own.resolve("a.example"), own.resolve("a.example")]);
    await own.resolve("a.example");
    expect(server.asked).toHaveLength(1);
    clock.run(61_000);
    await own.resolve("a.example");
    expect(server.asked).toHaveLength(2);
  });

  it("keeps for a short while that a name does not exist", async () => {
    const clock = new FakeClock();
    await using server = await NameServer.start(NAMES);
    const own = resolver(server, { clock });
    expect(await own.resolve("unknown.example")).toEqual({ kind: "not_found" });
    await own.resolve("unknown.example");
    expect(server.asked).toHaveLength(1);
    clock.run(3000);
    await own.resolve("unknown.example");
    expect(server.asked).toHaveLength(2);
  });

  it("reports a failure of the servers, and tries again at the next call", async () => {
    const own = new Resolver({ servers: ["127.0.0.1:1"], clock: new FakeClock(), hasIpv6: () => false });
    expect(await own.resolve("a.example")).toEqual({ kind: "failed" });
    expect(own.resolve("a.example")).toBeInstanceOf(Promise);
    own.close();
  });
});
