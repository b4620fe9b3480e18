import { describe, expect, it } from "vitest";
import { Semaphore } from "./semaphore.ts";

const never = new AbortController().signal;

describe("Semaphore", () => {
  it("runs as many tasks at once as it has slots, and the others in order", async () => {
    const semaphore = new Semaphore(2);
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    const started: number[] = [];
    const done = gates.map(({ promise }, index) =>
      semaphore.run(() => {
        started.push(index);
        return promise;
      }, never),
    );
    await Promise.resolve();
    expect(started).toEqual([0, 1]);
    gates[1]?.resolve();
    await done[1];
    expect(started).toEqual([0, 1, 2]);
    for (const gate of gates) gate.resolve();
    await Promise.all(done);
    expect(started).toEqual([0, 1, 2, 3]);
  });

  it("passes the slot of a failed task on", async () => {
    const semaphore = new Semaphore(1);
    const failed = semaphore.run(() => Promise.reject(new Error("no")), never);
    const next = semaphore.run(async () => "done", never);
    await expect(failed).rejects.toThrow("no");
    expect(await next).toBe("done");
  });

  it("drops a task that is aborted while it waits", async () => {
    const semaphore = new Semaphore(1);
    const gate = Promise.withResolvers<void>();
    const first = semaphore.run(() => gate.promise, never);
    const abort = new AbortController();
    const waiting = semaphore.run(async () => "never", abort.signal);
    const last = semaphore.run(async () => "last", never);
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    gate.resolve();
    await first;
    expect(await last).toBe("last");
  });
});
