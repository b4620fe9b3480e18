import { SandboxError } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { BootSlots } from "./boot-slots.ts";

describe("boot slots", () => {
  it("go to callers before refills, in order of arrival", async () => {
    let freed = 0;
    const slots = new BootSlots(1, () => freed++);
    expect(slots.tryTake()).toBe(true);
    const order: string[] = [];
    const first = slots.run(async () => order.push("first"), undefined);
    const second = slots.run(async () => order.push("second"), undefined);
    expect(slots.tryTake()).toBe(false);
    slots.give();
    expect(slots.tryTake()).toBe(false);
    await Promise.all([first, second]);
    expect(order).toEqual(["first", "second"]);
    expect(freed).toBe(1);
    expect(slots.tryTake()).toBe(true);
  });

  it("are freed by work that fails", async () => {
    const slots = new BootSlots(1, () => {});
    expect(await rejection(slots.run(() => Promise.reject(new Error("no")), undefined))).toMatchObject({
      message: "no",
    });
    expect(await slots.run(async () => 7, undefined)).toBe(7);
  });

  it("are not lost when a waiting caller aborts", async () => {
    const slots = new BootSlots(1, () => {});
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = slots.run(() => promise, undefined);
    const caller = new AbortController();
    const waiting = rejection(slots.run(async () => {}, caller.signal));
    caller.abort();
    expect(await waiting).toMatchObject({ code: "canceled" });
    expect(await rejection(slots.run(async () => {}, caller.signal))).toMatchObject({ code: "canceled" });
    resolve();
    await running;
    expect(slots.tryTake()).toBe(true);
    expect(slots.tryTake()).toBe(false);
  });

  it("reject waiting callers when they close, and let running work finish", async () => {
    const slots = new BootSlots(1, () => {});
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = slots.run(() => promise, undefined);
    const waiting = rejection(slots.run(async () => {}, undefined));
    slots.close(new SandboxError("pool_closed", { message: "closed" }));
    expect(await waiting).toMatchObject({ code: "unavailable", reason: "pool_closed" });
    expect(await rejection(slots.run(async () => {}, undefined))).toMatchObject({ reason: "pool_closed" });
    resolve();
    await running;
  });
});
