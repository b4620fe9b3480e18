import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { Sandbox } from "../sandbox.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import { rejection } from "./rejection.ts";

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

  it("says so when no answer was scripted", async () => {
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
    const names = async (options: object) => {
      const found = [];
      for await (const { info } of client.sandboxes.list(options)) found.push(info.name);
      return found;
    };
    expect(await names({ pageSize: 2 })).toEqual(["c", "b", "a"]);
    expect(await names({ labels: { odd: "true" } })).toEqual(["c", "a"]);
    expect(await names({ name: "b" })).toEqual(["b"]);
  });

  it("tells of changes of files and of events", async () => {
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

  it("lets a client be told that a token was withheld", async () => {
    const { clientOptions } = createMemoryServer();
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const answer = (await (await clientOptions.fetch(input, init)).json()) as object;
      return Response.json({ ...answer, token: null });
    };
    const sandbox = await Sandbox.create({ ...clientOptions, fetch });
    expect(() => sandbox.token).toThrow(expect.objectContaining({ code: "permission_denied" }));
  });

  it("is honest about what it does not do", async () => {
    const { clientOptions } = createMemoryServer();
    expect(await rejection(new Client(clientOptions).pools.list())).toMatchObject({ code: "unimplemented" });
  });

  it("refuses another key, on either way in", async () => {
    const server = createMemoryServer();
    await using sandbox = await Sandbox.create(server.clientOptions);
    const options = { ...server.clientOptions, apiKey: "wrong" };
    expect(await rejection(Sandbox.connect(sandbox.id, options))).toMatchObject({ code: "unauthenticated" });
    const events = new Client(options).events();
    expect(await rejection(events.ready)).toMatchObject({ code: "unauthenticated" });
    const own = await Sandbox.connect(sandbox.id, { ...options, apiKey: sandbox.token });
    expect((await own.exec("x")).exitCode).toBe(127);
  });
});
