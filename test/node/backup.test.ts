import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Client, Sandbox } from "@sandpiper/sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
