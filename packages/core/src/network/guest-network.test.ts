import { FakeClock, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { ScriptedAgent } from "../testing/scripted-agent.ts";
import { GuestNetwork } from "./guest-network.ts";

/** A sandbox whose channels are lost and reopened; each is served by an agent of its own. */
async function sandbox() {
  const clock = new FakeClock();
  const agents: ScriptedAgent[] = [];
  const state = { isAlive: true, serving: 0, client: await connect() };
  async function connect() {
    const agent = new ScriptedAgent();
    agent.on("net.serve", ({ message }) => {
      agent.data(message, new TextEncoder().encode(`${JSON.stringify({ kind: "ready", redirected: true })}\n`));
    });
    agents.push(agent);
    return agent.client({ clock });
  }
  const network = await GuestNetwork.open({
    handler: { onFlow() {}, onQuery() {}, onDatagram() {} },
    clock,
    isAlive: () => state.isAlive,
    onServing: (change) => {
      state.serving += change;
    },
    async client() {
      if (state.client.isClosed) state.client = await connect();
      return state.client;
    },
  });
  await settle();
  return { clock, agents, state, network };
}

describe("serving the network of a sandbox", () => {
  it("continues on the next channel when one is lost", async () => {
    const { agents, state } = await sandbox();
    expect(state.serving).toBe(1);
    agents[0]?.hangUp();
    await expect.poll(() => agents[1]?.sent("net.serve")).toHaveLength(1);
    await expect.poll(() => state.serving).toBe(1);
  });

  it("ends with the sandbox", async () => {
    const { agents, state, network } = await sandbox();
    state.isAlive = false;
    agents[0]?.hangUp();
    await network.ended;
    expect(agents).toHaveLength(1);
    expect(state.serving).toBe(0);
  });

  it("ends when it is closed, and does not open another channel", async () => {
    const { agents, network } = await sandbox();
    network.close();
    await network.ended;
    expect(agents).toHaveLength(1);
  });

  it("ends when another program serves the network instead", async () => {
    const { agents, network } = await sandbox();
    agents[0]?.answer(agents[0].sent("net.serve")[0] ?? {}, {});
    await network.ended;
    expect(agents).toHaveLength(1);
  });
});
