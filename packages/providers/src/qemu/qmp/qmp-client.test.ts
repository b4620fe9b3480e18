import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { sharedDirectory } from "../../host/testing/shared.ts";
import { findQemu } from "../find-qemu.ts";
import { LineSplitter, QmpClient } from "./qmp-client.ts";

const { signal } = new AbortController();
const directory = sharedDirectory("qmp");
let qemu: ChildProcess;

/** A machine without a guest, which has only a monitor. */
beforeAll(async () => {
  const { program, args, env } = await findQemu();
  const monitor = ["-qmp", "unix:qmp.sock,server=on,wait=off"];
  const machine = ["-M", "none", "-nodefaults", "-display", "none", "-S"];
  qemu = spawn(program, [...args, ...machine, ...monitor], { cwd: directory, env: { ...env }, stdio: "ignore" });
});
afterAll(async () => {
  if (qemu.exitCode === null && qemu.signalCode === null) {
    qemu.kill("SIGKILL");
    await once(qemu, "exit");
  }
});

function connect(): Promise<QmpClient> {
  return vi.waitFor(() => QmpClient.connect(join(directory, "qmp.sock"), signal), { timeout: 20_000 });
}

describe("QmpClient", () => {
  it("matches the answers of concurrent commands", async () => {
    const client = await connect();
    const answers = await Promise.all([
      client.execute("query-status", {}),
      client.execute("query-kvm", {}),
      client.execute("query-status", {}),
    ]);
    expect(answers).toMatchObject([{ status: "prelaunch" }, { enabled: false }, { status: "prelaunch" }]);
    client.close();
  });

  it("reports why QEMU refuses a command", async () => {
    const client = await connect();
    await expect(client.execute("migrate-incoming", { uri: "fd:3" })).rejects.toMatchObject({
      reason: "monitor_refused",
      message: expect.stringContaining("migrate-incoming"),
    });
    client.close();
  });

  it("sends the first commands with the greeting, and frees the monitor when QEMU refuses them", async () => {
    const path = join(directory, "qmp.sock");
    const refused = QmpClient.connect(path, signal, (client) => client.execute("migrate-incoming", { uri: "fd:3" }));
    await expect(refused).rejects.toMatchObject({ reason: "monitor_refused" });
    let status: string | undefined;
    const client = await QmpClient.connect(path, signal, async (monitor) => {
      ({ status } = await monitor.execute("query-status", {}));
    });
    expect(status).toBe("prelaunch");
    client.close();
  });

  it("passes events to its listeners until they stop", async () => {
    const client = await connect();
    const events: string[] = [];
    const stop = client.onEvent(({ event }) => events.push(event));
    await client.execute("cont", {});
    await client.execute("stop", {});
    stop();
    await client.execute("cont", {});
    expect(events).toEqual(["RESUME", "STOP"]);
    client.close();
  });

  it("gives up a connection that times out while another client uses the monitor", async () => {
    const client = await connect();
    await expect(QmpClient.connect(join(directory, "qmp.sock"), AbortSignal.timeout(50))).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect((await client.execute("query-status", {})).running).toBe(true);
    client.close();
  });

  it("fails pending and later commands when QEMU is killed", async () => {
    const client = await connect();
    qemu.kill("SIGSTOP");
    const unanswered = client.execute("query-status", {});
    qemu.kill("SIGKILL");
    await expect(unanswered).rejects.toMatchObject({ reason: "monitor_gone" });
    await client.closed;
    await expect(client.execute("query-status", {})).rejects.toMatchObject({ reason: "monitor_gone" });
    expect(client.isClosed).toBe(true);
  });
});

describe("LineSplitter", () => {
  it("joins lines that are split anywhere, also within a character", () => {
    const lines: string[] = [];
    const splitter = new LineSplitter(
      (line) => lines.push(line),
      () => {},
    );
    for (const byte of Buffer.from("grüße\r\n\nzwei\nrest")) splitter.push(Uint8Array.of(byte));
    expect(lines.map((line) => line.trim())).toEqual(["grüße", "zwei"]);
  });

  it("ends at a line that is too long, and keeps nothing of it", () => {
    const [lines, ends]: [string[], boolean[]] = [[], []];
    const splitter = new LineSplitter(
      (line) => lines.push(line),
      () => ends.push(true),
    );
    splitter.push(Buffer.from("one\n"));
    const piece = Buffer.alloc(64 * 1024, "x");
    for (let i = 0; i < 100; i += 1) splitter.push(piece);
    splitter.push(Buffer.from("\ntwo\n"));
    expect([lines, ends]).toEqual([["one"], [true]]);
  });
});
