import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "packages/**/*.test.ts",
      "bench/**/*.test.ts",
      "examples/**/*.test.ts",
      "scripts/**/*.test.ts",
      "test/**/*.test.ts",
    ],
    // Real sandboxes boot in tests; a slow machine must not turn a passing test into a failing one.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Test files start child processes and share the machine's cores with the sandboxes they boot, but often wait for them:
    // on the two cores that they are meant for, three at a time take a tenth less than two.
    pool: "forks",
    maxWorkers: 3,
    // Long enough for a machine that is busy; the default of one second is not.
    expect: { poll: { timeout: 20_000 } },
    // Tests that boot sandboxes take a while; a line for each of them would hide the ones that matter.
    slowTestThreshold: 10_000,
    allowOnly: false,
    passWithNoTests: false,
  },
});
