import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = join(import.meta.dirname, "main.ts");
const children: ChildProcess[] = [];
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "sandpiper-daemon-"));
});
afterEach(async () => {
  await Promise.all(
    children.splice(0).map(async (child) => {
      if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await once(child, "close");
    }),
  );
  await rm(home, { recursive: true, force: true });
});

function spawnNode(argv: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [main, "--port=0", ...argv], {
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], SANDPIPER_HOME: home, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const stderr = child.stderr.toArray().then((pieces) => String(Buffer.concat(pieces)));
  const lines: Record<string, unknown>[] = [];
  const reader = createInterface({ input: child.stdout });
  const ready = new Promise<Record<string, string | number>>((resolve, reject) => {
    reader.on("line", (line) => {
      lines.push(JSON.parse(line));
      if (lines.at(-1)?.["msg"] === "ready") resolve(JSON.parse(line));
    });
    reader.on("close", async () => reject(new Error(`the node ended before it was ready: ${await stderr}`)));
  });
  ready.catch(() => {});
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { child, ready, ended, stderr, lines };
}

const keyOf = async () => (await readFile(join(home, "api-key"), "utf8")).trim();

async function call(url: unknown, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { Authorization: `Bearer ${await keyOf()}`, "Content-Type": "application/json" };
  return fetch(`${url}${path}`, { ...init, headers });
}

describe("the node's program", () => {
  it("listens, writes the first key so that only its owner can read it, and exits with 0 on SIGTERM", async () => {
    const { child, ready, ended, lines, stderr } = spawnNode();
    const { url, apiKeyFile } = await ready;
    expect(apiKeyFile).toBe(join(home, "api-key"));
    expect((await stat(join(home, "api-key"))).mode & 0o777).toBe(0o600);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/v1/sandboxes`)).status).toBe(401);
    expect((await call(url, "/v1/sandboxes")).status).toBe(200);
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(lines.at(-1)).toMatchObject({ msg: "stopped" });
    expect(await stderr).toBe("");
    expect(JSON.stringify(lines)).not.toContain(await keyOf());
  });

  it("fails when another node uses its home directory", async () => {
    await spawnNode().ready;
    const second = spawnNode();
    expect(await second.ended).toBe(1);
    expect(await second.stderr).toMatch(/^sandpiper: .*in use by process \d+\n {2}.*SANDPIPER_HOME/);
  });

  it("fails when its port is in use, and says how to choose another", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { ended, stderr } = spawnNode([`--port=${port}`]);
    expect(await ended).toBe(1);
    expect(await stderr).toContain(`port ${port} of 127.0.0.1 is in use`);
    expect(await stderr).toContain("--port");
    server.close();
  });

  it("exits with 2 on an invalid setting, and names it", async () => {
    const { ended, stderr } = spawnNode([], { SANDPIPER_LOG_LEVEL: "loud" });
    expect(await ended).toBe(2);
    expect(await stderr).toContain('logLevel "loud" (from SANDPIPER_LOG_LEVEL) is not allowed; expected one of silent');
  });

  it("exits at once on the second signal, even while a request is running", async () => {
    const { child, ready, ended, lines } = spawnNode(["--stop-grace-ms=600000", "--default-provider=local"]);
    const { url } = await ready;
    const created = await call(url, "/v1/sandboxes", { method: "POST", body: JSON.stringify({ provider: "local" }) });
    const { id } = (await created.json()) as { id: string };
    const body = JSON.stringify({ command: "touch started; sleep 600" });
    const hanging = call(url, `/v1/sandboxes/${id}/exec`, { method: "POST", body });
    hanging.catch(() => {});
    await expect.poll(async () => (await call(url, `/v1/sandboxes/${id}/files?path=started`)).ok).toBe(true);
    child.kill("SIGTERM");
    await expect.poll(() => lines.some(({ signal }) => signal === "SIGTERM")).toBe(true);
    // A signal right after the first counts as the same one, so this repeats until one counts as the second.
    const again = setInterval(() => child.kill("SIGINT"), 50);
    expect(await ended).toBe(130);
    clearInterval(again);
    await removeAll();
  });

  it("leaves sandboxes running when it stops, and adopts them at the next start", async () => {
    const first = spawnNode();
    const { url } = await first.ready;
    const created = await call(url, "/v1/sandboxes", { method: "POST", body: "{}" });
    expect(created.status).toBe(201);
    const { id } = (await created.json()) as { id: string };
    const write = JSON.stringify({ command: "echo still here > /tmp/note" });
    expect((await call(url, `/v1/sandboxes/${id}/exec`, { method: "POST", body: write })).status).toBe(200);
    first.child.kill("SIGTERM");
    expect(await first.ended).toBe(0);

    const second = spawnNode();
    const { url: again, adopted } = await second.ready;
    expect(adopted).toBe(1);
    expect(await (await call(again, `/v1/sandboxes/${id}/files?path=/tmp/note`)).text()).toBe("still here\n");
    expect((await call(again, `/v1/sandboxes/${id}`, { method: "DELETE" })).status).toBe(204);
    second.child.kill("SIGTERM");
    expect(await second.ended).toBe(0);
  });
});

/** Removes the sandboxes of a node that exited at once. */
async function removeAll(): Promise<void> {
  const { child, ready, ended } = spawnNode();
  const { url } = await ready;
  const { items } = (await (await call(url, "/v1/sandboxes")).json()) as { items: { id: string }[] };
  for (const { id } of items) await call(url, `/v1/sandboxes/${id}`, { method: "DELETE" });
  child.kill("SIGTERM");
  await ended;
}
