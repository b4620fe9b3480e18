import { createSandboxId } from "@sandpiper/protocol";
import { FakeClock, rejection, settle } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import type { ConnectedChannel, Instance, InstanceExit } from "../provider.ts";
import { ScriptedAgent } from "../testing/scripted-agent.ts";
import { connectAgent } from "./connect-agent.ts";

class ConnectScript implements Instance {
  readonly id = createSandboxId();
  readonly exit = Promise.withResolvers<InstanceExit>();
  readonly exited = this.exit.promise;
  attempts = 0;
  readonly #connect: (attempt: number) => Promise<ConnectedChannel>;

  constructor(connect: (attempt: number) => Promise<ConnectedChannel>) {
    this.#connect = connect;
  }

  connect(): Promise<ConnectedChannel> {
    return this.#connect(++this.attempts);
  }

  async checkpoint(): Promise<void> {}

  async destroy(): Promise<void> {}
}

const silentAgent = () => {
  const agent = new ScriptedAgent();
  agent.on("hello", () => {});
  return agent;
};
const accept = async ({ channel }: ScriptedAgent) => ({ channel, needsResync: false });

/** A connection whose attempts the test answers. */
function connecting(connect: (attempt: number) => Promise<ConnectedChannel>, signal?: AbortSignal) {
  const clock = new FakeClock();
  const instance = new ConnectScript(connect);
  const result = connectAgent(instance, { clock, signal });
  result.catch(() => {});
  return { clock, instance, result };
}

describe("connecting to an agent", () => {
  it("retries every 100 ms until the agent answers", async () => {
    const { clock, instance, result } = connecting((attempt) =>
      attempt < 4 ? Promise.reject(new Error("refused")) : accept(new ScriptedAgent()),
    );
    await clock.advance(299);
    expect(instance.attempts).toBe(3);
    await clock.advance(1);
    await result;
    expect(instance.attempts).toBe(4);
    expect(clock.pending).toBe(0);
  });

  it("fails after 10 s with the error of the last attempt", async () => {
    const { clock, instance, result } = connecting(() => Promise.reject(new Error("connection refused")));
    await clock.advance(10_000);
    const error = await rejection(result);
    expect(error).toMatchObject({ code: "unavailable", reason: "agent_timeout" });
    expect(error.message).toContain("connection refused");
    expect(instance.attempts).toBe(100);
    expect(clock.pending).toBe(0);
  });

  it("opens another channel when the first is accepted but silent", async () => {
    const silent = silentAgent();
    const { clock, instance, result } = connecting((attempt) => accept(attempt === 1 ? silent : new ScriptedAgent()));
    await clock.advance(5_000);
    await result;
    expect(silent.isClosed).toBe(true);
    expect(instance.attempts).toBe(2);
  });

  it("gives up when all channels are silent", async () => {
    const agents: ScriptedAgent[] = [];
    const { clock, result } = connecting(() => accept(agents[agents.push(silentAgent()) - 1] as ScriptedAgent));
    await clock.advance(10_000);
    expect(await rejection(result)).toMatchObject({ code: "unavailable", reason: "agent_timeout" });
    expect(agents.every(({ isClosed }) => isClosed)).toBe(true);
  });

  it("gives up on a provider that never answers, and closes a late channel", async () => {
    const late = Promise.withResolvers<ConnectedChannel>();
    const { clock, result } = connecting(() => late.promise);
    await clock.advance(10_000);
    expect(await rejection(result)).toMatchObject({ reason: "agent_timeout" });
    const agent = new ScriptedAgent();
    late.resolve(await accept(agent));
    await settle();
    expect(agent.isClosed).toBe(true);
  });

  it("fails immediately, with the reason, when the instance ends", async () => {
    const { clock, instance, result } = connecting(() => accept(silentAgent()));
    await settle();
    instance.exit.resolve({ reason: "out_of_memory", message: "too small" });
    expect(await rejection(result)).toMatchObject({ code: "gone", reason: "out_of_memory" });
    expect(clock.pending).toBe(0);
  });

  it("ends when its caller aborts", async () => {
    const abort = new AbortController();
    const { clock, result } = connecting(() => Promise.reject(new Error("refused")), abort.signal);
    await settle();
    abort.abort();
    expect(await rejection(result)).toMatchObject({ code: "canceled" });
    expect(clock.pending).toBe(0);
  });
});
