import { describe, expect, it } from "vitest";
import { createCheckpointBodySchema, forkBodySchema, rollbackBodySchema } from "./checkpoint.ts";
import { createSandboxRequestSchema } from "./sandbox.ts";

const id = "0b6e2c52-1d5a-4a3e-8d0e-6a7f4f1d2c3b";

describe("the name of a checkpoint", () => {
  it.each(["a", "before-tests", "v1.2_3", "9".repeat(128)])("may be %s", (name) => {
    expect(createCheckpointBodySchema.safeParse({ name }).success).toBe(true);
  });

  it.each(["", ".", "..", "../up", "a/b", "a\\b", "a\0b", "-a", "a b", "ä", "9".repeat(129)])(
    "is never a path or a special character: %j",
    (name) => {
      expect(createCheckpointBodySchema.safeParse({ name }).success).toBe(false);
      expect(rollbackBodySchema.safeParse({ checkpoint: name }).success).toBe(false);
    },
  );

  it("does not look like an id, because either one identifies a checkpoint", () => {
    expect(createCheckpointBodySchema.safeParse({ name: id }).success).toBe(false);
    expect(rollbackBodySchema.safeParse({ checkpoint: id }).success).toBe(true);
    expect(forkBodySchema.safeParse({ checkpoint: "before-tests" }).success).toBe(true);
  });
});

describe("a sandbox from a checkpoint", () => {
  it("has its own name, labels, metadata, lifetimes and policy", () => {
    const own = { name: "again", labels: { a: "b" }, metadata: { c: 1 }, ttlMs: 60_000, onExpiry: "pause" };
    const body = { checkpoint: id, ...own, checkpointPolicy: { everyMs: 5000 } };
    expect(createSandboxRequestSchema.parse(body)).toEqual(body);
  });

  it.each(["env", "provider", "image", "memoryMib", "vcpuCount", "diskMib", "maxProcesses", "language", "cwd", "user"])(
    "takes %s from it",
    (field) => {
      const values: Record<string, unknown> = { env: {}, provider: "mock", image: "host", language: "python" };
      const body = { [field]: values[field] ?? (field === "cwd" ? "/tmp" : field === "user" ? "root" : 1) };
      expect(createSandboxRequestSchema.safeParse(body).success).toBe(true);
      const refused = createSandboxRequestSchema.safeParse({ ...body, checkpoint: id });
      expect(refused.error?.issues.map(({ path }) => path)).toEqual([[field]]);
    },
  );
});

describe("the number of forks", () => {
  it.each([0, 33, 1.5])("is not %d", (count) => {
    expect(forkBodySchema.safeParse({ count }).success).toBe(false);
  });
});
