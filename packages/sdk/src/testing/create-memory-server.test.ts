import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { Sandbox } from "../sandbox.ts";
import { Session } from "../session/session.ts";
import { createMemoryServer } from "./create-memory-server.ts";

describe("the in-memory server", () => {
  it("answers commands as the test scripts them", async () => {
    const server = createMemoryServer();
    server.onExec(({ command, env, stdin }) => ({
      stdout: `${command} ${env["A"]}${env["B"]} ${stdin}`,
      stderr: "é",
      exitCode: 3,
    }));
    await using sandbox = await Sandbox.create({ ...server.clientOptions, env: { A: "1" } });
    const result = await sandbox.exec("it", { env: { B: "2" }, stdin: "input" });
    expect(result).toEqual({
      exitCode: 3,
      signal: null,
      stdout: "it 12 input",
      stderr: "é",
      durationMs: expect.any(Number),
      timedOut: false,
      outOfMemory: false,
      truncated: false,
    });
    expect(await sandbox.processes()).toEqual([]);
  });

  it("answers source code with its language, by default the sandbox's", async () => {
    const server = createMemoryServer();
    server.onExec(({ code, language, stdin }) => ({ stdout: `${language}: ${code} ${stdin}` }));
    await using sandbox = await Sandbox.create({ ...server.clientOptions, language: "bash" });
    expect((await sandbox.runCode("true")).stdout).toBe("bash: true ");
    expect((await sandbox.runCode("1", { language: "ts", stdin: "in" })).stdout).toBe("typescript: 1 in");
    const error = await rejection(sandbox.runCode("1", { language: "cobol" }));
    expect(error).toMatchObject({ reason: "unknown_language", hint: expect.stringContaining("python") });
  });

  it("fails clearly when no answer was scripted", async () => {
    await using sandbox = await Sandbox.create(createMemoryServer().clientOptions);
    expect(await sandbox.exec(["ls", "-l"])).toMatchObject({
      exitCode: 127,
      stderr: expect.stringContaining(`["ls","-l"]`),
    });
  });

  it("keeps files", async () => {
    const server = createMemoryServer();
    await using sandbox = await Sandbox.create(server.clientOptions);
    await sandbox.files.write("/data/a.txt", "hello");
    await sandbox.files.write("b.bin", Uint8Array.of(1, 2, 3));
    expect(await sandbox.files.readText("/data/a.txt")).toBe("hello");
    expect(await sandbox.files.read("b.bin", { offset: 1, lengthBytes: 1 })).toEqual(Uint8Array.of(2));
    expect([...server.files(sandbox.id).keys()]).toEqual(["/data/a.txt", "/home/user/b.bin"]);
    expect((await sandbox.files.list("/")).map(({ path, kind }) => `${path} ${kind}`)).toEqual([
      "data directory",
      "home directory",
    ]);
    await sandbox.files.move("/data/a.txt", "/data/c.txt");
    expect((await sandbox.files.stat("/data/c.txt")).sizeBytes).toBe(5);
    await sandbox.files.remove("/data", { recursive: true });
    expect(await rejection(sandbox.files.read("/data/c.txt"))).toMatchObject({
      code: "not_found",
      reason: "no_such_file",
    });
  });

  it("lists by name and label, page after page", async () => {
    const { clientOptions } = createMemoryServer();
    await using client = new Client(clientOptions);
    for (const name of ["a", "b", "c"]) await client.sandboxes.create({ name, labels: { odd: String(name !== "b") } });
    const names = async (options: object) =>
      (await Array.fromAsync(client.sandboxes.list(options))).map(({ info }) => info.name);
    expect(await names({ pageSize: 2 })).toEqual(["c", "b", "a"]);
    expect(await names({ labels: { odd: "true" } })).toEqual(["c", "a"]);
    expect(await names({ name: "b" })).toEqual(["b"]);
  });

  it("reports changes of files and events", async () => {
    const { clientOptions } = createMemoryServer();
    await using sandbox = await Sandbox.create(clientOptions);
    const changes = [];
    await using watcher = await sandbox.watch("/data");
    await sandbox.files.write("/data/a", "1");
    await sandbox.files.write("/elsewhere", "1");
    await sandbox.files.write("/data/a", "2");
    for await (const { kind, path } of watcher) if (changes.push(`${kind} ${path}`) === 2) break;
    expect(changes).toEqual(["create a", "write a"]);
    const kinds = [];
    for await (const { kind } of sandbox.events()) if (kinds.push(kind) === 2) break;
    expect(kinds).toEqual(["sandbox.created", "sandbox.ready"]);
  });

  it("saves files, and creates sandboxes from them", async () => {
    const { clientOptions } = createMemoryServer();
    const client = new Client(clientOptions);
    const original = await client.sandboxes.create({ env: { A: "1" }, labels: { team: "x" } });
    await original.files.write("/a", "saved");
    const saved = await original.checkpoint({ name: "first", ttlMs: 60_000 });
    expect(saved).toMatchObject({ name: "first", fidelity: "filesystem", sizeBytes: 5, sandboxId: original.id });
    await original.files.write("/a", "later");
    const restored = await client.sandboxes.create({ checkpoint: saved.id, name: "restored" });
    const [now, then, ...others] = [
      ...(await original.fork({ labels: { team: "y" } })),
      ...(await original.fork({ count: 2, checkpoint: "first", name: "fork" })),
    ];
    expect(others).toHaveLength(1);
    expect(new Set([original, restored, now, then].map((sandbox) => sandbox?.token)).size).toBe(4);
    expect([restored.info.name, now?.info.labels, then?.info]).toMatchObject([
      "restored",
      { team: "y" },
      { name: "fork", labels: { team: "x" } },
    ]);
    const texts = [original, restored, now, then].map((sandbox) => sandbox?.files.readText("/a"));
    expect(await Promise.all(texts)).toEqual(["later", "saved", "later", "saved"]);
    await then?.files.write("/a", "own");
    expect(await original.files.readText("/a")).toBe("later");
  });

  it("keeps the requested number of checkpoints, and deletes them by name or id", async () => {
    const sandbox = await Sandbox.create(createMemoryServer().clientOptions);
    const names = async () => (await sandbox.checkpoints()).map(({ name }) => name);
    for (const name of ["a", "b", "c"]) await sandbox.checkpoint({ name });
    expect(await rejection(sandbox.checkpoint({ name: "a" }))).toMatchObject({ code: "already_exists" });
    const last = await sandbox.checkpoint({ keepLast: 3 });
    expect(await names()).toEqual([null, "c", "b"]);
    await sandbox.deleteCheckpoint("b");
    await sandbox.deleteCheckpoint(last.id);
    expect(await names()).toEqual(["c"]);
    expect(await rejection(sandbox.deleteCheckpoint("b"))).toMatchObject({ reason: "no_such_checkpoint" });
  });

  it("refuses commands in a paused or stopped sandbox until it is resumed", async () => {
    const sandbox = await Sandbox.create(createMemoryServer().clientOptions);
    expect((await sandbox.pause()).state).toBe("paused");
    expect(await rejection(sandbox.exec("x"))).toMatchObject({ reason: "not_ready" });
    expect((await sandbox.resume()).state).toBe("ready");
    await sandbox.checkpoint({ stop: true });
    expect((await sandbox.refresh()).state).toBe("stopped");
    expect(await rejection(sandbox.files.readText("/a"))).toMatchObject({ reason: "not_ready" });
    expect((await sandbox.resume()).state).toBe("ready");
  });

  it("rolls a sandbox back, reports it, and ends its processes", async () => {
    const server = createMemoryServer();
    const started = Promise.withResolvers<void>();
    server.onExec(() => {
      started.resolve();
      return new Promise(() => {});
    });
    const sandbox = await Sandbox.create(server.clientOptions);
    expect(await rejection(sandbox.rollback())).toMatchObject({ reason: "no_such_checkpoint" });
    await sandbox.files.write("/a", "saved");
    const { id } = await sandbox.checkpoint();
    await sandbox.files.write("/a", "later");
    await sandbox.files.write("/b", "later");
    const rolledBack = Promise.withResolvers<string>();
    const stop = sandbox.onRollback(({ checkpoint }) => rolledBack.resolve(checkpoint));
    const running = rejection(sandbox.exec("x"));
    await started.promise;
    const { rolledBackTo } = await sandbox.rollback();
    expect(rolledBackTo).toMatchObject({ checkpoint: id });
    expect(await rolledBack.promise).toBe(id);
    expect(await running).toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect([...server.files(sandbox.id).keys()]).toEqual(["/a"]);
    expect(await sandbox.files.readText("/a")).toBe("saved");
    stop();
    await sandbox.destroy();
  });

  it("can withhold a token from a client", async () => {
    const { clientOptions } = createMemoryServer();
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const answer = (await (await clientOptions.fetch(input, init)).json()) as object;
      return Response.json({ ...answer, token: null });
    };
    const sandbox = await Sandbox.create({ ...clientOptions, fetch });
    expect(() => sandbox.token).toThrow(expect.objectContaining({ code: "permission_denied" }));
  });

  it("lists itself as the only node", async () => {
    const { clientOptions } = createMemoryServer();
    const client = new Client(clientOptions);
    await client.sandboxes.create();
    expect(await client.nodes.list()).toMatchObject([{ url: client.url, isThisNode: true, sandboxes: 1 }]);
  });

  it("answers unimplemented for operations that it lacks", async () => {
    const { clientOptions } = createMemoryServer();
    expect(await rejection(new Client(clientOptions).pools.list())).toMatchObject({ code: "unimplemented" });
    expect(await rejection(new Client(clientOptions).nodes.drain())).toMatchObject({ code: "unimplemented" });
    expect(await rejection(Session.create(clientOptions))).toMatchObject({ code: "unimplemented" });
  });

  it("refuses another key over HTTP and WebSocket", async () => {
    const server = createMemoryServer();
    await using sandbox = await Sandbox.create(server.clientOptions);
    const options = { ...server.clientOptions, apiKey: "wrong" };
    expect(await rejection(Sandbox.connect(sandbox.id, options))).toMatchObject({ code: "unauthenticated" });
    const events = new Client(options).events();
    expect(await rejection(events.ready)).toMatchObject({ code: "unauthenticated" });
    const own = await Sandbox.connect(sandbox.id, { ...options, token: sandbox.token });
    expect((await own.exec("x")).exitCode).toBe(127);
  });
});
