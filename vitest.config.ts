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
    // Test files start child processes and share the machine's cores with the sandboxes they boot.
    pool: "forks",
    maxWorkers: 2,
    allowOnly: false,
    passWithNoTests: false,
  },
});
