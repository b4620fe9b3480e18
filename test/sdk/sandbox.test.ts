import { Client, decodeText, Sandbox, SandboxError } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { useNode } from "./sdk-node.ts";

const node = await useNode();
const options = () => ({ url: node.url, apiKey: node.apiKey });

describe("a sandbox, through the SDK", () => {
  it("is created, connected to, updated, listed and destroyed", async () => {
    const sandbox = await Sandbox.create({ ...options(), name: "first", labels: { team: "x" }, env: { WHO: "you" } });
    expect(sandbox.info).toMatchObject({ state: "ready", name: "first", labels: { team: "x" }, provider: "gvisor" });
    expect((await sandbox.exec('echo "hello $WHO"')).stdout).toBe("hello you\n");
    const other = await Sandbox.connect(sandbox.id, options());
    expect((await other.update({ labels: { team: "y" }, ttlMs: 60_000 })).labels).toEqual({ team: "y" });
    expect((await sandbox.refresh()).labels).toEqual({ team: "y" });
    const found = [];
    for await (const { id } of Sandbox.list({ ...options(), labels: { team: "y" } })) found.push(id);
    expect(found).toEqual([sandbox.id]);
    await sandbox.destroy();
    await sandbox.destroy();
    expect(sandbox.state).toBe("destroyed");
    await expect(other.exec("true")).rejects.toBeInstanceOf(SandboxError);
  });

  it("accepts its own token, which opens no other sandbox", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using other = await node.client.sandboxes.create();
    const own = await Sandbox.connect(sandbox.id, { url: node.url, apiKey: sandbox.token });
    expect((await own.exec("echo in")).stdout).toBe("in\n");
    await expect(Sandbox.connect(other.id, { url: node.url, apiKey: sandbox.token })).rejects.toMatchObject({
      name: "SandboxError",
    });
  });

  it("runs commands with input and time limits, and returns both outputs and the exit code", async () => {
    await using sandbox = await node.client.sandboxes.create();
    expect(await sandbox.exec("cat; echo e >&2; exit 3", { stdin: "é\n" })).toMatchObject({
      exitCode: 3,
      stdout: "é\n",
      stderr: "e\n",
    });
    expect(await sandbox.exec(["printf", "%s", "$HOME"])).toMatchObject({ stdout: "$HOME" });
    expect(await sandbox.exec("sleep 60", { timeoutMs: 100 })).toMatchObject({ timedOut: true, signal: "SIGKILL" });
    await expect.poll(() => sandbox.processes()).toEqual([]);
    const large = await sandbox.exec("wc -c", { stdin: new Uint8Array(3_000_000) });
    expect(large.stdout.trim()).toBe("3000000");
  });

  it("is healthy while it is ready, also when it is busy, and a check does not resume it", async () => {
    await using sandbox = await node.client.sandboxes.create();
    expect(await sandbox.isHealthy()).toBe(true);
    await using _ = await sandbox.start("sleep 1000");
    expect(await sandbox.isHealthy()).toBe(true);
    await sandbox.pause();
    expect(await sandbox.isHealthy()).toBe(false);
    expect((await sandbox.refresh()).state).toBe("paused");
    await sandbox.resume();
    expect(await sandbox.isHealthy()).toBe(true);
    await sandbox.destroy();
    expect(await sandbox.isHealthy()).toBe(false);
  });

  it("kills a command whose caller aborts", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const abort = new AbortController();
    const running = sandbox.exec("echo started; exec sleep 1000", {
      signal: abort.signal,
      onStdout: () => abort.abort(),
    });
    await expect(running).rejects.toMatchObject({ code: "canceled" });
    await expect.poll(async () => (await sandbox.exec("pgrep -x sleep")).stdout).toBe("");
  });

  it("starts processes that a client can write to, detach from and attach to again", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const process = await sandbox.start("while read line; do echo got $line; done; exit 4", { stdin: true });
    expect(process.pid).toBeGreaterThan(0);
    await process.write("one\n");
    const texts = [];
    for await (const text of decodeText(process.stdout)) {
      texts.push(text);
      break;
    }
    expect(texts).toEqual(["got one\n"]);
    process.detach();
    const again = await sandbox.attach(process.id, { offset: 8 });
    await again.write("two\n");
    await again.closeStdin();
    let rest = "";
    for await (const text of decodeText(again.stdout)) rest += text;
    expect(rest).toBe("got two\n");
    expect(await again.wait()).toMatchObject({ exitCode: 4 });
    await again[Symbol.asyncDispose]();
    expect(await sandbox.processes()).toEqual([]);
    await expect(sandbox.attach(process.id)).rejects.toMatchObject({ code: "not_found" });
  });

  it("returns a process's exit code before its output has been read", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using process = await sandbox.start("head -c 5000000 /dev/zero; exit 5");
    expect(await process.wait()).toMatchObject({ exitCode: 5 });
    let sizeBytes = 0;
    for await (const bytes of process.stdout) sizeBytes += bytes.length;
    expect(sizeBytes).toBe(5_000_000);
  });

  it("opens a terminal that can be resized", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await using terminal = await sandbox.pty({ rows: 24, cols: 80, command: "stty size; read x; stty size" });
    let text = "";
    for await (const piece of decodeText(terminal.stdout)) {
      text += piece;
      if (!text.endsWith("24 80\r\n")) continue;
      await terminal.resize({ rows: 30, cols: 100 });
      await terminal.write("\n");
    }
    expect(text).toContain("30 100");
    await expect(terminal.kill()).resolves.toBeUndefined();
  });

  it("opens a terminal with the sandbox's own shell", async () => {
    const shellOf = async (env: Record<string, string>) => {
      await using sandbox = await node.client.sandboxes.create({ env });
      await using terminal = await sandbox.pty({ rows: 24, cols: 80 });
      await terminal.write("exit 5\n");
      expect(await terminal.wait()).toMatchObject({ exitCode: 5 });
      return (await sandbox.processes()).find(({ id }) => id === terminal.id)?.argv;
    };
    expect(await shellOf({})).toEqual(["/bin/bash"]);
    expect(await shellOf({ SHELL: "/bin/sh" })).toEqual(["/bin/sh"]);
    expect(await shellOf({ SHELL: "/no/such/shell" })).toEqual(["/bin/bash"]);
  });

  it("reads, writes, lists, moves and removes files", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const { files } = sandbox;
    const bytes = crypto.getRandomValues(new Uint8Array(50_000));
    expect(await files.write("/tmp/a/b.bin", bytes, { mode: 0o600 })).toEqual({ sizeBytes: 50_000 });
    expect(await files.read("/tmp/a/b.bin")).toEqual(bytes);
    expect(await files.read("/tmp/a/b.bin", { offset: 10, lengthBytes: 5 })).toEqual(bytes.slice(10, 15));
    expect(await files.stat("/tmp/a/b.bin")).toMatchObject({ kind: "file", sizeBytes: 50_000, mode: 0o600 });
    await files.write("/tmp/a/stream", [bytes, bytes]);
    let sizeBytes = 0;
    for await (const piece of await files.readStream("/tmp/a/stream")) sizeBytes += piece.length;
    expect(sizeBytes).toBe(100_000);
    expect(await files.mkdir("/tmp/a/c")).toBe(true);
    await files.move("/tmp/a/b.bin", "/tmp/a/c/d");
    await files.chmod("/tmp/a/c/d", 0o755);
    expect((await files.list("/tmp/a")).map(({ path }) => path)).toEqual(["c", "stream"]);
    const archive = await files.downloadArchive("/tmp/a");
    await files.uploadArchive("/tmp/copy", archive);
    expect(await files.read("/tmp/copy/c/d")).toEqual(bytes);
    await files.remove("/tmp/a", { recursive: true });
    await expect(files.readText("/tmp/a/stream")).rejects.toMatchObject({ code: "not_found" });
  });

  it("reports file changes, its events and its resource usage", async () => {
    await using sandbox = await node.client.sandboxes.create();
    await sandbox.exec("mkdir /tmp/watched");
    await using watcher = await sandbox.watch("/tmp/watched");
    await sandbox.exec("touch /tmp/watched/new");
    for await (const event of watcher) {
      expect(event).toMatchObject({ kind: "create", path: "new" });
      break;
    }
    for await (const event of sandbox.events()) if (event.kind === "sandbox.ready") break;
    const kinds: string[] = [];
    for await (const { kind, details } of sandbox.events({ replay: true })) {
      kinds.push(kind);
      if (kind === "sandbox.updated") break;
      expect(details).toMatchObject({ state: "ready", provider: "gvisor" });
      await sandbox.update({ labels: { seen: "yes" } });
    }
    expect(kinds).toEqual(["sandbox.state", "sandbox.updated"]);
    expect((await sandbox.metrics()).memoryTotalBytes).toBeGreaterThan(0);
  });

  it("cannot be stopped with this provider, and says to pause it instead", async () => {
    await using sandbox = await node.client.sandboxes.create();
    const refusal = await sandbox.stop().catch((thrown: unknown) => thrown);
    expect(refusal).toMatchObject({ code: "unimplemented", reason: "provider_lacks_capability" });
    expect((refusal as SandboxError).hint).toContain("pause");
    expect((await sandbox.start()).state).toBe("ready");
  });

  it("fails with a hint how to start a node when none runs", async () => {
    const error = await new Client({ url: "http://127.0.0.1:9" }).health().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "unavailable", reason: "node_unreachable" });
    expect((error as SandboxError).hint).toContain("npm start");
  });
});
