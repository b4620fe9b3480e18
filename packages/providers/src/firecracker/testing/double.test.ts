import { once } from "node:events";
import { existsSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { connectSocket } from "../../host/unix-socket.ts";
import { connectVsock } from "../vsock/vsock-connection.ts";
import { startBareDouble } from "./bare-double.ts";

/** One double for all tests, because a refused request changes nothing. */
const double = await shared(startBareDouble());
beforeAll(() => makeFiles());

const at = (name: string) => join(double.directory, name);
const put = (path: string, body?: unknown) => double.ask("PUT", path, body);
const refusal = (words: string | RegExp) => ({ status: 400, fault: expect.stringMatching(words) });
const done = { status: 204, fault: "" };

/** A file that looks like a kernel, and one that looks like a disk with a filesystem. */
async function makeFiles(): Promise<void> {
  await writeFile(at("kernel"), "\x7fELF", "latin1");
  await writeFile(at("text"), "no kernel");
  const disk = Buffer.alloc(4096);
  disk.writeUInt16LE(0xef53, 1024 + 56);
  await writeFile(at("disk"), disk);
  await truncate(at("disk"), 2 ** 20);
}

describe("the double of Firecracker before its machine starts", () => {
  it("reports that it is not started, and accepts only the published requests", async () => {
    expect(await double.ask("GET", "/")).toMatchObject({ status: 200 });
    expect(await put("/machines", {})).toEqual(refusal("Invalid request method and/or path"));
    expect(await double.ask("DELETE", "/vsock")).toEqual(refusal("Invalid request method and/or path"));
  });

  it("refuses bodies with unknown fields, missing fields or wrong values, and empty bodies", async () => {
    const machine = { vcpu_count: 2, mem_size_mib: 256 };
    expect(await put("/machine-config", machine)).toEqual(done);
    expect(await put("/machine-config", { ...machine, colour: "red" })).toEqual(refusal("unknown field `colour`"));
    expect(await put("/machine-config", { vcpu_count: 2 })).toEqual(refusal("missing field `mem_size_mib`"));
    for (const wrong of [0, 33, 1.5, "2"]) {
      expect(await put("/machine-config", { ...machine, vcpu_count: wrong })).toMatchObject({ status: 400 });
    }
    expect(await put("/vsock", { guest_cid: -1, uds_path: "v" })).toEqual(refusal("guest_cid"));
    expect(await put("/machine-config")).toEqual(refusal("Empty PUT request"));
  });

  it("refuses a drive without a file, or with another id than in the path", async () => {
    const drive = { drive_id: "one", path_on_host: "disk", is_root_device: false, is_read_only: true };
    expect(await put("/drives/one", drive)).toEqual(done);
    expect(await put("/drives/other", drive)).toEqual(refusal("does not match"));
    expect(await put("/drives/one", { ...drive, path_on_host: "gone" })).toEqual(refusal("No such file"));
    expect(await put("/drives/one", { ...drive, path_on_host: "/../../etc/passwd" })).toEqual(refusal("No such file"));
    expect(await put("/drives/one", { ...drive, is_root_device: true })).toEqual(done);
    expect(await put("/drives/two", { ...drive, drive_id: "two", is_root_device: true })).toEqual(
      refusal("root block device already exists"),
    );
  });

  it("refuses to start a machine without a valid kernel", async () => {
    const start = () => put("/actions", { action_type: "InstanceStart" });
    expect(await start()).toEqual(refusal("without kernel configuration"));
    expect(await put("/boot-source", { kernel_image_path: "gone" })).toEqual(refusal("No such file"));
    const dashes = { kernel_image_path: "kernel", boot_args: "quiet -- --init" };
    expect(await put("/boot-source", dashes)).toEqual(done);
    expect(await put("/boot-source", { kernel_image_path: "text" })).toEqual(done);
    expect(await start()).toEqual(refusal("Kernel Loader"));
  });

  it("has its vsock socket as soon as the device is configured, and does not answer there before the guest runs", async () => {
    expect(existsSync(at("v.sock"))).toBe(false);
    expect(await put("/vsock", { guest_cid: 2, uds_path: "v.sock" })).toEqual(done);
    const patience = new AbortController();
    const asked = connectVsock(at("v.sock"), 52, patience.signal);
    // The connection is open by the time that another one is.
    (await connectSocket(at("v.sock"), patience.signal)).destroy();
    patience.abort(new Error("no answer"));
    await expect(asked).rejects.toThrow("no answer");
  });

  it("refuses the eleventh connection to its API", async () => {
    const connect = () => connectSocket(double.socket, new AbortController().signal);
    const idle = await Promise.all(Array.from({ length: 10 }, connect));
    expect(await double.ask("GET", "/")).toMatchObject({ status: 503 });
    for (const socket of idle) socket.destroy();
    await expect.poll(() => double.ask("GET", "/")).toMatchObject({ status: 200 });
  });

  it("refuses to pause, save or resume a machine that is not started", async () => {
    const early = refusal("not supported before starting");
    expect(await double.ask("PATCH", "/vm", { state: "Paused" })).toEqual(early);
    expect(await double.ask("PATCH", "/vm", { state: "Resumed" })).toEqual(early);
    expect(await put("/snapshot/create", { snapshot_path: "s", mem_file_path: "m" })).toEqual(early);
    expect(await put("/actions", { action_type: "SendCtrlAltDel" })).toEqual(early);
  });

  it("loads a snapshot only before it is configured, with exactly one memory backend", async () => {
    const load = { snapshot_path: "s", mem_backend: { backend_type: "File", backend_path: "m" } };
    expect(await put("/snapshot/load", { ...load, mem_file_path: "m" })).toEqual(refusal("mem_backend"));
    expect(await put("/snapshot/load", { snapshot_path: "s" })).toEqual(refusal("mem_backend"));
    expect(await put("/entropy", {})).toEqual(done);
    expect(await put("/snapshot/load", load)).toEqual(refusal("not allowed after configuring"));
    expect(double.process.exitCode).toBe(null);
  });

  it("exits after it has reported that a snapshot cannot be loaded", async () => {
    await using other = await startBareDouble();
    const exited = once(other.process, "exit");
    const load = { snapshot_path: "s", mem_backend: { backend_type: "File", backend_path: "m" } };
    expect(await other.ask("PUT", "/snapshot/load", load)).toEqual(refusal("Failed to restore from snapshot"));
    expect(await exited).toEqual([1, null]);
  });
});
