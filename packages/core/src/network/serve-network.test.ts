import { rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { connectedAgent } from "../testing/scripted-agent.ts";
import type { GuestFlow } from "./guest-flow.ts";
import { type GuestDatagram, type GuestQuery, serveNetwork } from "./serve-network.ts";

const flowLine = { kind: "flow", name: "pypi.org", address: "198.18.0.1", port: 443, pid: 41, program: "python3" };

async function served(isRedirected = true) {
  const { agent, client } = await connectedAgent();
  const flows: GuestFlow[] = [];
  const queries: GuestQuery[] = [];
  const datagrams: GuestDatagram[] = [];
  const opening = serveNetwork(client, {
    onFlow: (flow) => flows.push(flow),
    onQuery: (query) => queries.push(query),
    onDatagram: (datagram) => datagrams.push(datagram),
  });
  await settle();
  const request = agent.sent("net.serve")[0] ?? {};
  const announce = async (...lines: object[]) => {
    agent.data(request, new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
    await settle();
  };
  await announce({ kind: "ready", redirected: isRedirected });
  return { agent, client, request, flows, queries, datagrams, announce, network: await opening };
}

describe("the network of a sandbox", () => {
  it("is served once the agent is ready, and says whether connections are redirected", async () => {
    expect((await served()).network.isRedirected).toBe(true);
    expect((await served(false)).network.isRedirected).toBe(false);
  });

  it("rejects with unimplemented for an agent of an earlier generation", async () => {
    const { agent, client } = await connectedAgent();
    agent.on("net.serve", ({ message }) => agent.fail(message, { code: "unimplemented", reason: "unknown_method" }));
    const opening = serveNetwork(client, { onFlow() {}, onQuery() {}, onDatagram() {} });
    expect(await rejection(opening)).toMatchObject({ code: "unimplemented", reason: "unknown_method" });
  });

  it("announces a flow, whose accept is a tunnel", async () => {
    const { agent, flows, announce } = await served();
    await announce({ ...flowLine, flow: 1 });
    expect(flows[0]).toMatchObject({ id: 1, name: "pypi.org", address: "198.18.0.1", port: 443, program: "python3" });
    const accepting = flows[0]?.accept();
    await settle();
    const request = agent.sent("net.accept")[0] ?? {};
    expect(request).toMatchObject({ params: { flow: 1 } });
    agent.credit(request, 100);
    const tunnel = await accepting;
    agent.data(request, new TextEncoder().encode("hello"));
    agent.say({ jsonrpc: "2.0", method: "stream.end", params: { call: request["id"] } });
    const pieces = await Array.fromAsync(tunnel?.readable ?? []);
    expect(pieces.map((piece) => new TextDecoder().decode(piece))).toEqual(["hello"]);
  });

  it("refuses a flow once, and one whose handler throws", async () => {
    const { agent, client } = await connectedAgent();
    agent.on("net.serve", ({ message }) => {
      const lines = [{ kind: "ready", redirected: true }, ...[1, 2].map((flow) => ({ ...flowLine, flow }))];
      agent.data(message, new TextEncoder().encode(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
    });
    await serveNetwork(client, {
      onFlow(flow) {
        if (flow.id === 1) throw new Error("a fault of the handler");
        flow.refuse();
        flow.refuse();
      },
      onQuery() {},
      onDatagram() {},
    });
    await settle();
    expect(agent.sent("net.refuse").map(({ params }) => params)).toEqual([{ flow: 1 }, { flow: 2 }]);
  });

  it("tells that a flow is gone when the guest closes it or the channel ends, but not after it was accepted", async () => {
    const { agent, flows, announce, network } = await served();
    await announce(...[1, 2, 3].map((flow) => ({ ...flowLine, flow })), { kind: "gone", flow: 1 });
    void flows[2]?.accept().catch(() => {});
    expect(flows.map(({ gone }) => gone.aborted)).toEqual([true, false, false]);
    agent.hangUp();
    expect(await network.ended).toMatchObject({ reason: "channel_closed" });
    expect(flows.map(({ gone }) => gone.aborted)).toEqual([true, true, false]);
    flows[1]?.refuse();
    await settle();
    expect(agent.sent("net.refuse")).toEqual([]);
  });

  it("passes a query's first answer on, and reports dropped datagrams", async () => {
    const { agent, queries, datagrams, announce } = await served();
    await announce(
      { kind: "query", query: 7, name: "pypi.org", type: "A" },
      { kind: "datagram", address: null, port: null, count: 2 },
    );
    expect(queries[0]).toMatchObject({ name: "pypi.org", type: "A" });
    queries[0]?.answer("stand_in");
    queries[0]?.answer("refused");
    await settle();
    expect(agent.sent("net.answer").map(({ params }) => params)).toEqual([{ query: 7, outcome: "stand_in" }]);
    expect(datagrams).toMatchObject([{ address: null, port: null, count: 2 }]);
  });

  it("ends with an error when the agent announces nonsense, and cancels the call", async () => {
    for (const lines of [
      [
        { ...flowLine, flow: 1 },
        { ...flowLine, flow: 1 },
      ],
      [{ ...flowLine, flow: 1, port: 0 }],
      [{ kind: "query", query: 1, name: "x".repeat(254), type: "A" }],
      [{ kind: "surprise" }],
    ]) {
      const { agent, announce, network } = await served();
      await announce(...lines);
      expect(await network.ended).toMatchObject({ reason: "invalid_answer" });
      await settle();
      expect(agent.sent("cancel")).toHaveLength(1);
    }
  });

  it("ends without an error when it is closed", async () => {
    const { agent, network } = await served();
    network.close();
    expect(await network.ended).toBeUndefined();
    await settle();
    expect(agent.sent("cancel")).toHaveLength(1);
  });
});
