import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { selectTests } from "./selection.ts";

const files = ["packages/core/src/a.test.ts", "packages/node/src/b.test.ts"];
const rust = [
  "src/lib.rs",
  "src/outbox.rs",
  "src/files/mod.rs",
  "src/files/walk.rs",
  "src/bin/guard.rs",
  "tests/exec.rs",
];

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "sandpiper-selection-"));
  for (const path of rust.map((name) => join(directory, "agent", name))) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "");
  }
});
afterAll(() => rmSync(directory, { recursive: true }));

const select = (...patterns: string[]) => selectTests(patterns, { files, directory });

describe("npm test", () => {
  it("runs every test without a pattern", () => {
    expect(select()).toEqual({ files, cargo: [[]], unmatched: [] });
  });

  it("runs the Vitest files whose paths contain a pattern", () => {
    expect(select("packages/core")).toEqual({ files: [files[0]], cargo: [], unmatched: [] });
    expect(select("a.test", "b.test").files).toEqual(files);
  });

  it.each([
    ["agent", []],
    ["agent/src/outbox.rs", ["--lib", "--", "outbox::"]],
    ["agent/src/outbox", ["--lib", "--", "outbox::"]],
    ["agent/src/files", ["--lib", "--", "files::"]],
    ["agent/src/files/mod.rs", ["--lib", "--", "files::"]],
    ["agent/src/files/walk.rs", ["--lib", "--", "files::walk::"]],
    ["agent/src/", ["--lib", "--"]],
    ["agent/src/bin/guard.rs", ["--bin", "guard"]],
    ["agent/tests/exec.rs", ["--test", "exec"]],
    ["agent/tests", ["--test", "*"]],
    ["outbox::tests::drains", ["--", "outbox::tests::drains"]],
  ])("runs the agent's tests that %s names", (pattern, cargo) => {
    expect(select(pattern)).toEqual({ files: [], cargo: [cargo], unmatched: [] });
  });

  it.each(["packages/coer", "agent/src/nothing.rs", "agent/README.md"])(
    "names the pattern %s, which matches nothing",
    (pattern) => {
      expect(select("packages/node", pattern)).toMatchObject({ files: [files[1]], cargo: [], unmatched: [pattern] });
    },
  );
});
