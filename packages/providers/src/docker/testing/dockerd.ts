import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { provideDocker } from "../../../../../scripts/setup/docker.mjs";
import { type Bridge, makeBridge } from "./bridge.ts";
import { makeCertificates } from "./certificates.ts";
import { freePort } from "./free-port.ts";
import { BRIDGE_FILE, sweepDockerd } from "./sweep-dockerd.ts";
import { untilAnswering } from "./until-answering.ts";

/** Of util-linux: runs a program that ends with whoever started it. */
const SETPRIV = "setpriv";
const START_ATTEMPTS = 400;
const START_INTERVAL_MS = 50;
const STOP_TIMEOUT_MS = 20_000;
/** Of the directories' names, before the process that made them. */
const PREFIX = "sandpiper-docker-";
const LOOPBACK = "127.0.0.1";
const LOG_TAIL_CHARACTERS = 4000;

export interface DockerdOptions {
  /** Containers go on while it is away. */
  readonly liveRestore?: boolean;
  /** Gives it a bridge of its own; without one only the network `none` is there. */
  readonly bridge?: boolean;
  /** Paths of other runtimes, by name. */
  readonly runtimes?: Readonly<Record<string, string>>;
  /** Listens on loopback as well, for clients with a certificate. */
  readonly tls?: boolean;
}

/** A Docker Engine of a test's own, apart from any other on the machine. */
export interface Dockerd extends AsyncDisposable {
  readonly url: string;
  /** All that it keeps is below it. */
  readonly directory: string;
  /** Where its bridge's containers reach the host. */
  readonly bridgeAddress: string | undefined;
  readonly tls: DockerdTls | undefined;
  readonly pid: number;
  /** Ends it with SIGKILL, as a crash would; what it started stays. */
  kill(): Promise<void>;
  /** Starts it again on what it left, after an orderly stop if it still runs. */
  restart(): Promise<void>;
  logTail(): Promise<string>;
}

export interface DockerdTls {
  readonly url: string;
  /** The directory that DOCKER_CERT_PATH would name. */
  readonly certificates: string;
}

/** Starts a daemon that answers; the first call ever downloads it. It ends with this process even if that is killed. */
export async function startDockerd(options: DockerdOptions = {}): Promise<Dockerd> {
  const docker = await provideDocker();
  await sweepForgotten();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const bridge = options.bridge === true ? await makeBridge() : undefined;
  if (bridge !== undefined) await writeFile(join(directory, BRIDGE_FILE), bridge.name);
  const tls = options.tls === true ? await makeTls(directory) : undefined;
  const socket = join(directory, "docker.sock");
  const logPath = join(directory, "dockerd.log");
  const args = ["--pdeathsig", "TERM", docker.dockerd, ...daemonArguments(directory, options, { bridge, tls })];
  // Whatever it starts inherits this, by which it is found again.
  const env = { ...docker.env, TMPDIR: directory };
  const logTail = async () => (await readFile(logPath, "utf8").catch(() => "")).slice(-LOG_TAIL_CHARACTERS);
  let child: ChildProcess;
  const start = async () => {
    await using log = await open(logPath, "a");
    // A group of its own keeps the terminal's Ctrl-C away from it.
    child = spawn(SETPRIV, args, { stdio: ["ignore", log.fd, log.fd], env, detached: true });
    await untilAnswering(socket, child).catch(async (cause: unknown) => {
      throw new Error(`dockerd did not start: ${await logTail()}`, { cause });
    });
  };
  const dispose = async () => {
    await end(child, "SIGKILL");
    await sweepDockerd(directory);
  };
  await start().catch(async (error: unknown) => {
    await dispose();
    throw error;
  });
  return {
    url: `unix://${socket}`,
    directory,
    bridgeAddress: bridge?.address,
    tls,
    get pid() {
      return child.pid ?? 0;
    },
    kill: async () => {
      await end(child, "SIGKILL");
      await untilContainerdEnded(directory);
    },
    restart: async () => {
      await end(child, "SIGTERM");
      await start();
    },
    logTail,
    [Symbol.asyncDispose]: dispose,
  };
}

/** A test run that was killed could not do it. */
async function sweepForgotten(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    const owner = /^\d+/.exec(name.slice(PREFIX.length))?.[0];
    // Another test run may do the same at the same moment.
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) await sweepDockerd(join(tmpdir(), name)).catch(() => {});
  }
}

async function makeTls(directory: string): Promise<DockerdTls> {
  const certificates = join(directory, "tls");
  await makeCertificates(certificates, LOOPBACK);
  return { url: `tcp://${LOOPBACK}:${await freePort()}`, certificates };
}

interface Surroundings {
  readonly bridge: Bridge | undefined;
  readonly tls: DockerdTls | undefined;
}

function daemonArguments(directory: string, options: DockerdOptions, { bridge, tls }: Surroundings): string[] {
  const runtimes = Object.entries(options.runtimes ?? {});
  return [
    ...["--host", `unix://${join(directory, "docker.sock")}`, "--pidfile", join(directory, "dockerd.pid")],
    ...["--data-root", join(directory, "data"), "--exec-root", join(directory, "exec")],
    // Named after the directory, so that a leftover can be told from any other Docker's.
    ...["--cgroup-parent", `/${basename(directory)}`, "--exec-opt", "native.cgroupdriver=cgroupfs"],
    // Nothing of the host's network is changed.
    ...["--iptables=false", "--ip6tables=false", "--ip-forward=false", `--bridge=${bridge?.name ?? "none"}`],
    ...["--default-address-pool", "base=10.214.0.0/16,size=24"],
    ...(options.liveRestore === true ? ["--live-restore"] : []),
    ...(tls === undefined ? [] : tlsArguments(tls)),
    ...runtimes.flatMap(([name, path]) => ["--add-runtime", `${name}=${path}`]),
  ];
}

function tlsArguments({ url, certificates }: DockerdTls): string[] {
  const [cert, key] = [join(certificates, "server-cert.pem"), join(certificates, "server-key.pem")];
  return [
    "--host",
    url,
    "--tlsverify",
    "--tlscacert",
    join(certificates, "ca.pem"),
    "--tlscert",
    cert,
    "--tlskey",
    key,
  ];
}

/** It ends with its daemon, though a moment later: a new daemon that still sees it would not start another. */
async function untilContainerdEnded(directory: string): Promise<void> {
  const pid = (await readFile(join(directory, "exec/containerd/containerd.pid"), "utf8")).trim();
  for (let attempt = 0; attempt < START_ATTEMPTS; attempt += 1) {
    if (!existsSync(`/proc/${pid}`)) return;
    await sleep(START_INTERVAL_MS);
  }
  throw new Error(`containerd, process ${pid}, outlives its dockerd`);
}

async function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await Promise.race([ended, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
  child.kill("SIGKILL");
  await ended;
}
