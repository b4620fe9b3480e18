import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { provideDocker } from "../../../../../scripts/setup/docker.mjs";
import { type Bridge, makeBridge } from "./bridge.ts";
import { makeCertificates } from "./certificates.ts";
import { eventually, untilAnswering } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { sweepForgotten } from "./processes.ts";
import { BRIDGE_FILE, sweepDockerd } from "./sweep-dockerd.ts";

/** Of util-linux: runs a program that ends with its parent process. */
const SETPRIV = "setpriv";
const STOP_TIMEOUT_MS = 20_000;
/** The prefix of its directories' names, before the pid of the test run. */
const PREFIX = "sandpiper-docker-";
const LOOPBACK = "127.0.0.1";
const LOG_TAIL_CHARACTERS = 4000;

export interface DockerdOptions {
  /** Containers keep running while the daemon is down. */
  readonly liveRestore?: boolean;
  /** Creates a bridge for it; without one it only has the network `none`. */
  readonly bridge?: boolean;
  /** Paths of additional runtimes, by name. */
  readonly runtimes?: Readonly<Record<string, string>>;
  /** Also listens on loopback, for clients with a certificate. */
  readonly tls?: boolean;
}

/** A Docker Engine for one test file, separate from any other on the machine. */
export interface Dockerd extends AsyncDisposable {
  readonly url: string;
  /** Contains all its files. */
  readonly directory: string;
  /** The host's address in the bridge's network. */
  readonly bridgeAddress: string | undefined;
  readonly tls: DockerdTls | undefined;
  /** Kills the daemon like a crash; its child processes stay. */
  kill(): Promise<void>;
  /** Restarts the daemon with its files, after an orderly stop if it still runs. */
  restart(): Promise<void>;
}

export interface DockerdTls {
  readonly url: string;
  /** The directory for DOCKER_CERT_PATH. */
  readonly certificates: string;
}

/** Starts a daemon and waits until it answers; the first call downloads it. It ends with this process, even after a kill. */
export async function startDockerd(options: DockerdOptions = {}): Promise<Dockerd> {
  const docker = await provideDocker();
  await sweepForgotten(PREFIX, sweepDockerd);
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const bridge = options.bridge === true ? await makeBridge() : undefined;
  if (bridge !== undefined) await writeFile(join(directory, BRIDGE_FILE), bridge.name);
  const tls = options.tls === true ? await makeTls(directory) : undefined;
  const socket = join(directory, "docker.sock");
  const logPath = join(directory, "dockerd.log");
  const args = ["--pdeathsig", "TERM", docker.dockerd, ...daemonArguments(directory, options, { bridge, tls })];
  // All child processes inherit TMPDIR, which identifies them.
  const env = { ...docker.env, TMPDIR: directory };
  const logTail = async () => (await readFile(logPath, "utf8").catch(() => "")).slice(-LOG_TAIL_CHARACTERS);
  let child: ChildProcess;
  const start = async () => {
    await using log = await open(logPath, "a");
    // Its own process group shields it from Ctrl-C in the terminal.
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
    kill: async () => {
      await end(child, "SIGKILL");
      await untilContainerdEnded(directory);
    },
    restart: async () => {
      await end(child, "SIGTERM");
      await start();
    },
    [Symbol.asyncDispose]: dispose,
  };
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
    // The directory's name distinguishes leftovers from those of other daemons.
    ...["--cgroup-parent", `/${basename(directory)}`, "--exec-opt", "native.cgroupdriver=cgroupfs"],
    // Leaves the host's network settings unchanged.
    ...["--iptables=false", "--ip6tables=false", "--ip-forward=false", `--bridge=${bridge?.name ?? "none"}`],
    ...["--default-address-pool", "base=10.214.0.0/16,size=24"],
    ...(options.liveRestore === true ? ["--live-restore"] : []),
    ...(tls === undefined ? [] : tlsArguments(tls)),
    ...runtimes.flatMap(([name, path]) => ["--add-runtime", `${name}=${path}`]),
  ];
}

function tlsArguments({ url, certificates }: DockerdTls): string[] {
  const files = { tlscacert: "ca.pem", tlscert: "server-cert.pem", tlskey: "server-key.pem" };
  const options = Object.entries(files).map(([option, name]) => `--${option}=${join(certificates, name)}`);
  return ["--host", url, "--tlsverify", ...options];
}

/** containerd ends shortly after its daemon; a new daemon that still finds it would not start another. */
async function untilContainerdEnded(directory: string): Promise<void> {
  const pid = (await readFile(join(directory, "exec/containerd/containerd.pid"), "utf8")).trim();
  await eventually(() => !existsSync(`/proc/${pid}`), `containerd (process ${pid}) did not end with its dockerd`);
}

async function end(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await Promise.race([ended, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
  child.kill("SIGKILL");
  await ended;
}
