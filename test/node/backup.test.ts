import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { MockProvider } from "@sandpiper/providers";
import type { Client, Sandbox } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StoreNodes } from "../../packages/node/src/handoff/testing/store-nodes.ts";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { blocksOf, readDocument } from "../e2e/document.ts";
import { runCli, sandpiper } from "../e2e/run-cli.ts";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

const COUNTER = "i=0; while :; do i=$((i+1)); echo $i > counter; sleep 0.02; done";

/** The commands of docs/operations.md below a heading and a subheading. */
function commandsOf(heading: string, subheading: string): string {
  const section = readDocument("docs/operations.md")
    .split(/^## /m)
    .find((text) => text.startsWith(heading));
  const part = section?.split(/^### /m).find((text) => text.startsWith(subheading));
  const blocks = blocksOf(part ?? "", "sh");
  expect(blocks, `${heading}, ${subheading}`).toHaveLength(1);
  return blocks.join("");
}

/** Runs commands as a reader of the document would, with other directories. */
async function runLines(lines: string, places: Record<string, string>, env: NodeJS.ProcessEnv): Promise<string> {
  const script = Object.entries(places).reduce((text, [from, to]) => text.replaceAll(from, to), lines);
  const PATH = `${dirname(sandpiper)}:${process.env["PATH"]}`;
  const options = { env: { ...process.env, ...env, PATH } };
  return (await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], options)).stdout;
}

const counterOf = async (sandbox: Sandbox) => Number((await sandbox.exec("cat counter")).stdout);

/** Changes files and the database until it is disposed. */
function keepWriting(client: Client, sandbox: Sandbox): AsyncDisposable {
  let isEnding = false;
  const write = async () => {
    for (let round = 0; !isEnding; round++) {
      await sandbox.files.write("load", String(round).repeat(50_000));
      await client.keys.create({ name: `key ${round}` });
    }
  };
  const writing = write();
  writing.catch(() => {});
  return {
    async [Symbol.asyncDispose]() {
      isEnding = true;
      await writing;
    },
  };
}

describe("a backup of a standalone node on gVisor", () => {
  const home = new GvisorHome(afterAll);
  const scratch = sharedDirectory("backup");
  const places = { "~/.sandpiper": home.path, "/root": scratch, "/srv/backups": scratch };
  const config = { home: home.path, port: 0, logLevel: "warn" } as const;
  let node: NodeProcess;
  let running: Sandbox;
  let paused: Sandbox;
  const environment = () => ({ SANDPIPER_HOME: home.path, SANDPIPER_URL: node.started.url });

  beforeAll(async () => {
    node = await NodeProcess.start(config);
    running = await node.client.sandboxes.create({ name: "running" });
    await running.files.write("kept", "kept");
    await running.start(COUNTER);
    paused = await node.client.sandboxes.create({ name: "paused" });
    await paused.files.write("kept", "also kept");
    await paused.pause();
  });

  afterAll(() => node.stop());

  it("is taken with the documented commands while sandboxes run and write", async () => {
    await expect.poll(() => counterOf(running)).toBeGreaterThan(5);
    await using _ = keepWriting(node.client, running);
    const shown = await runLines(commandsOf("Back up", "A standalone node"), places, environment());
    expect(shown).toMatch(/^backed up a standalone node: 2 sandboxes/m);
    expect(shown).toMatch(/^intact: a standalone node: 2 sandboxes/m);
    // The checkpoint that the backup took is in the backup only.
    expect(await running.checkpoints()).toEqual([]);
  });

  it("lists what it leaves out, and is not restored into the home of a running node", async () => {
    const plain = await runCli(["backup", "create", "--json", join(scratch, "plain")], { env: environment() });
    expect(JSON.parse(plain.stdout)).toMatchObject({
      sandboxes: [{ name: "paused" }],
      leftOut: [{ name: "running", why: "it has no checkpoint" }],
    });
    expect(plain.stderr).toContain('keep a copy of "secret" in the home elsewhere');
    const inUse = await runCli(["backup", "restore", join(scratch, "plain")], { env: environment() });
    expect([inUse.exitCode, inUse.stderr]).toEqual([1, expect.stringContaining("is in use by process")]);
  });

  it("lets sandboxes continue from their checkpoints on an empty machine, with the documented command", async () => {
    const before = await counterOf(running);
    await node.kill();
    await home.removeInstances();
    rmSync(home.path, { recursive: true });
    await runLines(commandsOf("Restore", "A standalone node"), places, { SANDPIPER_HOME: home.path });
    const { apiKey } = node.started;
    node = await NodeProcess.start(config);
    expect(node.started.apiKey).toBe(apiKey);
    running = await node.client.sandboxes.connect(running.id);
    expect(running.info).toMatchObject({ name: "running", state: "stopped" });
    const continued = await counterOf(running);
    expect(continued).toBeGreaterThan(5);
    expect(continued).toBeLessThan(before);
    await expect.poll(() => counterOf(running)).toBeGreaterThan(continued);
    expect((await running.exec("cat kept")).stdout).toBe("kept");
    expect((await node.client.sandboxes.connect(running.id)).info.rolledBackTo).not.toBeNull();
    paused = await node.client.sandboxes.connect(paused.id);
    expect((await paused.exec("cat kept")).stdout).toBe("also kept");
    expect(await node.client.audit.verify()).toMatchObject({ isIntact: true });
  });
});

it("backs up the store of a cluster that runs, and restores it elsewhere, with the documented commands", async () => {
  await using nodes = new StoreNodes();
  const scratch = pathToFileURL(sharedDirectory("backup")).href;
  const a = await nodes.start("a", new MockProvider());
  const { id } = await a.create({ name: "kept" });
  await a.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "echo saved > file" } });
  await a.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: {} });
  const places = {
    "s3://sandboxes/production": a.store.label,
    "s3://sandboxes/restored": `${scratch}/restored`,
    "s3://backups": scratch,
  };
  const env = { SANDPIPER_CLUSTER_SECRET: "s".repeat(32), SANDPIPER_HOME: `${fileURLToPath(scratch)}/no-home` };
  const shown = await runLines(commandsOf("Back up", "A cluster"), places, env);
  expect(shown).toMatch(/^backed up the store of a cluster: 1 sandbox,/m);
  expect(shown).toMatch(/^intact: the store of a cluster: 1 sandbox,/m);
  expect(await runLines(commandsOf("Restore", "A cluster"), places, env)).toMatch(/^restored the store of a cluster/);
  const b = await nodes.start("b", new MockProvider(), { store: places["s3://sandboxes/restored"] });
  const run = await b.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "cat file" } });
  expect(await run.json()).toMatchObject({ stdout: "saved\n" });
});
