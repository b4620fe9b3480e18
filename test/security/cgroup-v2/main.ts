// Runs hogs in sandboxes of gVisor on cgroup v2, in a virtual machine of the QEMU provider. Takes minutes without KVM.
import { execFile, spawn } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Sandbox } from "@sandpiper/core";
import { findAgent, findLauncher } from "../../../packages/providers/src/host/find-agent.ts";
import { findRunsc } from "../../../packages/providers/src/host/find-runsc.ts";
import { QemuProvider } from "../../../packages/providers/src/qemu/provider.ts";
import { hogs } from "../hogs.ts";
import type { HogCase, HogEnd, HogFigures } from "./figures.ts";

/** Relative to the repository: what gVisor's provider needs to run from source. */
const SOURCES = [
  ...["package.json", "packages/protocol", "packages/core", "packages/providers", "test/security/cgroup-v2"],
  ...["node_modules/@sandpiper", "node_modules/zod"],
];
const REPOSITORY = join(import.meta.dirname, "../../..");
const GUEST_PROGRAM = fileURLToPath(new URL("guest.ts", import.meta.url));
const GUEST_ENVIRONMENT = {
  SANDPIPER_RUNSC: "/opt/runsc",
  SANDPIPER_AGENT: "/opt/sandpiper-agent",
  SANDPIPER_LAUNCH: "/opt/sandpiper-launch",
  LD_LIBRARY_PATH: "/opt",
};
const COUNTS = [1, 4];
const DEFAULT_HOGS = ["c", "python", "python, one object", "memfd", "shm", "tail"];

const names = process.argv.length > 2 ? process.argv.slice(2) : DEFAULT_HOGS;
const unknown = names.filter((name) => !Object.hasOwn(hogs, name));
if (unknown.length > 0) {
  console.error(`unknown hogs: ${unknown.join(", ")}; known are ${Object.keys(hogs).join(", ")}`);
  process.exit(2);
}

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupted.abort());

const home = await mkdtemp(join(tmpdir(), "sp-v2-"));
try {
  const provider = new QemuProvider({ stateDirectory: home });
  const config = { memoryMib: 2048, vcpuCount: 2, diskMib: 2048 };
  await using machine = await Sandbox.create(provider, config, interrupted);
  // Its programs then fail, which ends this one, and it leaves nothing behind.
  interrupted.signal.addEventListener("abort", () => void machine.destroy());
  console.error("the machine has booted");
  await copySources(machine);
  await hogs["c"]?.prepare?.(machine);
  await prepareCgroups(machine);
  console.error("the machine has gVisor");
  const cases = names.flatMap((name) =>
    COUNTS.map((count): HogCase => ({ name, command: hogs[name]?.command ?? "", count })),
  );
  process.exitCode = (await run(machine, cases)) ? 0 : 1;
} finally {
  await rm(home, { recursive: true });
}

/** The repository's part, runsc and Node.js, unpacked in the machine's root directory. */
async function copySources(machine: Sandbox): Promise<void> {
  const runsc = await findRunsc(undefined);
  if ("reason" in runsc) throw new Error(runsc.reason);
  const programs = [runsc.path, findAgent(), findLauncher(), await realpath(process.execPath), await libatomic()];
  const names = ["runsc", "sandpiper-agent", "sandpiper-launch", "node", "libatomic.so.1"];
  const renamed = names.flatMap((name) => ["--transform", `s|^/.*/${name}[^/]*$|opt/${name}|S`]);
  const inRepository = ["--transform", "s|^\\([^o]\\)|opt/sandpiper/\\1|S"];
  const words = ["-C", REPOSITORY, "-cz", "-P", ...renamed, ...inRepository, ...programs, ...SOURCES];
  const tar = spawn("tar", words, { stdio: ["ignore", "pipe", "inherit"] });
  await machine.files.write("/tmp/sources.tar.gz", tar.stdout);
  await runAsRoot(machine, "tar -C / -xzf /tmp/sources.tar.gz && rm /tmp/sources.tar.gz");
}

/** Node.js needs it, and the machine's image lacks it. */
async function libatomic(): Promise<string> {
  const { stdout } = await promisify(execFile)("ldd", [process.execPath]);
  return await realpath(/libatomic\.so\.1 => (\S+)/.exec(stdout)?.[1] ?? "");
}

/** All controllers for the cgroups below the root, as systemd does it. */
async function prepareCgroups(machine: Sandbox): Promise<void> {
  // The image has no program for mounts.
  const call = 'ctypes.CDLL(None).mount(b"cgroup2", b"/sys/fs/cgroup", b"cgroup2", 0, None)';
  const mount = `python3 -c 'import ctypes, sys; sys.exit(${call})'`;
  const enable = "for each in cpuset cpu io memory pids; do echo +$each > /sys/fs/cgroup/cgroup.subtree_control; done";
  await runAsRoot(machine, `${mount} && ${enable}`);
}

async function runAsRoot(machine: Sandbox, command: string): Promise<void> {
  const { exitCode, stderr } = await machine.exec(command, { user: "root", timeoutMs: 600_000 });
  if (exitCode !== 0) throw new Error(`"${command}" failed in the machine: ${stderr}`);
}

/** Prints a row for each case; false if a sandbox died, or a hog ended otherwise than on cgroup v1. */
async function run(machine: Sandbox, cases: readonly HogCase[]): Promise<boolean> {
  const program = join("/opt/sandpiper", relative(REPOSITORY, GUEST_PROGRAM));
  await using guest = await machine.start(["/opt/node", program, JSON.stringify(cases)], {
    user: "root",
    env: GUEST_ENVIRONMENT,
  });
  const errors = pipeline(guest.stderr, process.stderr, { end: false });
  console.log("| program | at once | sandbox | bystanders alive | most above, MiB | kills by the kernel | results |");
  console.log("|---|---|---|---|---|---|---|");
  let isAsExpected = true;
  for await (const line of createInterface({ input: Readable.from(guest.stdout) })) {
    const figures: HogFigures = JSON.parse(line);
    isAsExpected &&= figures.isAlive && figures.results.every((end) => endsAs(end, hogs[figures.name]?.result));
    console.log(rowOf(figures));
  }
  const { exitCode } = await guest.wait();
  await errors;
  return isAsExpected && exitCode === 0;
}

function endsAs(end: HogEnd, expected: HogEnd | undefined): boolean {
  return end.exitCode === expected?.exitCode && end.outOfMemory === expected?.outOfMemory;
}

function rowOf(figures: HogFigures): string {
  const { name, count, isAlive, bystanders, bystandersAlive, mostAboveMib, hostKills, results } = figures;
  const ends = results.map((result) => JSON.stringify(result)).join(" ");
  const cells = [
    name,
    count,
    isAlive ? "alive" : "dead",
    `${bystandersAlive} of ${bystanders}`,
    mostAboveMib,
    hostKills,
  ];
  return `| ${[...cells, ends].join(" | ")} |`;
}
