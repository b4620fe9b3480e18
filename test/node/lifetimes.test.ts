import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

describe("lifetimes on gVisor", () => {
  it("end sandboxes within a second of their latest TTL or idle timeout, and leave nothing behind", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0 });
    const { sandboxes } = node.client;
    const [plain, longer, shorter, idle, busy] = await Promise.all([
      sandboxes.create({ ttlMs: 3000 }),
      sandboxes.create(),
      sandboxes.create({ ttlMs: 3_600_000 }),
      sandboxes.create({ idleTimeoutMs: 2000 }),
      sandboxes.create(),
    ]);
    const ids = [plain.id, shorter.id, idle.id];
    const running = await busy.start("sleep 3600");
    await busy.update({ idleTimeoutMs: 2000 });
    await longer.update({ ttlMs: 2000 });
    await longer.update({ ttlMs: 3_600_000 });
    const { expiresAt } = await shorter.update({ ttlMs: 2000 });
    await using events = node.client.events({ after: 0 });
    const expired = new Map<string, { at: number; reason: unknown }>();
    for await (const { kind, sandboxId, at, details } of events) {
      if (kind === "sandbox.expired") expired.set(sandboxId ?? "", { at: Date.parse(at), reason: details["reason"] });
      if (ids.every((id) => expired.has(id))) break;
    }
    expect([...expired.keys()].sort()).toEqual([...ids].sort());
    expect(ids.map((id) => expired.get(id)?.reason)).toEqual(["ttl", "ttl", "idle"]);
    for (const [id, due] of [
      [plain.id, plain.info.expiresAt],
      [shorter.id, expiresAt],
    ] as const) {
      const lateMs = (expired.get(id)?.at ?? 0) - Date.parse(due ?? "");
      expect(lateMs).toBeGreaterThanOrEqual(0);
      expect(lateMs).toBeLessThan(1000);
    }
    await expect.poll(() => home.left(ids)).toEqual([]);
    expect((await longer.refresh()).state).toBe("ready");
    expect((await busy.refresh()).state).toBe("ready");

    await running.kill();
    await expect.poll(async () => (await busy.refresh()).state).toBe("destroyed");
    await longer.destroy();
    expect(await home.instances()).toEqual([]);
    expect(await home.left([busy.id, longer.id])).toEqual([]);
  });
});
