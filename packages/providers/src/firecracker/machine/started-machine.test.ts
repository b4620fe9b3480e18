import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { machineProcesses, readCgroup } from "../../host/testing/machine-traces.ts";
import { shared } from "../../host/testing/shared.ts";
import { connectSocket } from "../../host/unix-socket.ts";
import { ApiClient } from "../api/api-client.ts";
import type { ApiRequests } from "../api/api-requests.ts";
import { createDoubleFixture } from "../testing/fixture.ts";
import { AGENT_PORT, connectVsock } from "../vsock/vsock-connection.ts";
import { resumeAbandoned } from "./checkpoint.ts";

const fixture = await shared(createDoubleFixture());
const sandbox = await shared(fixture.create({ vcpuCount: 0.5 }));

const { signal } = new AbortController();
const directory = () => join(fixture.stateDirectory, "firecracker/instances", sandbox.id);
const machineOf = (id: SandboxId) => join(fixture.stateDirectory, "firecracker/instances", id, "machine");
const machine = (name: string) => join(machineOf(sandbox.id), name);
const apiOf = (id: SandboxId) => new ApiClient(join(machineOf(id), "api.sock"));
const api = () => apiOf(sandbox.id);

describe("the API of a running machine", () => {
  it("describes the machine", async () => {
    expect(await api().describe()).toMatchObject({ id: sandbox.id, state: "Running", app_name: "Firecracker" });
  });

  it("refuses configuration with Firecracker's own error", async () => {
    const late: { readonly [R in keyof ApiRequests]?: ApiRequests[R] } = {
      "PUT /machine-config": { vcpu_count: 1, mem_size_mib: 128 },
      "PUT /vsock": { guest_cid: 3, uds_path: "other.sock" },
      "PUT /entropy": {},
      "PUT /actions": { action_type: "InstanceStart" },
    };
    for (const [route, body] of Object.entries(late)) {
      await expect(api().send(route as keyof ApiRequests, body as never)).rejects.toMatchObject({
        reason: "firecracker_refused",
        message: expect.stringContaining("not supported after starting the microVM"),
        details: { route, status: 400 },
      });
    }
  });

  it("refuses another drive, because the machine has no PCI bus", async () => {
    const drive = { drive_id: "disk", path_on_host: "disk.ext4", is_root_device: false, is_read_only: false };
    await expect(api().send("PUT /drives/disk", drive)).rejects.toThrow("PCI is not enabled");
  });

  it("saves only a paused machine, and accepts repeated pauses and resumes", async () => {
    await using other = await fixture.create();
    const client = apiOf(other.id);
    const snapshot = { snapshot_type: "Full", snapshot_path: "s", mem_file_path: "m" } as const;
    await expect(client.send("PUT /snapshot/create", snapshot)).rejects.toThrow("unavailable while running");
    for (const state of ["Paused", "Paused", "Resumed", "Resumed"] as const) {
      await client.send("PATCH /vm", { state });
      expect((await client.describe()).state).toBe(state === "Paused" ? "Paused" : "Running");
    }
  });

  it("blocks the vsock device of a machine that is resumed without a save, until the next attempt to save", async () => {
    await using other = await fixture.create();
    const client = apiOf(other.id);
    const path = join(machineOf(other.id), "vsock.sock");
    await client.send("PATCH /vm", { state: "Paused" });
    await client.send("PATCH /vm", { state: "Resumed" });
    const patience = new AbortController();
    const blocked = connectVsock(path, AGENT_PORT, patience.signal);
    // The connection is open by the time that another one is.
    (await connectSocket(path, signal)).destroy();
    patience.abort(new Error("no answer"));
    await expect(blocked).rejects.toThrow("no answer");
    await client.send("PATCH /vm", { state: "Paused" });
    await resumeAbandoned(client);
    (await connectVsock(path, AGENT_PORT, signal)).destroy();
  });

  it("is reported as gone when the process has ended", async () => {
    const unused = new ApiClient(machine("unused.sock"));
    await expect(unused.describe()).rejects.toMatchObject({ code: "unavailable", reason: "firecracker_gone" });
  });
});

describe("the vsock device of a running machine", () => {
  it("closes a connection to a port without a listener", async () => {
    await expect(connectVsock(machine("vsock.sock"), AGENT_PORT + 1, signal)).rejects.toThrow(
      "no program in the guest listens",
    );
  });

  it("gives each connection its own host port, and the agent serves only the newest", async () => {
    await using other = await fixture.create();
    const path = join(fixture.stateDirectory, "firecracker/instances", other.id, "machine/vsock.sock");
    const socket = await connectVsock(path, AGENT_PORT, signal);
    socket.destroy();
    // A call that starts before the loss is noticed fails.
    const served = () =>
      other.exec("echo served again").then(
        ({ stdout }) => stdout,
        () => "",
      );
    await expect.poll(served).toBe("served again\n");
  });
});

describe("a started machine", () => {
  it("links the base image and has its own sparse disk", async () => {
    const base = await stat(machine("base.ext4"));
    expect(base.nlink).toBeGreaterThan(1);
    expect([base.uid, base.mode & 0o022]).toEqual([0, 0]);
    const disk = await stat(machine("disk.ext4"));
    expect(disk.size).toBe(64 * 2 ** 20);
    expect(disk.blocks * 512).toBeLessThan(8 * 2 ** 20);
    expect(disk.uid).toBeGreaterThanOrEqual(0x6000_0000);
  });

  it("runs in its own jail as its own user", async () => {
    await using other = await fixture.create();
    const users = await Promise.all(
      [sandbox, other].map(async ({ id }) => {
        const instance = join(fixture.stateDirectory, "firecracker/instances", id);
        const jail = await stat(join(instance, "jail/firecracker", id, "root"));
        expect(jail.mode & 0o777).toBe(0o700);
        return jail.uid;
      }),
    );
    expect(new Set(users).size).toBe(2);
  });

  it("learns its hostname and its process limit from the kernel's arguments", async () => {
    expect((await sandbox.exec("hostname")).stdout).toBe(`sandbox-${sandbox.id.slice(0, 8)}\n`);
    await using small = await fixture.create({ maxProcesses: 24 });
    const result = await small.exec("for i in $(seq 60); do sleep 5 & done; wait", { timeoutMs: 20_000 });
    expect(result.stderr).toMatch(/fork/i);
  });

  it("is limited as a whole by its cgroup", async () => {
    expect(await machineProcesses(sandbox.id)).not.toEqual([]);
    const bytes = await readCgroup(sandbox.id, "memory.limit_in_bytes", "memory.max");
    expect(Number(bytes)).toBe((192 + 96) * 2 ** 20);
    expect(await readCgroup(sandbox.id, "cpu.cfs_quota_us", "cpu.max")).toMatch(/^50000\b/);
  });

  it("logs its console", async () => {
    expect(await readFile(join(directory(), "console.log"), "utf8")).toContain("the guest of the double boots");
  });
});
