import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ip, systemEnv } from "../../cluster/namespaces.ts";
import { addresses } from "./addresses.ts";
import type { Sighting } from "./sightings.ts";

export interface WorldOptions {
  readonly directory: string;
  readonly dnsAddress: string;
  /** The slow starters; a test that needs none of them starts none. */
  readonly daemons: readonly ("postgres" | "sshd")[];
}

export interface WorldStarted {
  /** The certificate of the authority that all sites share. */
  readonly authority: string;
  readonly npmLockFile: string;
}

export interface WorldReport {
  readonly sightings: readonly Sighting[];
  /** How often each name was asked for, by name and type: "site.example A". */
  readonly queries: Readonly<Record<string, number>>;
}

/** The tests' internet: real servers in a network namespace, which only the nodes of a test reach. */
export class World {
  readonly directory: string;
  readonly authority: string;
  readonly npmLockFile: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, directory: string, started: WorldStarted) {
    this.#child = child;
    this.directory = directory;
    this.authority = started.authority;
    this.npmLockFile = started.npmLockFile;
  }

  /** Serves in a namespace that exists and has an interface `eth0`. */
  static async start(
    namespace: string,
    { directory, daemons }: Pick<WorldOptions, "directory" | "daemons">,
  ): Promise<World> {
    for (const name of ["python", "npm", "debian", "git", "go"]) mkdirSync(join(directory, name), { recursive: true });
    for (const address of ["fd00:77::10", ...Object.values(addresses)]) await addAddress(namespace, address);
    const program = fileURLToPath(new URL("world-program.ts", import.meta.url));
    const options = { directory, daemons, dnsAddress: addresses.dns } satisfies WorldOptions;
    const child = fork(program, [JSON.stringify(options)], {
      execPath: "/usr/bin/nsenter",
      execArgv: [`--net=/run/netns/${namespace}`, process.execPath],
      env: systemEnv,
    });
    const [started] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`the servers did not start: exit code ${code}`))),
    ]);
    return new World(child, directory, started as WorldStarted);
  }

  /** What reached its servers so far. */
  async report(): Promise<WorldReport> {
    const answered = once(this.#child, "message");
    this.#child.send("report");
    const [report] = await answered;
    return report as WorldReport;
  }

  stop(): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}

/** Without detection of duplicates, an IPv6 address is usable at once. */
async function addAddress(namespace: string, address: string): Promise<void> {
  const isV6 = address.includes(":");
  const rest = isV6 ? [`${address}/64`, "dev", "eth0", "nodad"] : [`${address}/24`, "dev", "eth0"];
  await ip("-n", namespace, "address", "add", ...rest);
}
