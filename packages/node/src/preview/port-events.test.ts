import type { GuestPort, PortEvent, PortWatcher } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { createSandboxId, SandboxError } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { PortEvents } from "./port-events.ts";

const id = createSandboxId();
const portAt = (port: number): GuestPort => ({ port, address: "0.0.0.0", pid: 3, program: "node" });

/** An agent whose ports the test opens and closes. */
function setUp(fail?: SandboxError) {
  const clock = new FakeClock();
  const emitted: string[] = [];
  const errors: SandboxError[] = [];
  const open = new Set<number>();
  let watches = 0;
  let tell: (event: PortEvent) => void = () => {};
  const events = new PortEvents({
    clock,
    listPorts: async () => [...open].map(portAt),
    async watchPorts(_, signal) {
      if (fail !== undefined) throw fail;
      watches++;
      const queue: PortEvent[] = [...open].map((port) => ({ kind: "opened", ...portAt(port) }));
      let wake = () => {};
      tell = (event) => {
        queue.push(event);
        wake();
      };
      signal.addEventListener("abort", () => wake());
      async function* run() {
        try {
          for (;;) {
            if (signal.aborted) throw new SandboxError("canceled", { message: "canceled" });
            const next = queue.shift();
            if (next !== undefined) yield next;
            else
              await new Promise<void>((resolve) => {
                wake = resolve;
              });
          }
        } finally {
          watches--;
        }
      }
      return Object.assign(run(), { async [Symbol.asyncDispose]() {} }) as unknown as PortWatcher;
    },
    emit: (_, kind, { port }) => emitted.push(`${kind} ${port}`),
    onError: (error) => errors.push(error),
  });
  const activity = events.watch(id, { touch() {}, hold: () => ({ [Symbol.dispose]() {} }) });
  const change = (kind: PortEvent["kind"], port: number) => {
    if (kind === "opened") open.add(port);
    else open.delete(port);
    tell({ kind, ...portAt(port) });
  };
  return { clock, emitted, errors, activity, change, isWatching: () => watches > 0 };
}

describe("the events of ports", () => {
  it("report ports that open and close while the sandbox is used", async () => {
    const { clock, emitted, activity, change } = setUp();
    activity.touch("exec");
    await clock.advance(300);
    change("opened", 8000);
    change("closed", 8000);
    await expect.poll(() => emitted).toEqual(["port.opened 8000", "port.closed 8000"]);
  });

  it("do not watch a sandbox that runs short commands, or whose output is only read", async () => {
    const { clock, activity, isWatching } = setUp();
    activity.touch("output");
    activity.touch("client");
    await clock.advance(10_000);
    expect([isWatching(), clock.pending]).toEqual([false, 0]);
  });

  it("stop watching a minute after the last use, and report later what changed meanwhile", async () => {
    const { clock, emitted, activity, change, isWatching } = setUp();
    activity.touch("exec");
    await clock.advance(300);
    change("opened", 8000);
    await expect.poll(() => emitted.length).toBe(1);
    await clock.advance(61_000);
    await expect.poll(isWatching).toBe(false);
    expect(clock.pending).toBe(0);
    change("closed", 8000);
    change("opened", 9000);
    activity.touch("file");
    await clock.advance(300);
    await expect.poll(() => emitted.slice(1)).toEqual(["port.closed 8000", "port.opened 9000"]);
  });

  it("watch longer while a process runs, but not for good", async () => {
    const { clock, activity, isWatching } = setUp();
    using _process = activity.hold("process");
    await clock.advance(300);
    await expect.poll(isWatching).toBe(true);
    for (let minute = 0; minute < 8; minute++) await clock.advance(60_000);
    expect(isWatching()).toBe(true);
    for (let minute = 0; minute < 4; minute++) await clock.advance(60_000);
    await expect.poll(isWatching).toBe(false);
  });

  it("are limited to sixty in a minute", async () => {
    const { clock, emitted, activity, change } = setUp();
    activity.touch("exec");
    await clock.advance(300);
    for (let port = 1; port <= 200; port++) change("opened", port);
    await clock.advance(1);
    await expect.poll(() => emitted.length).toBe(60);
  });

  it("give up on an agent that cannot list ports", async () => {
    const { clock, errors, activity } = setUp(new SandboxError("unknown_method", { message: "no such method" }));
    activity.touch("exec");
    await clock.advance(300);
    activity.touch("exec");
    await clock.advance(300);
    expect([errors, clock.pending]).toEqual([[], 0]);
  });

  it("end with the sandbox", async () => {
    const { clock, activity, isWatching } = setUp();
    activity.touch("exec");
    await clock.advance(300);
    await expect.poll(isWatching).toBe(true);
    activity[Symbol.dispose]();
    await expect.poll(isWatching).toBe(false);
    expect(clock.pending).toBe(0);
  });
});
