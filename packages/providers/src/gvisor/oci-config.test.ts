import type { InstanceSpec } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { ociConfig } from "./oci-config.ts";

const spec: InstanceSpec = {
  id: createSandboxId(),
  rootfs: "host",
  kernel: undefined,
  memoryMib: 256,
  vcpuCount: 0.5,
  diskMib: 1024,
  maxProcesses: 100,
  env: { NAME: "a=b", PATH: "/own" },
  container: undefined,
  vsockCid: 3,
  labels: {},
};
const options = {
  spec,
  image: { root: "/image", mounts: [] },
  agent: "/host/agent",
  cgroupPath: `/sandpiper-${spec.id}`,
  canLimitSwap: true,
  hasNetwork: true,
};
const config = ociConfig(options) as {
  process: { args: string[]; env: string[]; capabilities: Record<string, string[]>; rlimits: object[] };
  mounts: { source: string; destination: string; options: string[] }[];
  linux: { resources: object; cgroupsPath: string };
};

describe("the OCI configuration of a sandbox", () => {
  it("sets every limit of the spec", () => {
    const bytes = 256 << 20;
    expect(config.linux.resources).toEqual({
      memory: { limit: bytes, swap: bytes },
      cpu: { quota: 50_000, period: 100_000, shares: 1024 },
      pids: { limit: 656 },
    });
    expect(config.process.rlimits).toContainEqual({ type: "RLIMIT_NPROC", soft: 100, hard: 100 });
  });

  it("omits swap where it cannot be limited", () => {
    expect(ociConfig({ ...options, canLimitSwap: false })).toMatchObject({
      linux: { resources: { memory: { limit: expect.any(Number) } } },
    });
    expect(JSON.stringify(ociConfig({ ...options, canLimitSwap: false }))).not.toContain("swap");
  });

  it("grants no capability that would lift a limit or open raw sockets", () => {
    const given = Object.values(config.process.capabilities).flat();
    expect(given).not.toEqual([]);
    for (const name of ["CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_SYS_PTRACE"]) {
      expect(given).not.toContain(name);
    }
  });

  it("refuses TUN devices, which gVisor cannot save, and no other system call", () => {
    const { seccomp } = config.linux as { seccomp?: { defaultAction: string; syscalls: object[] } };
    expect(seccomp?.defaultAction).toBe("SCMP_ACT_ALLOW");
    expect(seccomp?.syscalls).toEqual([
      {
        names: ["ioctl"],
        action: "SCMP_ACT_ERRNO",
        args: [{ index: 1, op: "SCMP_CMP_MASKED_EQ", value: 0xffffffff, valueTwo: 0x400454ca }],
      },
    ]);
  });

  it("leaves out the spec's environment, which only commands receive", () => {
    expect(config.process.env.map((each) => each.split("=")[0])).toEqual(["PATH", "LANG"]);
    expect(JSON.stringify(config)).not.toContain("a=b");
  });

  it("mounts the agent read-only and starts it", () => {
    const mount = config.mounts.find(({ source }) => source === "/host/agent");
    expect(mount?.options).toContain("ro");
    expect(config.process.args[0]).toBe(mount?.destination);
  });
});
