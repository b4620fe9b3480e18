import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freshDirectory, putScript } from "../host/testing/shared.ts";
import { KeptPrograms } from "./kept-programs.ts";

const directory = freshDirectory("kept");
const program = (name: string, text: string) => putScript(join(directory, "installed", name), text);

describe("a kept program", () => {
  it.each([false, true])(
    "stays when the installed one is replaced (from an immutable place: %s)",
    async (isImmutable) => {
      const kept = new KeptPrograms(join(directory, `programs-${isImmutable}`));
      const source = await program("runsc", "echo one");
      const path = await kept.keep({ kind: "runsc", version: "1.0", source, isImmutable });
      await rm(source);
      await program("runsc", "echo two, longer");
      expect(await readFile(path, "utf8")).toContain("echo one");
      expect(kept.find("runsc", "1.0")).toBe(path);
      expect(await kept.versions("runsc")).toEqual(["1.0"]);
      expect(await kept.keep({ kind: "runsc", version: "2.0", source })).not.toBe(path);
      expect(await kept.versions("runsc")).toEqual(["1.0", "2.0"]);
      await kept.remove("runsc", "1.0");
      expect(await kept.versions("runsc")).toEqual(["2.0"]);
    },
  );

  it("is not replaced by another build of the same version, which is used where it is", async () => {
    const kept = new KeptPrograms(join(directory, "same"));
    const first = await kept.keep({ kind: "runsc", version: "1", source: await program("first", "echo first") });
    const other = await program("other", "echo another build");
    expect(await kept.keep({ kind: "runsc", version: "1", source: other })).toBe(other);
    expect(await readFile(first, "utf8")).toContain("echo first");
  });

  it.each(["..", "../x", "a/b", ".hidden", ""])(
    "never leaves its directory, with any version that it prints: %j",
    async (version) => {
      const kept = new KeptPrograms(join(directory, "safe"));
      const source = await program("odd", "echo odd");
      expect(await kept.keep({ kind: "runsc", version, source })).toBe(source);
      expect(kept.find("runsc", version)).toBeUndefined();
      await kept.remove("runsc", version);
      expect(await readFile(source, "utf8")).toContain("odd");
    },
  );
});
