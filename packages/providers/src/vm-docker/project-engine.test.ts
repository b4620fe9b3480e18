import type { Clock, InstanceExit, Provider } from "@sandpiper/core";
import { FakeClock, rejection } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { ProjectEngine } from "./project-engine.ts";
import type { Vm } from "./vm/vm-driver.ts";

function create() {
  const exited = Promise.withResolvers<InstanceExit>();
  const vm = { id: "1", projectId: "shop", exited: exited.promise } as Vm;
  const clock = new FakeClock();
  let given: Clock = clock;
  const engine = new ProjectEngine(
    vm,
    (time) => {
      given = time;
      return {} as Provider;
    },
    clock,
  );
  return { engine, clock, given, end: () => exited.resolve({ reason: "crashed", message: "QEMU was killed" }) };
}

it("rejects every call of an engine with the reason why its machine ended", async () => {
  const { engine, end } = create();
  const never = rejection(engine.while(() => new Promise(() => {})));
  const broken = rejection(
    engine.while(
      (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("EPIPE")))),
    ),
  );
  end();
  for (const error of [await never, await broken, await rejection(engine.while(async () => "late"))]) {
    expect(error).toMatchObject({
      code: "gone",
      reason: "machine_ended",
      message: expect.stringContaining("QEMU was killed"),
    });
  }
});

it("drops the timers of an engine whose machine has ended", async () => {
  const { engine, clock, given, end } = create();
  let calls = 0;
  given.schedule(10, () => calls++);
  await clock.advance(10);
  given.schedule(10, () => calls++);
  given.schedule(10, () => calls++)();
  expect(clock.pending).toBe(1);
  end();
  await rejection(engine.while(() => new Promise(() => {})));
  expect(clock.pending).toBe(0);
  given.schedule(10, () => calls++);
  await clock.advance(100);
  expect(calls).toBe(1);
});
