import { describe, expect, it } from "vitest";
import { explain, InterruptedError, SetupError } from "./setup-error.mjs";

const noDirectory = Object.assign(new Error("ENOTDIR: not a directory, mkdir '/file/sandpiper'"), {
  code: "ENOTDIR",
  syscall: "mkdir",
});
const diskFull = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });

describe("a failure of set-up", () => {
  it.each([
    ["its own", new SetupError("gVisor was not built.", "Run: two"), "gVisor was not built.\nRun: two"],
    ["a signal", new InterruptedError("Building"), "Building: interrupted.\nRun the same command again to continue."],
    [
      "a full disk",
      diskFull,
      'Set-up failed in the step "docker": ENOSPC: no space left on device, write\nFree some disk space, then run the same command again.',
    ],
    ["a wrong path", noDirectory, /mkdir '\/file\/sandpiper'\nCorrect that path .* run the same command again\.$/],
    [
      "a bug",
      new TypeError("x is undefined"),
      'Set-up failed in the step "docker": x is undefined\nThis is a bug in set-up: please report it with the output of `node scripts/setup.mjs --trace docker`.',
    ],
    ["no error at all", "odd", /^Set-up failed in the step "docker": odd\nThis is a bug/],
  ])("from %s is explained in words, with the next step last and no stack trace", (_, error, text) => {
    expect(explain(error, "docker")).toEqual(typeof text === "string" ? text : expect.stringMatching(text));
  });
});
