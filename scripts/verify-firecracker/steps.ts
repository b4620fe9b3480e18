import { deepEqual, equal, ok } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/sdk";
import { processesOf, type VerifiedNode } from "./verified-node.ts";

const AGENT_PORT = 52;
const CONNECT_MS = 30_000;
const FILE_BYTES = 1024 * 1024;
/** A restored clock may lag by this much on a slow host. */
const CLOCK_MS = 2000;

const FORKS = ["first copy", "second copy"];

/** Returns what it has seen; throws when the machine behaves otherwise. */
type Step = (node: VerifiedNode) => Promise<string>;

/** In this order: later steps use the machines of earlier ones. */
export const STEPS: Readonly<Record<string, Step>> = {
  boot: async (node) => {
    await node.start();
    const sandbox = await node.create("main");
    return `kernel ${await output(sandbox, "uname -r")}`;
  },

  "CONNECT 52": async (node) => {
    const { id } = await node.create("connect");
    return await connectAgent(node.machineFile(id, "vsock.sock"));
  },

  exec: async (node) => {
    const { exitCode, stdout, stderr } = await (await node.find("main")).exec("echo out; echo err >&2; exit 3");
    deepEqual([exitCode, stdout, stderr], [3, "out\n", "err\n"]);
    return "output, errors and exit code";
  },

  files: async (node) => {
    const sandbox = await node.find("main");
    const content = randomBytes(FILE_BYTES);
    await sandbox.files.write("data", content);
    ok(content.equals(await sandbox.files.read("data")), "the file differs after writing and reading");
    return `${FILE_BYTES} bytes written and read`;
  },

  checkpoint: async (node) => {
    const sandbox = await node.find("main");
    await sandbox.start("i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.1; done", { id: "counter" });
    const { sizeBytes } = await sandbox.checkpoint({ name: "saved" });
    await untilCounts(sandbox);
    return `${Math.round(sizeBytes / 2 ** 20)} MiB; the machine keeps running`;
  },

  restore: async (node) => {
    const sandbox = await node.find("main");
    await sandbox.pause();
    equal((await processesOf(sandbox.id)).length, 0, "the paused machine still runs");
    await sandbox.resume();
    await untilCounts(sandbox);
    const lagMs = Date.now() - Number(await output(sandbox, "date +%s%3N"));
    ok(Math.abs(lagMs) < CLOCK_MS, `the clock of the restored machine differs by ${lagMs} ms`);
    return `its process continues; clock differs by ${lagMs} ms`;
  },

  fork: async (node) => {
    const sandbox = await node.find("main");
    const forks = await sandbox.fork({ count: FORKS.length });
    for (const [index, name] of FORKS.entries()) node.sandboxes.set(name, forks[index] as Sandbox);
    await differ([sandbox, ...forks], "head -c 16 /dev/urandom | base64");
    await Promise.all(forks.map(untilCounts));
    return "the process continues in two copies, which have their own random numbers";
  },

  "hostnames of copies": async (node) => {
    return await differ(await Promise.all(["main", ...FORKS].map((name) => node.find(name))), "hostname");
  },

  "node killed": async (node) => {
    await node.kill9();
    await node.start();
    await untilCounts(await node.find("main"));
    return "the next node adopts the machine with its process";
  },

  "node killed during a checkpoint": async (node) => {
    const { id } = await node.find("main");
    await node.kill9();
    await pauseMachine(node.machineFile(id, "api.sock"));
    await node.start();
    await untilCounts(await node.find("main"));
    return "the next node resumes the paused machine";
  },

  "Firecracker killed": async (node) => {
    const sandbox = await node.create("crash");
    for (const pid of await processesOf(sandbox.id)) kill(pid);
    const { message } = await sandbox.exec("true").then(
      () => Promise.reject(new Error("a command ran in a killed machine")),
      (error: Error) => error,
    );
    return message;
  },

  leftovers: async (node) => {
    for (const { id } of node.sandboxes.values()) {
      await (await node.client.sandboxes.connect(id)).destroy();
      deepEqual(await processesOf(id), [], `processes of ${id} remain`);
    }
    deepEqual(await readdir(join(node.home, "node/firecracker/instances")), [], "directories of machines remain");
    return "no processes or files remain";
  },
};

/** The end of one process of a machine can end the others. */
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function output(sandbox: Sandbox, command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await sandbox.exec(command);
  equal(exitCode, 0, `${command} failed: ${stderr}`);
  return stdout.trim();
}

/** Fails when two machines print the same. */
async function differ(sandboxes: readonly Sandbox[], command: string): Promise<string> {
  const printed = await Promise.all(sandboxes.map((sandbox) => output(sandbox, command)));
  equal(new Set(printed).size, printed.length, `${command} prints the same in several machines: ${printed.join(", ")}`);
  return printed.join(", ");
}

/** Waits inside the machine until its background process has counted further. */
async function untilCounts(sandbox: Sandbox): Promise<void> {
  await output(sandbox, 'before=$(cat count); while [ "$(cat count)" = "$before" ]; do sleep 0.05; done');
}

/** Firecracker answers with OK and a port when the agent listens. */
async function connectAgent(path: string): Promise<string> {
  const socket = connect({ path, signal: AbortSignal.timeout(CONNECT_MS) });
  try {
    socket.write(`CONNECT ${AGENT_PORT}\n`);
    for await (const chunk of socket) {
      const answer = String(chunk).split("\n")[0] ?? "";
      ok(/^OK \d+$/.test(answer), `Firecracker answered ${answer}`);
      return answer;
    }
    throw new Error("Firecracker closed the connection: no agent listens");
  } finally {
    socket.destroy();
  }
}

async function pauseMachine(socketPath: string): Promise<void> {
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { "Content-Type": "application/json" };
    const call = request({ socketPath, method: "PATCH", path: "/vm", headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    call.on("error", reject).end(JSON.stringify({ state: "Paused" }));
  });
  equal(status, 204, "Firecracker refused to pause the machine");
}
