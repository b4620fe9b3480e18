import { pause } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { type CheckpointPolicy, createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { AutomaticCheckpoints } from "./automatic-checkpoints.ts";

const OFF: CheckpointPolicy = { everyMs: null, onIdle: false, onDisconnect: false, perCommand: false, keepLast: 3 };

function setUp(settings: Partial<CheckpointPolicy> | null, { fails = 0, saveMs = 0 } = {}) {
  const clock = new FakeClock();
  const id = createSandboxId();
  const policy = { value: settings && { ...OFF, ...settings } };
  const saves: number[] = [];
  const errors: string[] = [];
  let failures = fails;
  const automatic = new AutomaticCheckpoints({
    clock,
    policyOf: () => policy.value,
    async save() {
      saves.push(clock.monotonicMs());
      if (saveMs > 0) await pause(clock, saveMs);
      if (failures-- > 0) throw new Error("the store is down");
    },
    onError: ({ message }) => errors.push(message),
  });
  const forwarded: string[] = [];
  const activity = automatic.watch(id, {
    touch: (kind) => void forwarded.push(kind),
    hold: (kind) => {
      forwarded.push(`+${kind}`);
      return { [Symbol.dispose]: () => void forwarded.push(`-${kind}`) };
    },
  });
  return { clock, activity, saves, errors, forwarded, policy };
}

describe("automatic checkpoints", () => {
  it("are not taken without a policy, and activity is forwarded", async () => {
    const { clock, activity, saves, forwarded } = setUp(null);
    activity.touch("file");
    using _ = activity.hold("client");
    await clock.advance(1_000_000);
    expect(saves).toEqual([]);
    expect(forwarded).toEqual(["file", "+client"]);
  });

  it("of a sandbox that is used often take at most a tenth of its time", async () => {
    const { clock, activity, saves } = setUp({ onIdle: true }, { saveMs: 3000 });
    for (let second = 0; second < 120; second += 5) {
      activity.touch("file");
      await clock.advance(5000);
    }
    expect(saves.length).toBeGreaterThanOrEqual(3);
    expect(saves.length).toBeLessThanOrEqual(4);
  });

  it("are taken at the policy's interval, but only after a change", async () => {
    const { clock, activity, saves } = setUp({ everyMs: 10_000 });
    activity.touch("file");
    await clock.advance(9_000);
    expect(saves).toHaveLength(0);
    await clock.advance(2_000);
    expect(saves).toHaveLength(1);
    await clock.advance(60_000);
    expect(saves).toHaveLength(1);
    activity.touch("exec");
    await clock.advance(11_000);
    expect(saves).toHaveLength(2);
  });

  it("are taken while a process runs, because it may change the sandbox", async () => {
    const { clock, activity, saves } = setUp({ everyMs: 10_000 });
    const process = activity.hold("process");
    await clock.advance(45_000);
    expect(saves.length).toBeGreaterThanOrEqual(4);
    process[Symbol.dispose]();
    await clock.advance(20_000);
    const { length } = saves;
    await clock.advance(60_000);
    expect(saves).toHaveLength(length);
  });

  it("are taken after each command, after the last client disconnects, or when the sandbox is idle", async () => {
    const command = setUp({ perCommand: true });
    command.activity.hold("exec")[Symbol.dispose]();
    command.activity.hold("client")[Symbol.dispose]();
    expect(command.saves).toHaveLength(1);

    const client = setUp({ onDisconnect: true });
    const [one, other] = [client.activity.hold("client"), client.activity.hold("client")];
    one[Symbol.dispose]();
    expect(client.saves).toHaveLength(0);
    other[Symbol.dispose]();
    other[Symbol.dispose]();
    expect(client.saves).toHaveLength(1);

    const idle = setUp({ onIdle: true });
    idle.activity.touch("file");
    await idle.clock.advance(1000);
    idle.activity.touch("file");
    await idle.clock.advance(1500);
    expect(idle.saves).toHaveLength(0);
    await idle.clock.advance(1000);
    expect(idle.saves).toHaveLength(1);
    await idle.clock.advance(100_000);
    expect(idle.saves).toHaveLength(1);
  });

  it("are taken only once more if several are requested during a save", async () => {
    const { activity, saves, clock } = setUp({ perCommand: true });
    for (let k = 0; k < 5; k++) activity.hold("exec")[Symbol.dispose]();
    await clock.advance(0);
    expect(saves).toHaveLength(2);
  });

  it("are reported when they fail, and retried at the next interval", async () => {
    const { activity, saves, errors, clock } = setUp({ everyMs: 10_000 }, { fails: 1 });
    activity.touch("file");
    await clock.advance(11_000);
    expect(errors).toEqual(["the store is down"]);
    await clock.advance(11_000);
    expect(saves).toHaveLength(2);
  });

  it("end with the sandbox", async () => {
    const { activity, saves, clock } = setUp({ everyMs: 10_000 });
    activity.touch("file");
    activity[Symbol.dispose]();
    await clock.advance(60_000);
    expect(saves).toEqual([]);
  });
});
