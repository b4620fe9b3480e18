import { type PreparedSandbox, SandboxError } from "@sandpiper/core";
import { FakeClock, rejection } from "@sandpiper/core/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { Preparation } from "./preparation.ts";

let clock: FakeClock;
let prepareTimes: Map<string, number>;
beforeEach(() => {
  clock = new FakeClock();
  prepareTimes = new Map();
});

/** A preparation whose provider answers when the test says so. */
function start({ signal }: { readonly signal?: AbortSignal } = {}) {
  const answer = Promise.withResolvers<PreparedSandbox>();
  const instance = { restore: vi.fn(), destroy: vi.fn(async () => {}) };
  const onPrepared = vi.fn();
  const saved = { record: sandboxRecord({ provider: "mock" }) } as SavedSandbox;
  const providers = { prepare: vi.fn(() => answer.promise) };
  const preparation = new Preparation(saved, { providers, clock, prepareTimes, signal, onPrepared });
  return { preparation, instance, onPrepared, succeed: () => answer.resolve(instance), fail: answer.reject };
}

/** Lets a preparation of this duration succeed. */
async function prepareIn(durationMs: number): Promise<void> {
  const { preparation, succeed } = start();
  await clock.advance(durationMs);
  succeed();
  await preparation.take();
}

const isSettled = async (promise: Promise<unknown>) =>
  (await Promise.race([promise.then(() => "settled"), Promise.resolve().then(() => "pending")])) === "settled";

describe("the preparation of an instance for a handoff", () => {
  it("is over before the owner hears of the handoff, if the provider's last one took long or there was none", async () => {
    for (const before of [async () => {}, () => prepareIn(60_000)]) {
      await before();
      const { preparation, succeed } = start();
      const headStart = preparation.headStart();
      expect(await isSettled(headStart)).toBe(false);
      succeed();
      await headStart;
    }
  });

  it("continues while the owner saves the sandbox, if the provider's last one was short", async () => {
    await prepareIn(100);
    const { preparation, onPrepared, succeed } = start();
    await preparation.headStart();
    expect(onPrepared).not.toHaveBeenCalled();
    succeed();
    await preparation.take();
    expect(onPrepared).toHaveBeenCalledOnce();
  });

  it("ends the wait for the owner with its own error if it fails", async () => {
    await prepareIn(100);
    const { preparation, fail } = start();
    await preparation.headStart();
    const waiting = rejection(
      preparation.while(
        (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
      ),
    );
    fail(new SandboxError("boot_failed", { message: "the instance does not boot" }));
    expect(await waiting).toMatchObject({ reason: "boot_failed" });
    await preparation[Symbol.asyncDispose]();
  });

  it("destroys its instance if the handoff fails, even one that is prepared only then", async () => {
    const { preparation, instance, succeed } = start();
    const disposed = preparation[Symbol.asyncDispose]();
    succeed();
    await disposed;
    expect(instance.destroy).toHaveBeenCalledOnce();
  });

  it("leaves an instance that the handoff uses", async () => {
    const { preparation, instance, succeed } = start();
    succeed();
    await preparation.take();
    await preparation[Symbol.asyncDispose]();
    expect(instance.destroy).not.toHaveBeenCalled();
  });
});
