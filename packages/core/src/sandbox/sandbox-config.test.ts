import { createSandboxId, SandboxError } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { configFromSpec, instanceSpec } from "./instance-spec.ts";
import { SandboxConfig, type SandboxConfigOptions } from "./sandbox-config.ts";

function refusal(options: unknown): SandboxError {
  try {
    SandboxConfig.parse(options as SandboxConfigOptions);
  } catch (thrown) {
    if (thrown instanceof SandboxError) return thrown;
    throw thrown;
  }
  throw new Error("these options were expected to be refused");
}

describe("a sandbox's config", () => {
  it("has a default for everything", () => {
    expect(SandboxConfig.parse()).toEqual({
      language: undefined,
      rootfs: "host",
      kernel: undefined,
      chroot: undefined,
      memoryMib: 256,
      vcpuCount: 2,
      diskMib: 1024,
      maxProcesses: 256,
      timeoutMs: undefined,
      vsockCid: 3,
      env: {},
      user: undefined,
      cwd: undefined,
      name: undefined,
      labels: {},
    });
  });

  it("is frozen, and does not follow later changes of its options", () => {
    const env: Record<string, string> = { A: "1" };
    const config = SandboxConfig.parse({ env });
    env["A"] = "2";
    expect(config.env).toEqual({ A: "1" });
    expect(Object.isFrozen(config) && Object.isFrozen(config.env) && Object.isFrozen(config.labels)).toBe(true);
  });

  it("can be its own options", () => {
    const config = SandboxConfig.parse({ memoryMib: 512, name: "x" });
    expect(SandboxConfig.parse(config)).toEqual(config);
  });

  it.each([
    ["memoryMib", 0],
    ["memoryMib", -1],
    ["memoryMib", 1.5],
    ["memoryMib", "256"],
    ["memoryMib", Number.NaN],
    ["vcpuCount", 0],
    ["vcpuCount", -2],
    ["vcpuCount", 0.125],
    ["vcpuCount", Number.POSITIVE_INFINITY],
    ["diskMib", 0],
    ["maxProcesses", 0],
    ["timeoutMs", 0],
    ["vsockCid", 2],
    ["vsockCid", 2 ** 32 - 1],
    ["rootfs", ""],
    ["rootfs", "relative/path"],
    ["rootfs", "../escape"],
    ["kernel", ""],
    ["kernel", "vmlinux"],
    ["chroot", "tmp"],
    ["cwd", "tmp"],
    ["user", ""],
    ["name", ""],
    ["language", ""],
    ["labels", { "sandpiper.config": "x" }],
  ])("names the field, its value and what is allowed: %s %j", (field, value) => {
    const error = refusal({ [field]: value });
    expect(error).toMatchObject({ code: "invalid_argument", reason: "invalid_config" });
    expect(error.message).toContain(field);
    expect(error.message).toContain("expected ");
    if (typeof value === "number" && Number.isFinite(value)) expect(error.message).toContain(String(value));
  });

  it.each([[1], [2], [0.5], [0.25], [1.1], [3.99], [64]])("accepts %d CPUs", (vcpuCount) => {
    expect(SandboxConfig.parse({ vcpuCount }).vcpuCount).toBe(vcpuCount);
  });

  it("names an unknown field, and the known ones", () => {
    const error = refusal({ vcpus: 4 });
    expect(error.message).toContain("vcpus");
    expect(error.message).toContain("vcpuCount");
  });

  it("does not repeat the value of a wrong environment variable", () => {
    const error = refusal({ env: { TOKEN: "secret\0" } });
    expect(error.message).toContain("TOKEN");
    expect(error.message).not.toContain("secret");
  });

  it("shows values that JSON cannot represent, and shortens long ones", () => {
    expect(refusal({ memoryMib: 10n }).message).toContain("memoryMib 10n");
    expect(refusal({ name: "x".repeat(100_000) }).message.length).toBeLessThan(1000);
  });

  it("reports all wrong fields together", () => {
    expect(refusal({ memoryMib: 0, vcpuCount: 0 }).details["fields"]).toEqual(["memoryMib", "vcpuCount"]);
  });

  it("is refused when it is not an object", () => {
    expect(refusal("256").reason).toBe("invalid_config");
    expect(refusal(null).reason).toBe("invalid_config");
  });
});

describe("the builder", () => {
  it("sets every field", () => {
    const options: Required<SandboxConfigOptions> = {
      language: "python",
      rootfs: "/images/python",
      kernel: "/boot/vmlinux",
      chroot: "/var/lib/sandpiper",
      memoryMib: 512,
      vcpuCount: 4,
      diskMib: 2048,
      maxProcesses: 64,
      timeoutMs: 60_000,
      vsockCid: 7,
      env: { A: "1" },
      user: "root",
      cwd: "/work",
      name: "mine",
      container: { image: "python:3.13-slim", ports: [8000] },
      labels: { team: "x" },
    };
    const builder = SandboxConfig.builder();
    for (const [field, value] of Object.entries(options)) {
      const set = builder[field as keyof typeof builder] as (value: unknown) => unknown;
      expect(set.call(builder, value)).toBe(builder);
    }
    expect(builder.build()).toEqual(options);
  });

  it("adds to environment and labels", () => {
    const config = SandboxConfig.builder()
      .env({ A: "1" })
      .env({ B: "2" })
      .labels({ a: "1" })
      .labels({ b: "2" })
      .build();
    expect(config.env).toEqual({ A: "1", B: "2" });
    expect(config.labels).toEqual({ a: "1", b: "2" });
  });

  it("checks when it builds", () => {
    expect(() => SandboxConfig.builder().memoryMib(0).build()).toThrow("memoryMib 0");
  });
});

describe("an instance's spec", () => {
  it("recreates the config from which it was built", () => {
    const config = SandboxConfig.parse({
      language: "python",
      timeoutMs: 5,
      user: "root",
      labels: { a: "1" },
      name: "x",
    });
    const spec = instanceSpec(createSandboxId(), config);
    expect(configFromSpec(JSON.parse(JSON.stringify(spec)))).toEqual(config);
  });
});
