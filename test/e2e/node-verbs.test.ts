import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { findLeftovers } from "./leftovers.ts";
import { useNode } from "./node-process.ts";
import { startCli } from "./run-cli.ts";

const node = await useNode();
const run: typeof node.run = (argv, options) => node.run(argv, options);

async function json(argv: readonly string[]) {
  const { stdout, stderr, exitCode } = await run(argv);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

/** A sandbox's id, without its line feed. */
async function create(...argv: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await run(["create", ...argv]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout.trim();
}

describe("a sandbox of the node", () => {
  it("is listed without its token, found by ID, beginning of ID, name and label, and destroyed", async () => {
    const id = await create("--name", "listed", "--label", "kind=test", "--memory", "128", "--ttl", "1h");
    const [found, ...others] = await json(["ls", "--label", "kind=test"]);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ id, name: "listed", state: "ready", memoryMib: 128, ttlMs: 3_600_000 });
    expect(found).not.toHaveProperty("token");
    expect(await json(["ls", "--label", "kind=other"])).toEqual([]);
    for (const name of [id, id.slice(0, 8), "listed"]) {
      expect(await run(["exec", name, "--", "echo", "here"])).toMatchObject({ stdout: "here\n", exitCode: 0 });
    }
    expect(await run(["rm", "listed"])).toMatchObject({ stdout: "", stderr: "", exitCode: 0 });
    expect(await json(["ls", "--state", "ready", "--label", "kind=test"])).toEqual([]);
    expect(findLeftovers(node.home, [id]).filter((text) => text.includes(id))).toEqual([]);
  });

  it("that does not exist is an error with exit code 1", async () => {
    expect(await run(["ps", "missing"])).toMatchObject({
      stdout: "",
      stderr:
        'sandpiper: sandbox "missing" not found\n' +
        '  use an ID, the beginning of an ID, or a name from "sandpiper ls"\n',
      exitCode: 1,
    });
  });

  it("is described by an API reference that a browser opens without a key", async () => {
    const page = await fetch(`${node.url}/docs`, { headers: { accept: "text/html" } });
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const html = await page.text();
    expect(html).toContain("/v1/sandboxes/{id}/exec");
    const links = [...html.matchAll(/(?:href|src)="([^"#][^"]*)"/g)].map(([, link = ""]) => link);
    expect(links).toEqual(["/openapi.json"]);
    expect(await (await fetch(new URL(links[0] as string, node.url))).json()).toMatchObject({ openapi: "3.1.0" });
  });

  it("is refused with the option or the provider that the node does not support, and the setting that enables it", async () => {
    expect(await run(["create", "--publish", "80"])).toMatchObject({
      stderr: expect.stringContaining("sandpiper: cannot use --publish: provider gvisor does not run containers\n"),
      exitCode: 2,
    });
    const refused = await run(["create", "--provider", "docker"]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toBe(
      "sandpiper: provider docker is not enabled on this node\n" +
        "  enable it with the node's setting providers (SANDPIPER_PROVIDERS=docker), or use one of gvisor\n",
    );
  });

  it("runs commands with input, variables, exit codes and timeouts", async () => {
    const id = await create("--env", "KEPT=always");
    const script = 'echo "$KEPT $GIVEN $(pwd)"; cat; echo err >&2; exit 3';
    const argv = ["exec", "--env", "GIVEN=now", id, "--cwd", "/tmp", "--", "sh", "-c", script];
    expect(await run(argv, { stdin: "input\n" })).toMatchObject({
      stdout: "always now /tmp\ninput\n",
      stderr: "err\n",
      exitCode: 3,
    });
    expect(await run(["exec", id, "--timeout", "0.5", "--", "sleep", "60"])).toMatchObject({ exitCode: 124 });
    expect(await run(["exec", id, "--", "no-such-program"])).toMatchObject({ exitCode: 127 });
    const { stdout } = await run(["exec", "--json", id, "--", "echo", "grün"]);
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 0, stdout: "grün\n", sandboxId: id, provider: "gvisor" });
    expect(await json(["ps", id])).toEqual([]);
  });

  it("keeps the output of a detached command, which can be followed and killed", async () => {
    const id = await create();
    const { stdout } = await run(["exec", "--detach", id, "--", "sh", "-c", "echo first; sleep 600"]);
    const process_ = stdout.trim();
    const follower = startCli(["logs", "-f", id, process_.slice(0, 8)], { env: node.env });
    const followed = once(follower, "close");
    const [first] = await once(follower.stdout as NodeJS.ReadableStream, "data");
    expect(String(first)).toBe("first\n");
    expect(await json(["ps", id])).toMatchObject([{ id: process_, isRunning: true, user: "user" }]);
    expect(await run(["kill", "--signal", "term", id, process_])).toMatchObject({ stderr: "", exitCode: 0 });
    expect(await followed).toEqual([0, null]);
    expect(await json(["ps", id])).toMatchObject([{ isRunning: false, signal: "SIGTERM" }]);
    expect(await json(["logs", "--json", id])).toEqual({
      process: process_,
      isRunning: false,
      exitCode: 143,
      signal: "SIGTERM",
      stdout: "first\n",
      stderr: "",
    });
  });

  it("stays when Ctrl-C kills the command in it", async () => {
    const id = await create();
    const child = startCli(["exec", id, "--", "sh", "-c", "echo started; sleep 600"], { env: node.env });
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([130, null]);
    const { stdout } = await run(["exec", id, "--", "sh", "-c", "ps ax | grep -c '[s]leep 600'"]);
    expect(stdout).toBe("0\n");
  });
});

describe("the node", () => {
  it("shows statistics and events, and sets warm pools", async () => {
    const id = await create("--name", "watched");
    expect(await json(["stats", "watched"])).toMatchObject([{ id, name: "watched", processes: expect.any(Number) }]);
    const kinds = (await json(["events", "watched"])).map(({ kind }: { kind: string }) => kind);
    expect(kinds.slice(0, 2)).toEqual(["sandbox.created", "sandbox.ready"]);
    expect(await json(["pool", "set", "1", "--memory", "64"])).toMatchObject({ target: 1, key: { memoryMib: 64 } });
    expect(await json(["pool", "set", "0", "--memory", "64"])).toMatchObject({ target: 0, key: { memoryMib: 64 } });
  });

  it("streams events with --follow, one JSON object per line, until Ctrl-C", async () => {
    const follower = startCli(["events", "-f"], { env: node.env });
    let shown = "";
    follower.stdout?.on("data", (chunk: Buffer) => {
      shown += chunk;
    });
    const id = await create();
    const hasCome = () => shown.split("\n").some((line) => line.includes("sandbox.ready") && line.includes(id));
    while (!hasCome()) await once(follower.stdout as NodeJS.ReadableStream, "data");
    follower.kill("SIGINT");
    expect(await once(follower, "close")).toEqual([130, null]);
    for (const line of shown.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("kind");
  });

  it("ends events --follow when its output is closed", async () => {
    const follower = startCli(["events", "-f"], { env: node.env });
    await once(follower.stdout as NodeJS.ReadableStream, "data");
    follower.stdout?.destroy();
    const ended = once(follower, "exit");
    await create();
    expect(await ended).toEqual([141, null]);
  });

  it("creates keys that work within their scope until they are revoked", async () => {
    const key = (await run(["keys", "create", "looker", "--scope", "read", "--expires", "1h"])).stdout.trim();
    const env = { SANDPIPER_API_KEY: key };
    expect((await run(["ls"], { env })).exitCode).toBe(0);
    expect(await run(["create"], { env })).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("scope") });
    expect(await json(["keys", "ls"])).toContainEqual(expect.objectContaining({ name: "looker", scopes: ["read"] }));
    expect((await run(["keys", "revoke", "looker"])).exitCode).toBe(0);
    expect((await run(["ls"], { env })).exitCode).toBe(1);
  });

  it("enforces the quotas that keys update and tenants update set, and lists them with their usage", async () => {
    const env = { SANDPIPER_API_KEY: (await run(["keys", "create", "builder", "--tenant", "ci"])).stdout.trim() };
    const updated = await json(["keys", "update", "builder", "--name", "ci-1", "--max-sandboxes", "0", "--json"]);
    expect(updated).toMatchObject({ name: "ci-1", quota: { maxSandboxes: 0, maxDiskMib: null } });
    const refused = { exitCode: 1, stdout: "", stderr: expect.stringContaining("sandboxes") };
    expect(await run(["create"], { env })).toMatchObject(refused);
    await json(["keys", "update", "ci-1", "--max-sandboxes", "none", "--json"]);
    expect(await run(["tenants", "update", "ci", "--max-sandboxes", "0", "--max-disk", "2G"])).toMatchObject({
      stdout: "ci\n",
      exitCode: 0,
    });
    expect(await run(["create"], { env })).toMatchObject(refused);
    const tenants: readonly { readonly name: string }[] = await json(["tenants", "ls", "--json"]);
    expect(tenants.find(({ name }) => name === "ci")).toMatchObject({
      quota: { maxSandboxes: 0, maxDiskMib: 2048 },
      usage: { sandboxes: 0 },
    });
    expect(await run(["tenants", "update", "ci", "--max-disk", "much"])).toMatchObject({ exitCode: 2, stdout: "" });
    expect((await run(["keys", "update", "missing", "--name", "x"])).exitCode).toBe(1);
  });

  it("is found by doctor", async () => {
    const { checks } = JSON.parse((await run(["doctor", "--json"])).stdout);
    expect(checks).toContainEqual({
      name: "server",
      status: "ok",
      detail: `a node is running at ${node.url}, version 0.1.0`,
    });
  });
});

describe("sandpiper run", () => {
  const readyAndGone = async () => {
    const events: { kind: string }[] = await json(["events"]);
    return ["sandbox.ready", "sandbox.destroyed"].map((kind) => events.filter((event) => event.kind === kind).length);
  };

  it("creates its sandbox on the node, and destroys it", async () => {
    const [ready = 0, gone = 0] = await readyAndGone();
    expect(await run(["run", "--", "sh", "-c", "echo hi; exit 4"])).toMatchObject({ stdout: "hi\n", exitCode: 4 });
    expect(await readyAndGone()).toEqual([ready + 1, gone + 1]);
  });

  it("destroys its sandbox when it is interrupted", async () => {
    const [ready = 0, gone = 0] = await readyAndGone();
    const child = startCli(["run", "--", "sh", "-c", "echo started; sleep 600"], { env: node.env });
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([143, null]);
    expect(await readyAndGone()).toEqual([ready + 1, gone + 1]);
  });

  it("does not use the node with --embedded", async () => {
    const before = await readyAndGone();
    expect(await run(["run", "--embedded", "--", "echo", "alone"])).toMatchObject({ stdout: "alone\n", exitCode: 0 });
    expect(await readyAndGone()).toEqual(before);
  });
});
