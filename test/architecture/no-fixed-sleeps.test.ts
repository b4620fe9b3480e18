import { describe, expect, it } from "vitest";
import { isTest } from "./imports.ts";
import { readSourceFiles } from "./source-files.ts";

/** Tests that need a timer, each with the reason why neither a condition nor a fake clock can replace it. */
const allowed: Readonly<Record<string, string>> = {
  "packages/core/src/testing/file-contract.ts": "the reader must be slower than the sandbox",
  "packages/core/src/testing/life-contract.ts": "aborts a boot at an arbitrary moment",
  "packages/providers/src/docker/leftovers.test.ts": "kills a program at arbitrary moments of a create",
  "packages/providers/src/guest/provision.test.ts": "shows that a download still runs",
  "packages/providers/src/gvisor/leftovers.test.ts": "kills a program at arbitrary moments of a create",
  "packages/providers/src/qemu/guest.test.ts": "a clone's clock would be late by this time",
  "packages/providers/src/qemu/leftovers.test.ts": "the fake clock advances next to a real guest",
  "packages/providers/src/qemu/qmp-client.test.ts": "polls a real QEMU that is starting",
  "packages/providers/src/qemu/waiting-shell.test.ts": "a program under test ends after a while",
  "test/e2e/interrupt.test.ts": "interrupts a program at arbitrary moments of its start",
  "test/e2e/node-copy.test.ts": "polls a directory",
  "test/e2e/stalled-reader.test.ts": "a reader stalls for a while",
};

describe("a test", () => {
  const users = readSourceFiles()
    .filter(
      ({ path, text }) => (isTest(path) || path.endsWith("-contract.ts")) && /\b(setTimeout|waitFor)\b/.test(text),
    )
    .map(({ path }) => path)
    .filter((path) => !import.meta.filename.endsWith(path));

  it("waits for a condition with expect.poll, or uses a fake clock, instead of sleeping for a fixed time", () => {
    expect(users.filter((path) => !Object.hasOwn(allowed, path))).toEqual([]);
  });

  it("is listed as an exception only while it needs a timer", () => {
    expect(Object.keys(allowed).filter((path) => !users.includes(path))).toEqual([]);
  });
});
