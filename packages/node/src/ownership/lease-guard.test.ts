import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { LeaseGuard } from "./lease-guard.ts";

it("clears the kill of a sandbox only if its lease was resumed in the same moment", async () => {
  const clock = new FakeClock();
  const [resumed, over] = [createSandboxId(), createSandboxId()];
  const ended = new Set<SandboxId>();
  const deadlines = new Map<SandboxId, number>();
  using guard = new LeaseGuard({
    guard: {
      start: async () => {},
      close: () => {},
      set: (id, deadlineMs) => void deadlines.set(id, deadlineMs),
      remove: (id) => {
        ended.delete(id);
        deadlines.delete(id);
      },
      ended: async () => [...ended],
    },
    clock,
    lookMs: 100,
    onError: (error) => expect.unreachable(error.message),
  });
  await guard.start();
  guard.setDeadline(resumed, 1000);
  guard.setDeadline(over, 50);
  ended.add(resumed).add(over);
  await clock.advance(100);
  expect([...ended]).toEqual([over]);
  expect(deadlines.get(resumed)).toBe(1000);
});
