import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, open, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Podman as PodmanProgram, providePodman } from "../../../../../scripts/setup/podman.mjs";
import { untilAnswering } from "./eventually.ts";
import { sweepForgotten } from "./processes.ts";
import { childrenOf, EVENTS_FILE, PODMAN_PREFIX, sweepPodman } from "./sweep-podman.ts";

const execute = promisify(execFile);
/** Of util-linux: runs a program that ends with its parent process. */
const SETPRIV = "setpriv";
const LOG_TAIL_CHARACTERS = 4000;
/** The capability to raise limits, which Podman expects. */
const CAP_SYS_RESOURCE = 1n << 24n;

/** A Podman for one test file, separate from any other on the machine. */
export interface Podman extends AsyncDisposable {
  readonly url: string;
  /** Kills Podman like a crash; its containers keep running, and it restarts. */
  crash(): Promise<void>;
  /** Runs a program in the network namespace with the published ports, and returns its output. */
  run(argv: readonly string[]): Promise<string>;
}

/** Starts Podman and waits until it answers; the first call downloads it. It ends with this process, even after a kill. */
export async function startPodman(): Promise<Podman> {
  const program = await providePodman();
  await sweepForgotten(PODMAN_PREFIX, sweepPodman);
  const directory = await mkdtemp(join(tmpdir(), `${PODMAN_PREFIX}${process.pid}-`));
  const socket = join(directory, "podman.sock");
  const logPath = join(directory, "podman.log");
  const logTail = async () => (await readFile(logPath, "utf8").catch(() => "")).slice(-LOG_TAIL_CHARACTERS);
  await configure(directory, program);
  const child = await start(directory, program);
  const dispose = () => sweepPodman(directory, child);
  await untilAnswering(socket, child).catch(async (cause: unknown) => {
    const log = await logTail();
    await dispose();
    throw new Error(`podman did not start: ${log}`, { cause });
  });
  return {
    url: `unix://${socket}`,
    crash: async () => {
      for (const pid of await childrenOf(await firstOf(child))) process.kill(pid, "SIGKILL");
    },
    run: async (argv) => (await execute("nsenter", [`--net=/proc/${await firstOf(child)}/ns/net`, ...argv])).stdout,
    [Symbol.asyncDispose]: dispose,
  };
}

/** The first process of its namespaces. */
async function firstOf({ pid }: ChildProcess): Promise<number> {
  const [first] = await childrenOf(pid ?? 0);
  if (first === undefined) throw new Error("podman has ended");
  return first;
}

/**
 * Starts Podman in its own namespaces, so that its processes, its mounts and its files in shared directories end with its
 * first process.
 */
async function start(directory: string, { podman, usr, env }: PodmanProgram): Promise<ChildProcess> {
  const script = `
    set -e
    ${usr === undefined ? "" : `mount -t overlay overlay -o 'lowerdir=/usr:${usr}' /usr`}
    [ -e /etc/containers/policy.json ] || mount -t overlay overlay -o "lowerdir=$PWD/etc:/etc" /etc
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /var/lib
    ip link set lo up
    # Links that an installation would create.
    mkdir /run/bin
    for name in iptables ip6tables; do command -v $name || ln -s /usr/sbin/$name-nft /run/bin/$name; done
    PATH="/run/bin:$PATH"
    while :; do
      rm -f podman.sock
      ${podman} system service --time 0 "unix://$PWD/podman.sock" & wait $! || sleep 0.1
    done`;
  const namespaces = "--mount --propagation private --pid --net --fork --kill-child --mount-proc".split(" ");
  const args = ["--pdeathsig", "KILL", "unshare", ...namespaces, "sh", "-c", script];
  await using log = await open(join(directory, "podman.log"), "a");
  return spawn(SETPRIV, args, {
    // Its helpers leave files in their working directory.
    cwd: directory,
    stdio: ["ignore", log.fd, log.fd],
    // Its own process group shields it from Ctrl-C in the terminal.
    detached: true,
    env: {
      ...env,
      HOME: directory,
      TMPDIR: directory,
      CONTAINERS_CONF: join(directory, "containers.conf"),
      CONTAINERS_STORAGE_CONF: join(directory, "storage.conf"),
    },
  });
}

async function configure(directory: string, { runc }: PodmanProgram): Promise<void> {
  // Podman cannot commit a container without a policy, which an installation provides.
  const policies = join(directory, "etc/containers");
  await mkdir(policies, { recursive: true });
  await writeFile(join(policies, "policy.json"), JSON.stringify({ default: [{ type: "insecureAcceptAnything" }] }));
  const storage = [
    "[storage]",
    'driver = "overlay"',
    `graphroot = "${directory}/graph"`,
    `runroot = "${directory}/run"`,
  ];
  await writeFile(join(directory, "storage.conf"), storage.join("\n"));
  const containers = [
    ...["[engine]", 'cgroup_manager = "cgroupfs"', 'events_logger = "file"'],
    `events_logfile_path = "${join(directory, EVENTS_FILE)}"`,
    ...(runc === undefined
      ? []
      : ['runtime = "runc"', "[engine.runtimes]", `runc = ["${await runtime(directory, runc)}"]`]),
    ...["[network]", `network_config_dir = "${directory}/networks"`],
  ];
  await writeFile(join(directory, "containers.conf"), containers.join("\n"));
}

/** Root in a container or in some virtual machines cannot raise limits; there a wrapper drops Podman's requests for it. */
async function runtime(directory: string, runc: string): Promise<string> {
  if (await canRaiseLimits()) return runc;
  const wrapper = join(directory, "runc");
  await writeFile(
    wrapper,
    `#!/bin/sh
for word; do
  case "$before" in
    --bundle | -b) file="$word/config.json" ;;
    --process | -p) file="$word" ;;
  esac
  before="$word"
done
if [ -f "$file" ]; then
  sed -i -e 's/{"type":"RLIMIT_[A-Z]*","hard":[0-9]\\{7,\\},"soft":[0-9]*},\\{0,1\\}//g' -e 's/\\("rlimits":\\[[^]]*\\),\\]/\\1]/' "$file"
fi
exec ${runc} "$@"
`,
  );
  await chmod(wrapper, 0o755);
  return wrapper;
}

async function canRaiseLimits(): Promise<boolean> {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(await readFile("/proc/self/status", "utf8"))?.[1] ?? "0";
  return (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) !== 0n;
}
