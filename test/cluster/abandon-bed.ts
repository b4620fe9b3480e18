import { spawn } from "node:child_process";
import { mkdirSync, writeSync } from "node:fs";
import { newBedName } from "./bed-name.ts";
import { Network } from "./network.ts";
import { bedDirectory } from "./sweep.ts";

export interface Abandoned {
  readonly name: string;
  /** A process that still runs in the bed's network. */
  readonly pid: number | undefined;
}

// Starts a bed and waits until it is killed, like a test. Without its test it ends.
const { name } = newBedName();
mkdirSync(bedDirectory(name));
const network = await Network.create(name);
const host = await network.addHost("node-1", 11);
const [program, ...args] = host.enter(["sleep", "600"]);
const { pid } = spawn(program, args, { stdio: "ignore", detached: true });
writeSync(1, JSON.stringify({ name, pid } satisfies Abandoned));
process.stdin.on("end", () => process.exit(1)).resume();
