import { FakeClock } from "@sandpiper/core/testing";
import { type CheckpointPolicy, createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { AutomaticCheckpoints } from "./automatic-checkpoints.ts";

const OFF: CheckpointPolicy = { everyMs: null, onIdle: false, onDisconnect: false, perCommand: false, keepLast: 3 };

function setUp(given: Partial<CheckpointPolicy> | null, { fails = 0 } = {}) {
  const clock = new FakeClock();
  const id = createSandboxId();
  const policy = { value: given && { ...OFF, ...given } };
  const saves: number[] = [];
  const errors: string[] = [];
  let failures = fails;
  const automatic = new AutomaticCheckpoints({
    clock,
    policyOf: () => policy.value,
    async save() {
      saves.push(clock.monotonicMs());
      if (failures-- > 0) throw new Error("the store is away");
    },
    onError: ({ message }) => errors.push(message),
  });
  const told: string[] = [];
  const activity = automatic.watch(id, {
    touch: (what) => void told.push(what),
    hold: (what) => {
      told.push(`+${what}`);
      return { [Symbol.dispose]: () => void told.push(`-${what}`) };
    },
  });
  return { clock, activity, saves, errors, told, policy };
}

describe("automatic checkpoints", () => {
  it("are none without a policy, and everything is passed on", async () => {
    const { clock, activity, saves, told } = setUp(null);
    activity.touch("file");
    using _ = activity.hold("client");
    await clock.advance(1_000_000);
    expect(saves).toEqual([]);
    expect(told).toEqual(["file", "+client"]);
  });

  it("come so often as is said while something changes, and not while nothing does", async () => {
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

  it("go on while a process runs: it changes the sandbox without anybody's doing", async () => {
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

  it("come after each command, after the last client, or when it is idle", async () => {
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

  it("that are wanted again while one is taken are taken once more, not many times", async () => {
    const { activity, saves, clock } = setUp({ perCommand: true });
    for (let k = 0; k < 5; k++) activity.hold("exec")[Symbol.dispose]();
    await clock.advance(0);
    expect(saves).toHaveLength(2);
  });

  it("that fail are told of, and tried again in their time", async () => {
    const { activity, saves, errors, clock } = setUp({ everyMs: 10_000 }, { fails: 1 });
    activity.touch("file");
    await clock.advance(11_000);
    expect(errors).toEqual(["the store is away"]);
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
