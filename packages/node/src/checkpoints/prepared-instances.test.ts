import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { PreparedInstances } from "./prepared-instances.ts";

const key = {
  provider: "mock",
  image: "host",
  memoryMib: 64,
  vcpuCount: 1,
  diskMib: 64,
  maxProcesses: 16,
} as const;

function setUp({ fails = false } = {}) {
  const clock = new FakeClock();
  const alive = new Set<string>();
  const errors: string[] = [];
  const prepared = new PreparedInstances({
    clock,
    providers: {
      async prepare(_key, { id }) {
        if (fails) throw new Error("no room");
        alive.add(id);
        return { restore: () => Promise.reject(new Error("not here")), destroy: async () => void alive.delete(id) };
      },
    },
    onError: ({ message }) => errors.push(message),
  });
  return { clock, alive, prepared, errors };
}

describe("prepared instances", () => {
  it("are created on demand, and in advance for a shape that was used before", async () => {
    const { alive, prepared } = setUp();
    const first = prepared.take(key);
    await first.instance;
    prepared.refill(key, 1);
    prepared.refill(key, 1);
    expect(alive.size).toBe(2);
    const second = prepared.take(key);
    expect(second.id).not.toBe(first.id);
    expect(alive.size).toBe(2);
    prepared.take({ ...key, memoryMib: 128 });
    expect(alive.size).toBe(3);
    prepared.refill(key, 1);
    // A prepared instance has the environment of its service.
    const other = prepared.take({ ...key, env: { TOKEN: "of another sandbox" } });
    expect(prepared.take(key).id).not.toBe(other.id);
    expect(alive.size).toBe(5);
  });

  it("are as many as the largest recent fork needed, up to four", async () => {
    const { alive, prepared } = setUp();
    prepared.refill(key, 3);
    expect(alive.size).toBe(3);
    prepared.take(key);
    prepared.refill(key, 1);
    expect(alive.size).toBe(4);
    prepared.refill(key, 30);
    expect(alive.size).toBe(5);
  });

  it("are destroyed after a minute without use, and on disposal", async () => {
    const { alive, prepared, clock } = setUp();
    prepared.refill(key, 1);
    await clock.advance(59_000);
    expect(alive.size).toBe(1);
    await clock.advance(2_000);
    expect(alive.size).toBe(0);
    prepared.refill(key, 1);
    await prepared[Symbol.asyncDispose]();
    expect(alive.size).toBe(0);
    prepared.refill(key, 1);
    expect(alive.size).toBe(0);
  });

  it("are reported if their preparation fails, and prepared again on demand", async () => {
    const { prepared, errors, clock } = setUp({ fails: true });
    prepared.refill(key, 1);
    await clock.advance(0);
    expect(errors).toEqual(["no room"]);
    await expect(prepared.take(key).instance).rejects.toThrow("no room");
  });
});
