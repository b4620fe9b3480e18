import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/sdk";
import { provideSlirp } from "../../scripts/setup/slirp.mjs";
import { DockerDaemon } from "../docker/docker-daemon.ts";
import { guestPrograms } from "../guest-programs.ts";
import { run } from "../run.ts";
import type { Workspace } from "../workspace.ts";
import type { BenchNetwork } from "./bench-network.ts";

const PROGRAM = "/tmp/net";
const ATTEMPTS = 100;

/** A way to give a program a network: runs the benchmark's client with arguments, and returns what it prints. */
export interface NetworkSubject {
  readonly name: string;
  /** Part of the command lines of its processes, whose processor time counts. */
  readonly marks: readonly string[];
  run(args: readonly string[]): Promise<string>;
}

export async function sandpiperSubject(sandbox: Sandbox, network: BenchNetwork): Promise<NetworkSubject> {
  return {
    name: "sandpiper-gvisor",
    marks: [network.node.homeDir],
    run: async (args) => {
      const { exitCode, stdout, stderr } = await sandbox.exec([PROGRAM, ...args]);
      if (exitCode !== 0) throw new Error(`the client exited with ${exitCode}: ${stderr}`);
      return stdout;
    },
  };
}

/** Puts the client into a sandbox. */
export async function installClient(sandbox: Sandbox, workspace: Workspace): Promise<void> {
  await sandbox.files.write(PROGRAM, await readFile((await guestPrograms(workspace)).net), { mode: 0o755 });
}

export async function dockerBridgeSubject(network: BenchNetwork, workspace: Workspace): Promise<NetworkSubject> {
  const enter = (argv: readonly string[]) => network.enter(argv);
  const daemon = workspace.own(await DockerDaemon.start(workspace, { name: "bridge", bridge: "bridge", enter }));
  const root = await workspace.makeDir("bridge", "image");
  await mkdir(join(root, "tmp"));
  await copyFile((await guestPrograms(workspace)).net, join(root, PROGRAM));
  await run("tar", ["--create", "--file", `${root}.tar`, "--directory", root, "."]);
  await daemon.run(["import", `${root}.tar`, "spnet:latest"]);
  const { stdout } = await daemon.run(["run", "--detach", "spnet:latest", PROGRAM, "serve", "127.0.0.1"]);
  const id = stdout.trim();
  workspace.defer(() => daemon.run(["rm", "--force", id]));
  return {
    name: "docker-bridge",
    // The processes of the container are children of a shim that names the container.
    marks: [id],
    run: async (args) => (await daemon.run(["exec", id, PROGRAM, ...args])).stdout,
  };
}

export async function slirpSubject(network: BenchNetwork, workspace: Workspace): Promise<NetworkSubject> {
  const { path, env } = await provideSlirp();
  const { net } = await guestPrograms(workspace);
  const [unshare, ...args] = network.enter(["unshare", "--net", net, "serve", "127.0.0.1"]);
  const inside = spawn(unshare as string, args, { stdio: "ignore" });
  workspace.defer(() => inside.kill("SIGKILL"));
  await once(inside, "spawn");
  const pid = `${inside.pid}`;
  const [slirp, ...slirpArgs] = network.enter([path, "--configure", "--mtu=65520", "--ready-fd=3", pid, "tap0"]);
  await ownNamespace(pid);
  const child = spawn(slirp as string, slirpArgs, { env, stdio: ["ignore", "ignore", "ignore", "pipe"] });
  workspace.defer(() => child.kill("SIGTERM"));
  await Promise.race([
    once(child.stdio[3] as NodeJS.ReadableStream, "data"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`slirp4netns exited with ${code}`))),
  ]);
  return {
    name: "slirp4netns",
    marks: [path, `--target ${pid} `],
    run: async (args) => (await run("nsenter", ["--target", pid, "--net", net, ...args])).stdout,
  };
}

/** Waits until the process has left the namespace of the bridge. */
async function ownNamespace(pid: string): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if ((await readFile(`/proc/${pid}/cmdline`, "utf8")).includes("\0serve\0") && !(await isEntering(pid))) return;
    await sleep(20);
  }
  throw new Error("the namespace for slirp4netns was not created");
}

async function isEntering(pid: string): Promise<boolean> {
  return /^(nsenter|unshare)/.test(await readFile(`/proc/${pid}/comm`, "utf8"));
}
