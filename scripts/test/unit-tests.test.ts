import { describe, expect, it } from "vitest";
import { listUnitTests } from "./unit-tests.ts";

const isUnitTest = (text: string, path = "packages/core/src/a.test.ts") =>
  listUnitTests([
    { path, text },
    { path: "packages/core/src/pure.ts", text: 'import { join } from "node:path";' },
    { path: "packages/core/src/compose.ts", text: 'import { GvisorProvider } from "@sandpiper/providers";' },
    { path: "packages/core/src/spawns.ts", text: 'import { spawn } from "node:child_process";' },
    { path: "packages/core/src/testing/fixture.ts", text: 'import { run } from "../spawns.ts";' },
  ]).length === 1;

describe("a test file", () => {
  it.each([
    'import { pure } from "./pure.ts";',
    'import { MockContainers, MockProvider } from "@sandpiper/providers";',
    'import type { Run } from "./spawns.ts";',
    'import type {\n  Run,\n  Spawn,\n} from "./spawns.ts";',
    '// import { run } from "./spawns.ts";',
    'import { compose } from "./compose.ts";',
  ])("is a unit test when it starts no program: %j", (text) => {
    expect(isUnitTest(text)).toBe(true);
  });

  it.each([
    'import { spawn } from "node:child_process";',
    'import { run } from "./spawns.ts";',
    'import {\n  type Run,\n  run,\n} from "./spawns.ts";',
    'import { fixture } from "./testing/fixture.ts";',
    'const { run } = await import("./spawns.ts");',
    'import "./spawns.ts";',
    'export { run } from "./spawns.ts";',
    'import { GvisorProvider } from "@sandpiper/providers";',
    'import { MockProvider, GvisorProvider } from "@sandpiper/providers";',
    'import * as providers from "@sandpiper/providers";',
    'import { startNode } from "@sandpiper/node";',
    'import { createProvider } from "./compose.ts";',
    'import { pure } from "./pure.ts";\n\n// Not a unit test: it needs root.\ndescribe();',
  ])("is not a unit test when it, or a file that it imports, may start a program: %j", (text) => {
    expect(isUnitTest(text)).toBe(false);
  });

  it("is not a unit test below test/, except for the checks of the source code", () => {
    expect(isUnitTest("", "test/e2e/run.test.ts")).toBe(false);
    expect(isUnitTest("", "test/architecture/imports.test.ts")).toBe(true);
  });
});
