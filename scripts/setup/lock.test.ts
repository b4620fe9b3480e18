import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { withLock } from "./lock.mjs";

const ignoreWait = () => {};

it("lets one holder of a lock work at a time, and the next one after it", async () => {
  const name = randomUUID();
  const events: string[] = [];
  const secondWaits = Promise.withResolvers<void>();
  const first = withLock(
    name,
    async () => {
      events.push("first begins");
      await secondWaits.promise;
      events.push("first ends");
    },
    () => events.push("first waits"),
  );
  const second = withLock(
    name,
    async () => events.push("second works"),
    () => {
      events.push("second waits");
      secondWaits.resolve();
    },
  );
  await Promise.all([first, second]);
  expect(events).toEqual(["first begins", "second waits", "first ends", "second works"]);
});

it("frees the lock when the work fails", async () => {
  const name = randomUUID();
  const fail = () => Promise.reject(new Error("broken"));
  await expect(withLock(name, fail, ignoreWait)).rejects.toThrow("broken");
  await expect(withLock(name, async () => "done", ignoreWait)).resolves.toBe("done");
});

it("keeps locks of different names apart", async () => {
  const inner = () => withLock(randomUUID(), async () => "inner", ignoreWait);
  await expect(withLock(randomUUID(), inner, ignoreWait)).resolves.toBe("inner");
});
