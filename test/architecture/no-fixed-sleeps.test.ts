import { describe, expect, it } from "vitest";
import { isTest } from "./imports.ts";
import { readSourceFiles } from "./source-files.ts";

/** Tests that need a timer, each with the reason why neither a condition nor a fake clock can replace it. */
const allowed: Readonly<Record<string, string>> = {
  "packages/core/src/testing/file-contract.ts": "the reader must be slower than the sandbox",
  "packages/core/src/testing/leftover-contract.ts": "aborts and kills at a share of the time that a create takes",
  "packages/providers/src/qemu/leftovers.test.ts": "a fake clock advances beside a real guest",
  "packages/providers/src/qemu/machine/waiting-shell.test.ts": "the program under test ends after a while",
};

describe("a test", () => {
  const users = readSourceFiles()
    .filter(({ path }) => isTest(path) || path.endsWith("-contract.ts"))
    .filter(({ path, text }) => /\bsetTimeout(\(| as )/.test(text) && !import.meta.filename.endsWith(path))
    .map(({ path }) => path);

  it("waits for a condition with expect.poll, or uses a fake clock, instead of sleeping for a fixed time", () => {
    expect(users.filter((path) => !Object.hasOwn(allowed, path))).toEqual([]);
  });

  it("is listed as an exception only while it needs a timer", () => {
    expect(Object.keys(allowed).filter((path) => !users.includes(path))).toEqual([]);
  });
});
