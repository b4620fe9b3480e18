import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { FakeClock, rejection } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { findDockerRoot } from "../../packages/providers/src/guest/image-default.ts";
import { crashMachine, machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { MachineVm } from "../../packages/providers/src/vm-docker/driver/machine-vm.ts";
import { DEFAULT_VM_IDLE_MS } from "../../packages/providers/src/vm-docker/vm/project-vms.ts";
import { RESOURCES, VmDockerHome } from "./vm-docker-home.ts";

/** A machine boots, its engine starts and loads an image; without KVM, QEMU emulates all of that. */
const FIRST_MS = 180_000;

const home = await shared(VmDockerHome.create());

function withCaches(project: string) {
  const { container, ...config } = home.config(project);
  const caches = ["one", "two"].map((name) => ({ name, path: `/caches/${name}` }));
  return { ...config, container: { ...container, caches } };
}

describe("sandboxes of one project", () => {
  it(
    "share a virtual machine that survives a killed program and stops half an hour after the last sandbox; caches stay",
    async () => {
      const orphan = await home.leaveSandbox(home.config("shop"), "while sleep 0.1; do echo on; done");
      const clock = new FakeClock();
      const { provider, vms, machines } = home.open(clock);
      const [record] = await provider.list();
      expect(record).toMatchObject({ id: orphan.sandbox, isRunning: true, isOrphan: true });
      const [machine] = await machines.list();

      const one = await Sandbox.adopt(provider, orphan.sandbox, { connectTimeoutMs: FIRST_MS });
      expect(await one.process(orphan.process)).toMatchObject({ isRunning: true });
      const two = await Sandbox.create(provider, withCaches("shop"), { connectTimeoutMs: FIRST_MS });
      expect(await machines.list()).toHaveLength(1);
      expect(vms.list()).toMatchObject([{ projectId: "shop", state: "ready", sessions: [one.id, two.id] }]);
      const { stdout: kernel } = await two.exec(
        "echo mine > /tmp/file; echo kept > /caches/one/file; cat /proc/version",
      );
      expect(kernel).toMatch(/^Linux version .*-cloud-/);
      expect(kernel).not.toBe(await readFile("/proc/version", "utf8"));
      expect((await one.exec("ls /tmp/file")).exitCode).not.toBe(0);

      await one.destroy();
      await two.destroy();
      await clock.advance(DEFAULT_VM_IDLE_MS - 1);
      expect(await machineProcesses(machine?.id ?? "")).not.toEqual([]);
      await clock.advance(1);
      await expect.poll(() => home.left()).toEqual([]);
      expect(await machineProcesses(machine?.id ?? "")).toEqual([]);
      expect(vms.list()).toMatchObject([{ state: "stopped" }]);
      const names = async () => (await provider.containers.listCaches()).map(({ name }) => name);
      expect(await names()).toEqual(["one", "two"]);
      await provider.containers.clearCache({ project: "shop", name: "two" });
      expect(await names()).toEqual(["one"]);
    },
    FIRST_MS,
  );

  it(
    "fail with an error that names the project when their machine is killed, and leave nothing behind",
    async () => {
      const { provider, vms, machines } = home.open();
      const sandbox = await Sandbox.create(provider, withCaches("shop"), { connectTimeoutMs: FIRST_MS });
      // The cache of the earlier machine is still there.
      expect((await sandbox.exec("cat /caches/one/file; ls /caches/two")).stdout).toBe("kept\n");
      const [machine] = await machines.list();
      const waiting = rejection(sandbox.exec("sleep 600"));
      await crashMachine(machine?.id as SandboxId);
      expect(await sandbox.closed).toMatchObject({ reason: "crashed", message: expect.stringContaining("shop") });
      expect(await waiting).toMatchObject({ code: "gone", message: expect.stringContaining("shop") });
      expect(vms.list()).toMatchObject([{ state: "error", error: { reason: "machine_ended" } }]);
      await sandbox.destroy();
      await expect.poll(() => home.left()).toEqual([]);
      expect(await provider.list()).toEqual([]);
    },
    FIRST_MS,
  );
});

describe("a project's virtual machine", () => {
  it(
    "stops when its engine exits",
    async () => {
      const { machines } = home.open();
      const rootfs = await findDockerRoot();
      const machine = await Sandbox.create(machines, { ...RESOURCES, rootfs, labels: { project: "shop" } });
      const place = { projectId: "shop", directory: join(home.home, "vm/engines", machine.id), consoleLog: undefined };
      const vm = await MachineVm.start({ machine, ...place }, new AbortController().signal);
      // The machine may stop before it answers.
      machine.exec("pkill -9 dockerd", { user: "root" }).catch(() => {});
      expect(await vm.exited).toMatchObject({
        reason: "crashed",
        message: expect.stringContaining("its engine ended"),
      });
      // It first writes its volumes to their disk.
      await expect.poll(() => home.left(), { timeout: 15_000 }).toEqual([]);
    },
    FIRST_MS,
  );
});
